"""The printed command: complete, safe to copy, without a secret in it, refused where it could not work."""

from __future__ import annotations

import doctest
import itertools
import json
import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.errors import Refused, UsageError
from errata.model.product import Catalog
from errata.model.product.throttle import Throttle
from errata.submit import command
from errata.submit.command import Command, quoted, render_script
from errata.submit.job import SubmitOptions, build_job
from errata.submit.targets import TARGETS, build_command
from unit.submit import samples

GOLDENS = Path(__file__).parent / "goldens"
GUIDES = Path(__file__).resolve().parents[3] / "docs" / "guides"
CLUSTER = [name for name, target in TARGETS.items() if target.modes[0] == "cluster"]


def conf_of(built: Command) -> dict[str, str]:
    """Every Spark setting of a command, whichever way it travels."""
    if built.target == "emr-serverless":
        driver, overrides = (
            json.loads(built.argv[built.argv.index(o) + 1]) for o in ("--job-driver", "--configuration-overrides")
        )
        words = shlex.split(driver["sparkSubmit"]["sparkSubmitParameters"])
        found = dict(overrides["applicationConfiguration"][0]["properties"])
    else:
        words, found = list(built.argv), {}
        if built.target == "emr":
            words = json.loads(built.argv[-1])[0]["Args"]
    pairs = (word.partition("=") for before, word in itertools.pairwise(words) if before == "--conf")
    return found | {key: value for key, _, value in pairs}


def worker_of(built: Command) -> list[str]:
    """What the entry file is told."""
    if built.target == "emr-serverless":
        found: list[str] = json.loads(built.argv[built.argv.index("--job-driver") + 1])["sparkSubmit"][
            "entryPointArguments"
        ]
        return found
    words = json.loads(built.argv[-1])[0]["Args"] if built.target == "emr" else list(built.argv)
    return words[next(n for n, word in enumerate(words) if word.endswith("application.py")) + 1 :]


def test_examples_in_the_rules_are_true():
    """The doctests of the module."""
    assert doctest.testmod(command).failed == 0


@pytest.mark.parametrize("target", TARGETS)
def test_the_command_is_printed_as_it_was_reviewed(target: str):
    """With nothing given, all that is missing stands in angle brackets and is listed."""
    text = "\n".join(render_script(build_command(target, samples.job(), SubmitOptions()))) + "\n"
    golden = GOLDENS / f"{target}.sh"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")
    listed = set(re.findall(r"^#   (<[^>]+>)", text, re.MULTILINE))
    assert set(re.findall(r"<[^>]+>", text)) == listed


@pytest.mark.parametrize("target", TARGETS)
def test_the_guide_shows_what_is_printed(target: str):
    """The submit line of each guide is the builder's, for the project and options that the guide names."""
    text = "\n".join(render_script(build_command(target, samples.job(), samples.FILLED[target]))) + "\n"
    page = GUIDES / TARGETS[target].guide
    if os.environ.get("UPDATE_GOLDENS"):
        page.write_text(
            re.sub(
                r"```sh\n#!.*?```", lambda _: f"```sh\n#!/bin/sh\n{text}```", page.read_text("utf-8"), flags=re.DOTALL
            ),
            "utf-8",
        )
    assert f"```sh\n#!/bin/sh\n{text}```" in page.read_text("utf-8")
    assert "<" not in re.sub(r"<secret-\w+>", "", text), "the guide leaves nothing but the secrets to fill in"


@pytest.mark.parametrize("target", TARGETS)
def test_no_secret_is_printed(target: str):
    """Neither as text nor in the words for programs; the variables are named instead."""
    built = build_command(target, samples.job(), samples.FILLED[target])
    told = "\n".join([*render_script(built), *built.argv, repr(samples.job())])
    assert samples.PASSWORD not in told
    assert samples.KEY not in told
    assert "db.example.com" not in told
    assert built.variables == ("LEDGER_PASSWORD", "S3_SECRET_KEY")
    assert any("spark.hadoop.fs.s3a.secret.key=${S3_SECRET_KEY}" in note for note in built.notes)


