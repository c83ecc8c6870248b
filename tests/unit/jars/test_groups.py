"""Which groups of the jar list a project needs, and how a missing one is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.errors import SetupError
from errata.jars import find_required_groups, list_jars, load_jar_groups, require_jars
from errata.model.kafka.declaration import KafkaTopic
from errata.model.partition import Grain
from errata.model.product import S3, Catalog, Input, Product, Project, Target, Transform

SQLITE = Catalog("lake", "jdbc", "sqlite:////lake/catalog.db", "/lake/warehouse")


def project(catalog: Catalog = SQLITE, files: str = "/lake/raw/{d}/*.parquet", **more: Any) -> Project:
    raw = Input("raw", files=files, partition="d")
    product = Product("p", "o", Target("lake.n.t", "d", Grain.DAY), Transform("m:f", "1"), (raw,))
    return Project("x", "/lake", "", {catalog.name: catalog}, {"p": product}, **more)


@pytest.mark.parametrize(
    "given,expected",
    [
        (project(), ("spark",)),
        (project(Catalog("lake", "jdbc", "postgresql+psycopg://db/c", "/wh")), ("spark", "postgres")),
        (project(Catalog("lake", "jdbc", "jdbc:postgresql://db/c", "s3://b/wh")), ("spark", "postgres", "s3")),
        (project(Catalog("lake", "jdbc", "sqlite:////c.db", "s3a://b/wh")), ("spark", "s3")),
        (project(Catalog("lake", "glue", None, "s3://b/wh")), ("spark", "s3")),
        (project(Catalog("lake", "hive", "thrift://h:9083")), ("spark",)),
        (project(Catalog("lake", "rest", "http://h:8181")), ("spark",)),
        (project(Catalog("lake", "rest", "http://h:8181", None, {"s3.endpoint": "http://m:9000"})), ("spark", "s3")),
        (project(Catalog("lake", "rest", "http://h:8181"), s3=S3(region="eu-west-1")), ("spark", "s3")),
        (project(files="s3://raw/{d}/*.parquet"), ("spark", "s3")),
        (project(files="s3a://raw/{d}/*.parquet"), ("spark", "s3")),
    ],
)
def test_catalogs_and_places_decide_the_groups(given: Project, expected: tuple[str, ...]):
    """PostgreSQL needs its driver; S3 anywhere, and Glue, need the AWS jars; nothing else does."""
    assert find_required_groups(given) == expected


def test_a_product_that_reads_a_topic_needs_the_jars_of_kafka():
    """Others do not fetch them."""
    given = project()
    source = Input("raw", kafka=KafkaTopic("c", "t"), partition="d")
    reading = replace(given.products["p"], inputs=(source,))
    assert find_required_groups(replace(given, products={"p": reading})) == ("spark", "kafka")


def test_a_missing_group_is_one_sentence_with_its_command(tmp_path: Path):
    """The hint names exactly the groups whose jars are missing."""
    with pytest.raises(SetupError, match=r"iceberg-aws-bundle:1\.1") as missing:
        require_jars(tmp_path, jars=list_jars("s3"))
    assert missing.value.hint == "errata jars fetch --group s3"
    with pytest.raises(SetupError) as both:
        require_jars(tmp_path, jars=list_jars("spark", "postgres"))
    assert both.value.hint == "errata jars fetch --group spark --group postgres"
    with pytest.raises(SetupError) as usual:
        require_jars(tmp_path)
    assert usual.value.hint == "errata jars fetch"


def test_the_shipped_groups_are_those_that_projects_can_need():
    """No group is in the list for nothing."""
    assert set(load_jar_groups()) == {"spark", "postgres", "s3", "kafka"}
