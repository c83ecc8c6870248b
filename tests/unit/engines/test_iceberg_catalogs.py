from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from errata.engines.iceberg.catalogs import java_properties, pyiceberg_properties, spark_conf, split_table, sqlite_path
from errata.engines.iceberg.commits.java import JavaIceberg
from errata.errors import SetupError, UsageError
from errata.model.product import S3, Catalog

SQLITE = Catalog("lake", "jdbc", "sqlite:////lake/catalog.db", "/lake/warehouse")


def test_sqlite_is_the_same_database_on_both_sides():
    """pyiceberg and Java open one file and one warehouse, with a busy timeout on both sides."""
    assert pyiceberg_properties(SQLITE) == {
        "type": "sql",
        "uri": "sqlite:////lake/catalog.db?timeout=30",
        "warehouse": "file:///lake/warehouse",
    }
    assert java_properties(SQLITE) == {
        "type": "jdbc",
        "uri": "jdbc:sqlite:/lake/catalog.db?busy_timeout=30000&journal_mode=WAL",
        "warehouse": "file:///lake/warehouse",
        "jdbc.schema-version": "V1",
        "cache-enabled": "false",
    }


@pytest.mark.parametrize("uri", ["sqlite:////lake/c.db", "sqlite:/lake/c.db", "jdbc:sqlite:/lake/c.db?x=1"])
def test_every_way_to_write_a_sqlite_address_means_the_same_file(uri: str):
    """Either dialect may be given."""
    assert sqlite_path(uri) == "/lake/c.db"
    given = Catalog("lake", "jdbc", uri)
    assert java_properties(given)["uri"].startswith("jdbc:sqlite:/lake/c.db?")
    assert pyiceberg_properties(given)["uri"].startswith("sqlite:////lake/c.db?")


def test_postgresql_gives_its_password_to_java_beside_the_address():
    """The JDBC address carries no secret; escapes in the password are undone."""
    found = Catalog("lake", "jdbc", "postgresql+psycopg://ana:p%40ss@db:5433/cat?sslmode=require", "s3://b/wh")
    java = java_properties(found)
    assert java["uri"] == "jdbc:postgresql://db:5433/cat?sslmode=require"
    assert (java["jdbc.user"], java["jdbc.password"]) == ("ana", "p@ss")
    assert java["warehouse"] == "s3://b/wh"
    assert pyiceberg_properties(found)["uri"] == "postgresql+psycopg://ana:p%40ss@db:5433/cat?sslmode=require"
    assert pyiceberg_properties(Catalog("lake", "jdbc", "postgresql://db/cat"))["uri"] == "postgresql+psycopg://db/cat"


@pytest.mark.parametrize("kind", ["rest", "glue", "hive"])
def test_other_catalogs_and_extra_properties_pass_through(kind: str):
    """What the project file adds reaches both sides, and wins over defaults."""
    more = {"s3.endpoint": "http://minio:9000", "s3.region": "eu-west-1", "cache-enabled": "true"}
    catalog = Catalog("lake", kind, "http://host:8181", "wh", more)
    for found in (pyiceberg_properties(catalog), java_properties(catalog)):
        assert found.items() >= (more | {"type": kind, "uri": "http://host:8181", "warehouse": "wh"}).items()
    assert java_properties(catalog)["client.region"] == "eu-west-1"


def test_a_warehouse_on_s3_is_read_and_written_without_hadoop():
    """JDBC and Hive would go through Hadoop by default; REST asks its server; the store's settings reach both sides."""
    store = S3("http://minio:9000", "eu-west-1", access_key_id="k", secret_access_key="s")
    jdbc = Catalog("lake", "jdbc", "sqlite:////c.db", "s3://b/wh", s3=store)
    assert java_properties(jdbc)["io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert "io-impl" not in java_properties(Catalog("lake", "rest", "http://h", "s3://b/wh"))
    assert "io-impl" not in java_properties(SQLITE)
    for found in (java_properties(jdbc), pyiceberg_properties(jdbc)):
        assert (found["s3.endpoint"], found["s3.access-key-id"]) == ("http://minio:9000", "k")
    own = Catalog("lake", "jdbc", "sqlite:////c.db", "s3://b/wh", {"s3.endpoint": "http://other"}, store)
    assert java_properties(own)["s3.endpoint"] == "http://other"


def test_an_ipv6_database_keeps_its_brackets():
    """Otherwise its port would be read as a part of the address."""
    found = Catalog("lake", "jdbc", "postgresql+psycopg://ana@[::1]:5433/cat", "/wh")
    assert java_properties(found)["uri"] == "jdbc:postgresql://[::1]:5433/cat"


def test_spark_gets_the_java_properties_under_the_catalogs_name():
    """The JDBC catalog keys its rows by catalog name, so the name is the same everywhere."""
    conf = spark_conf(SQLITE)
    assert conf["spark.sql.catalog.lake"] == "org.apache.iceberg.spark.SparkCatalog"
    assert conf["spark.sql.catalog.lake.uri"] == java_properties(SQLITE)["uri"]


def test_what_is_no_catalog_or_table_is_refused():
    """A type nobody knows, a catalog without an address, a table without a namespace."""
    with pytest.raises(UsageError, match="nessie"):
        java_properties(Catalog("lake", "nessie"))
    with pytest.raises(UsageError, match="no uri"):
        pyiceberg_properties(Catalog("lake", "jdbc"))
    for table in ("lake.t", "lake..t", "t"):
        with pytest.raises(UsageError, match=r"catalog\.namespace\.table"):
            split_table(table)


def test_a_catalog_without_its_file_is_refused_and_not_created(tmp_path: Path):
    """A mistyped address is the cause that is named; an empty catalog in its place would hide it."""
    lake = Catalog("lake", "jdbc", f"sqlite:///{tmp_path}/none.db", str(tmp_path / "warehouse"))
    with pytest.raises(SetupError, match="expected a SQLite database at") as refused:
        JavaIceberg(None, {"lake": lake}).load("lake.fin.sales")
    assert refused.value.state
    assert refused.value.hint == "correct catalogs.lake.uri in errata.yaml\nthen: errata doctor"
    assert not (tmp_path / "none.db").exists()


def test_iceberg_does_not_look_for_the_tables_of_a_sqlite_catalog_that_has_them(tmp_path: Path):
    """The query with which Iceberg 1.10 looks stays open, and then nothing can be committed."""
    catalog = Catalog("lake", "jdbc", f"sqlite:///{tmp_path}/catalog.db", str(tmp_path))
    assert "jdbc.init-catalog-tables" not in java_properties(catalog)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        database.execute("CREATE TABLE iceberg_tables (n int)")
        assert "jdbc.init-catalog-tables" not in java_properties(catalog)
        database.execute("CREATE TABLE iceberg_namespace_properties (n int)")
        database.commit()
    assert java_properties(catalog)["jdbc.init-catalog-tables"] == "false"