@pytest.mark.parametrize("target", TARGETS)
def test_every_command_starts_the_same_worker(target: str):
    """The run, the person and the settings of the project, whatever carries them."""
    built = build_command(target, samples.job(), replace(samples.FILLED[target], parallel=5))
    root, *rest = worker_of(built)[1:]
    assert rest == ["--as", "ana", "run", samples.RUN, "--parallel", "5"]
    assert root == {"kubernetes": "/opt/errata/project", "standalone": "/srv/finsight"}.get(target, "./project")
    found = conf_of(built)
    for key, value in samples.CONF.items():
        assert key == "spark.hadoop.fs.s3a.secret.key" or found[key] == value
    assert samples.RUN in " ".join(built.argv[: built.argv.index("--conf")] if "--conf" in built.argv else built.argv)


@pytest.mark.parametrize("target", TARGETS)
def test_the_cap_on_cores_is_in_the_command(target: str):
    """Sixteen cores: as cores on a standalone cluster, as four executors of four elsewhere."""
    found = conf_of(build_command(target, samples.job(), SubmitOptions()))
    if target == "standalone":
        assert found["spark.cores.max"] == "16"
    else:
        assert found["spark.dynamicAllocation.maxExecutors"] == found["spark.executor.instances"] == "4"
    free = conf_of(build_command(target, samples.job(throttle=Throttle()), SubmitOptions()))
    assert not {"spark.cores.max", "spark.dynamicAllocation.maxExecutors"} & set(free)


def test_on_emr_serverless_the_cap_counts_the_executors_of_that_service():
    """Its executors have four cores when nobody says otherwise."""
    found = conf_of(build_command("emr-serverless", samples.job(spark_conf={}), SubmitOptions()))
    assert found["spark.executor.cores"] == "4"
    assert found["spark.dynamicAllocation.maxExecutors"] == "4"


def test_the_throttle_of_the_product_wins():
    """It stands instead of the project's, as in a run."""
    given = samples.project()
    product = replace(given.products["fin.daily_revenue"], throttle=Throttle(cores=2))
    job = build_job(
        replace(given, products={product.name: product}), samples.MANIFEST, samples.RUN, "ana", samples.HERE
    )
    assert job.cores == 2


@pytest.mark.parametrize("target", CLUSTER)
@pytest.mark.parametrize("where", ["ledger", "catalog"])
def test_a_sqlite_file_is_refused_where_the_driver_runs_elsewhere(target: str, where: str):
    """Another machine cannot see the file, and would make one of its own."""
    given: dict[str, Any] = {"ledger": "sqlite:////srv/finsight/.errata/ledger.db"}
    if where == "catalog":
        given = {"catalogs": {"lake": Catalog("lake", "jdbc", "sqlite:////srv/c.db", "s3://lake/wh")}}
    with pytest.raises(Refused, match="another machine cannot see") as refused:
        build_command(target, samples.job(**given), SubmitOptions())
    assert TARGETS[target].guide in str(refused.value.hint)


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if "client" in target.modes])
def test_a_driver_of_this_machine_may_use_a_sqlite_ledger(target: str):
    """Executors never open the ledger; the note says that all workers must start here."""
    built = build_command(target, samples.job(ledger="sqlite:////srv/l.db"), SubmitOptions(deploy_mode="client"))
    assert any("start every worker on this machine: the ledger" in note for note in built.notes)
    assert worker_of(built)[1] == "/srv/finsight"


def test_a_deploy_mode_that_a_target_cannot_do_is_refused():
    """Spark's standalone master takes no Python driver, and steps have no client."""
    with pytest.raises(UsageError, match="standalone takes client"):
        build_command("standalone", samples.job(), SubmitOptions(deploy_mode="cluster"))
    with pytest.raises(UsageError, match="expected one of emr-serverless"):
        build_command("mesos", samples.job(), SubmitOptions())


