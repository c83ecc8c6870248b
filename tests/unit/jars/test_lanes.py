"""Which jars belong to which Spark, and what happens to a plan that was sealed for another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from errata.errors import SetupError
from errata.jars import find_installed_spark, find_sealed_lane, load_jar_groups, load_lanes, require_sealed_jars
from errata.jars.lane import choose_lane, read_minor

ROOT = Path(__file__).parents[3]
AGAIN = 'errata plan p --partitions 2026-01-01 --supersede bf-1 --reason "…"'


def sealed_on(lane: str) -> dict[str, str]:
    return {jar.coordinate: jar.sha256 for group in load_jar_groups(lane).values() for jar in group}


@pytest.mark.parametrize("lane", load_lanes())
def test_each_lane_has_exactly_one_iceberg_built_for_its_spark(lane: str):
    """A runtime for another Spark dies while it loads a catalog, so none may slip in."""
    coordinates = [jar.coordinate for jar in load_jar_groups(lane)["spark"]]
    runtimes = [one for one in coordinates if "iceberg-spark-runtime" in one]
    assert len(runtimes) == 1
    assert find_sealed_lane(runtimes) == find_sealed_lane(coordinates)
    assert (find_sealed_lane(runtimes) or ("", ""))[0] == lane
    aws = [jar.version for jar in load_jar_groups(lane)["s3"] if jar.artifact == "iceberg-aws-bundle"]
    assert aws == [(find_sealed_lane(runtimes) or ("", ""))[1]]


@pytest.mark.parametrize("lane", load_lanes())
def test_every_lane_has_every_group(lane: str):
    """What a project can use on one Spark it can use on the other."""
    groups = load_jar_groups(lane)
    assert set(groups) == {"spark", "postgres", "s3", "kafka"}
    assert all(groups.values())
    assert [jar.artifact.partition("-4.")[0] for jar in groups["spark"]] == [
        "iceberg-spark-runtime", "sqlite-jdbc", "hadoop-bare-naked-local-fs",
    ]  # fmt: skip


def test_the_jars_are_those_of_the_installed_spark():
    """Nobody has to say which Spark there is."""
    installed = find_installed_spark()
    assert installed is not None
    runtime = find_sealed_lane(jar.coordinate for jar in load_jar_groups()["spark"])
    assert runtime is not None
    assert runtime[0] == read_minor(installed)


def test_the_pyspark_of_a_cluster_decides_although_pip_does_not_know_it(tmp_path: Path):
    """spark-submit puts its own as a zip before everything else, and a packed environment has none."""
    own = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(own, "w") as made:
        made.writestr("pyspark/__init__.py", "raise AssertionError('imported')")
        made.writestr("pyspark/version.py", "# a licence\n__version__: str = '4.0.2-amzn-0'\n")
    asks = "from errata.jars import find_installed_spark as find; print(find())"
    told = subprocess.run(
        [sys.executable, "-c", asks], env=os.environ | {"PYTHONPATH": str(own)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "4.0.2-amzn-0"


def test_without_pyspark_the_jars_are_those_of_the_default_spark():
    """An approver who has no Spark still sees what a plan on the default one would use."""
    assert choose_lane(None, load_lanes()) == "4.1"


@pytest.mark.parametrize("installed", ["3.5.9", "4.2.1", "4.10.0"])
def test_a_spark_without_jars_is_refused_with_the_command_that_installs_one(installed: str):
    """There is no nearest Spark: its Iceberg would die in the middle of a run."""
    with pytest.raises(SetupError, match=rf"pyspark {re.escape(installed)} .* Spark 4\.0 and 4\.1") as refused:
        choose_lane(installed, load_lanes())
    assert refused.value.hint == "pip install 'pyspark==4.1.*'"


def test_a_plan_sealed_for_one_spark_is_refused_on_the_other():
    """The refusal names both engines, and where the run or a new plan can go on."""
    with pytest.raises(SetupError) as refused:
        require_sealed_jars("bf-1", sealed_on("4.1"), sealed_on("4.0"), AGAIN)
    assert refused.value.message == (
        "run bf-1 was sealed for Spark 4.1 with Iceberg 1.11.0; here are Spark 4.0 and Iceberg 1.10.1"
    )
    assert refused.value.state == "nothing was computed, and the run stays as it was"
    assert refused.value.hint == (
        f"run it where Spark 4.1 is installed (pip install 'pyspark==4.1.*'), or plan it again here: {AGAIN}"
    )


def test_a_plan_sealed_with_a_jar_that_was_changed_since_is_refused():
    """The same Spark with another build of Iceberg is another engine, too."""
    here = sealed_on("4.1")
    coordinate = next(one for one in here if "iceberg-spark-runtime" in one)
    with pytest.raises(SetupError, match=re.escape(f"does not have: {coordinate}")):
        require_sealed_jars("bf-1", {coordinate: "0" * 64}, here, AGAIN)


def test_a_plan_is_no_worse_for_jars_that_it_does_not_need():
    """A project that reads a topic since then has more jars, and its older runs go on."""
    here = sealed_on("4.0")
    fewer = {jar.coordinate: jar.sha256 for jar in load_jar_groups("4.0")["spark"]}
    require_sealed_jars("bf-1", fewer, here, AGAIN)
    require_sealed_jars("bf-1", {}, here, AGAIN)


def test_the_locks_of_both_lanes_differ_in_spark_alone():
    """What fails on one lane and not on the other is then due to Spark and Iceberg."""
    for kind in ("user", "dev"):
        first, second = (
            (ROOT / f"requirements/{kind}{lane}.lock").read_text("utf-8").split("\n") for lane in ("", "-4.0")
        )
        changed = {line.partition("==")[0] for line in set(first) ^ set(second) if not line.startswith("    ")}
        assert changed == {"pyspark"}
