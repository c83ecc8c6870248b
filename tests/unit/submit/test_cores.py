"""What a cap on cores means on each kind of cluster, and whose settings win."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import pytest

from errata.engines.spark.runtime.placement import build_driver_settings
from errata.engines.spark.runtime.spark_session import SparkRuntime
from errata.model.product import Project, cluster
from errata.model.product.cluster import build_core_settings, cap_master, classify_master
from errata.model.product.throttle import Throttle

JARS = (Path("/jars/iceberg.jar"), Path("/jars/driver.jar"))
STANDALONE = "spark://10.0.0.5:7077"


def project(master: str = "local[4]", cores: int | None = None, **conf: str) -> Project:
    settings = {f"spark.{key.replace('_', '.')}": value for key, value in conf.items()}
    return Project("finsight", "/p", "sqlite:////p/l.db", {}, {}, master, settings, throttle=Throttle(cores=cores))


def test_examples_in_the_rules_are_true():
    """The doctests of the module."""
    assert doctest.testmod(cluster).failed == 0


@pytest.mark.parametrize(
    "master, cores, expected",
    [
        ("local", 2, "local"),
        ("local[4]", 2, "local[2]"),
        ("local[2]", 4, "local[2]"),
        ("local[*]", 4, "local[4]"),
        ("local[*]", 16, "local[*]"),
        ("local[*,3]", 1, "local[1,3]"),
        ("local[4]", None, "local[4]"),
        (STANDALONE, 2, STANDALONE),
    ],
)
def test_a_local_master_gets_at_most_as_many_threads_as_the_cap(master: str, cores: int | None, expected: str):
    """Threads are lowered, never raised; the machine has eight."""
    assert cap_master(master, cores, 8) == expected


def test_a_standalone_application_is_capped_by_cores_max():
    """The lower of the cap and what the project sets; no cap, no setting."""
    assert build_core_settings("standalone", 4, {}) == {"spark.cores.max": "4"}
    assert build_core_settings("standalone", 4, {"spark.cores.max": "9"}) == {"spark.cores.max": "4"}
    assert build_core_settings("standalone", None, {"spark.cores.max": "9"}) == {}


def test_an_executor_larger_than_the_cap_is_made_smaller():
    """Spark would wait for ever for an executor that the cap forbids."""
    assert build_core_settings("standalone", 2, {"spark.executor.cores": "8"})["spark.executor.cores"] == "2"
    assert build_core_settings("yarn", 2, {"spark.executor.cores": "8"}) == {
        "spark.executor.cores": "2",
        "spark.dynamicAllocation.maxExecutors": "1",
        "spark.executor.instances": "1",
    }


@pytest.mark.parametrize("kind", ["yarn", "kubernetes"])
def test_on_yarn_and_kubernetes_the_cap_counts_executors(kind: str):
    """Executors times cores each stay within the cap, with static and with dynamic allocation."""
    found = build_core_settings(kind, 10, {"spark.executor.cores": "4", "spark.executor.instances": "1"})
    assert found == {
        "spark.executor.cores": "4",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.executor.instances": "1",
    }


def test_without_a_size_executors_have_one_core():
    """A cluster's own default could be larger, and the cap would not hold."""
    assert build_core_settings("yarn", 3, {})["spark.executor.cores"] == "1"


def test_one_machine_reads_jars_from_the_class_path_and_a_cluster_is_sent_them():
    """Executors of another machine have no jars of their own."""
    local, remote = build_driver_settings(project(), JARS), build_driver_settings(project(STANDALONE), JARS)
    assert "spark.jars" not in local
    assert remote["spark.jars"] == "/jars/iceberg.jar,/jars/driver.jar"
    assert (
        local["spark.driver.extraClassPath"]
        == remote["spark.driver.extraClassPath"]
        == "/jars/iceberg.jar:/jars/driver.jar"
    )
    assert "spark.hadoop.fs.file.impl" in local
    assert "spark.hadoop.fs.file.impl" not in remote


def test_jars_of_the_project_are_sent_beside_the_pinned_ones():
    """A driver class that the project adds itself is not lost."""
    assert build_driver_settings(project(STANDALONE, jars="/own.jar"), JARS)["spark.jars"].endswith(
        "driver.jar,/own.jar"
    )
    assert build_driver_settings(project(jars="/own.jar"), JARS)["spark.jars"] == "/own.jar"


def test_the_cap_of_the_project_reaches_the_driver():
    """As threads on one machine, as a setting on a cluster."""
    assert build_driver_settings(project("local[8]", 3), JARS)["spark.master"] == "local[3]"
    assert build_driver_settings(project(STANDALONE, 3), JARS)["spark.cores.max"] == "3"
    assert build_driver_settings(project(STANDALONE, 3, cores_max="64"), JARS)["spark.cores.max"] == "3"


def test_what_spark_submit_sets_is_never_contradicted():
    """Master, name, jars and every --conf of the command line win over the project's settings and its cap."""
    submitted = {
        "spark.master": STANDALONE,
        "spark.app.name": "errata bf-1",
        "spark.jars": "file:/shipped/iceberg.jar",
        "spark.cores.max": "6",
        "spark.executor.memory": "8g",
        "spark.ui.enabled": "true",
    }
    settings = build_driver_settings(project("local[4]", 2, executor_memory="1g"), (), submitted)
    assert {key: settings[key] for key in submitted} == submitted
    assert "spark.driver.extraClassPath" not in settings
    assert "spark.driver.host" not in settings


def test_what_spark_submit_leaves_open_comes_from_the_project():
    """Settings and the cap fill in what the command line does not say."""
    given = replace(project("local[4]", 2, executor_memory="1g"))
    settings = build_driver_settings(given, (), {"spark.master": STANDALONE})
    assert settings["spark.executor.memory"] == "1g"
    assert settings["spark.cores.max"] == "2"
    assert "IcebergSparkSessionExtensions" in settings["spark.sql.extensions"]


def test_kinds_are_told_by_the_master():
    """Only Spark's own spellings of a local master are local."""
    assert classify_master("localhost") != "local"
    assert classify_master("local[*, 2]") != "local"


def test_the_limits_of_a_run_hold_its_driver():
    """A product may have a throttle of its own, and it is known only when its run starts."""
    runtime = SparkRuntime(project(STANDALONE, 8), (), Path("/nowhere/spark.log"))
    assert runtime.settings["spark.cores.max"] == "8"
    runtime.hold_to(Throttle(cores=2))
    assert runtime.settings["spark.cores.max"] == "2"