def test_the_master_of_the_project_is_used_where_it_fits():
    """A local master says nothing about a cluster; --master wins over both."""
    own = samples.job(spark_master="spark://10.0.0.1:7077")
    assert "spark://10.0.0.1:7077" in build_command("standalone", own, SubmitOptions()).argv
    assert "spark://b:1" in build_command("standalone", own, SubmitOptions(master="spark://b:1")).argv
    assert "<spark://host:7077>" in build_command("standalone", samples.job(), SubmitOptions()).argv


def test_kubernetes_takes_archives_when_they_are_given():
    """Else everything is in the image."""
    built = build_command("kubernetes", samples.job(), SubmitOptions(at="s3a://jobs"))
    assert "s3a://jobs/environment.tar.gz#environment,s3a://jobs/project.tar.gz#project" in built.argv
    assert worker_of(built)[1] == "./project"


def test_jars_of_the_project_are_shipped_too():
    """Beside the pinned ones, as the project names them."""
    job = samples.job(spark_conf={"spark.jars": "s3://lake/own.jar"})
    for target in TARGETS:
        built = build_command(target, job, SubmitOptions())
        assert "postgresql-42.7.8.jar,s3://lake/own.jar" in " ".join(built.argv)


@pytest.mark.parametrize(
    "state, said", [("planned", "approves"), ("failed", "first: errata plan"), ("staged", "nothing to do")]
)
def test_a_run_that_no_worker_can_help_is_pointed_out(state: str, said: str):
    """The command is printed all the same: it may be prepared before."""
    job = replace(samples.job(), state=state, next_command="errata plan fin.sales … --supersede r1")
    assert said in build_command("yarn", job, SubmitOptions()).notes[0]


def test_local_data_is_pointed_out():
    """A path says nothing about which machines see it."""
    job = samples.job(catalogs={"lake": Catalog("lake", "rest", "https://c", "/mnt/lake")})
    assert any("must see /mnt/lake" in note for note in build_command("yarn", job, SubmitOptions()).notes)


def test_a_project_without_the_product_is_refused():
    """The wrong directory, most likely."""
    with pytest.raises(UsageError, match=r"fin\.daily_revenue"):
        samples.job(products={})


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("target", TARGETS)
def test_a_shell_starts_exactly_these_words(target: str, workers: int, tmp_path: Path):
    """The text, run by a real shell, starts the program once per worker, with the variables filled in."""
    program = tmp_path / ("aws" if "emr" in target else "spark-submit")
    program.write_text(f"#!/bin/sh\nout=$(mktemp {tmp_path}/call.XXXXXX)\nprintf '%s\\0' \"$@\" > $out\n")
    program.chmod(0o755)
    built = build_command(target, samples.job(), replace(samples.FILLED[target], workers=workers))
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LEDGER_PASSWORD": samples.PASSWORD, "S3_SECRET_KEY": "k"}
    subprocess.run(["sh", "-eu", "-c", "\n".join(render_script(built))], env=environ, check=True)
    expected = [word.replace("${LEDGER_PASSWORD}", samples.PASSWORD) for word in built.argv[1:]]
    expected = [word.replace("${S3_SECRET_KEY}", "k") for word in expected]
    calls = [path.read_text().split("\0")[:-1] for path in tmp_path.glob("call.*")]
    assert calls == [expected] * workers


@pytest.mark.parametrize("word", ["", "a b", "it's", "$HOME", "`id`", "a\nb", "${OTHER}", "<x>", 'x"y', "${PW}${PW}!"])
def test_words_reach_the_program_as_they_are(word: str):
    """Whatever is in them, but for the variables that are named."""
    done = subprocess.run(
        ["sh", "-c", f"printf %s {quoted(word, ['PW'])}"],
        env={"PW": "a'b \"c$d"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == word.replace("${PW}", "a'b \"c$d")
