"""Catalog configuration for pyiceberg, the Java API and Spark. Pure, except for the look at a database file.

All of them must use the same catalog name and database, because the JDBC catalog keys its rows by name. ``properties``
from the project file are applied last, so they override anything set here.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from errata.engines.s3 import is_s3, to_iceberg_properties
from errata.errors import SetupError, UsageError
from errata.model.product import Catalog

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""Names allowed in product files: no character with a meaning in paths, URLs or SQL."""
_TYPES = ("jdbc", "rest", "glue", "hive")
_SQLITE_OPTIONS = "busy_timeout=30000&journal_mode=WAL"
_CATALOG_TABLES = frozenset({"iceberg_tables", "iceberg_namespace_properties"})
_SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
UNTOUCHED = "nothing was read from the catalog, and nothing was changed in it"
_S3_FILES = "org.apache.iceberg.aws.s3.S3FileIO"


def split_table(table: str) -> tuple[str, tuple[str, ...]]:
    """Split ``lake.fin.daily`` into catalog and identifier.

    >>> split_table("lake.fin.daily")
    ('lake', ('fin', 'daily'))
    """
    catalog, *identifier = table.split(".")
    if len(identifier) < 2 or not all(_NAME.fullmatch(part) for part in (catalog, *identifier)):
        raise UsageError(f"table {table!r} was refused; expected catalog.namespace.table")
    return catalog, tuple(identifier)


def sqlite_path(uri: str | None) -> str | None:
    """The database file of a SQLAlchemy or JDBC address of SQLite; None for any other address.

    >>> sqlite_path("sqlite:////lake/c.db"), sqlite_path("jdbc:sqlite:/lake/c.db?x=1"), sqlite_path("postgresql://h/d")
    ('/lake/c.db', '/lake/c.db', None)
    """
    text = (uri or "").removeprefix("jdbc:").partition("?")[0]
    if not text.startswith("sqlite:"):
        return None
    path = text.removeprefix("sqlite:")
    return path.removeprefix("//").removeprefix("/") if path.startswith("////") else path.removeprefix("//")


def find_missing_file(catalog: Catalog) -> str | None:
    """Path of the SQLite database of a catalog if it does not exist; None if it does, or needs none."""
    path = sqlite_path(catalog.uri) if catalog.type == "jdbc" else None
    return path if path and not Path(path).exists() else None


def refuse_missing_file(catalog: Catalog) -> None:
    """Refuse a catalog without its file, which SQLite creates on connect: an empty catalog would hide the cause.

    Not ``NotFound``, which callers take for a table that was dropped.
    """
    if path := find_missing_file(catalog):
        raise SetupError(
            f"catalog {catalog.name} was not found; expected a SQLite database at {path}",
            state=UNTOUCHED,
            hint=f"correct catalogs.{catalog.name}.uri in errata.yaml\nthen: errata doctor",
            catalog=catalog.name,
        )


def pyiceberg_properties(catalog: Catalog) -> dict[str, str]:
    """Properties for ``pyiceberg.catalog.load_catalog(catalog.name, **…)``."""
    _check_catalog(catalog)
    match catalog.type:
        case "jdbc":
            own = {"type": "sql", "uri": _sqlalchemy_uri(catalog.uri or "")}
            if not sqlite_path(catalog.uri):
                own["pool_pre_ping"] = "true"  # a long run may outlive a restart of the database
        case _:
            # rest: credential, token, scope, oauth2-server-uri and prefix are properties with the same names everywhere
            own = {"type": catalog.type} | ({"uri": catalog.uri} if catalog.uri else {})
    return own | _warehouse_property(catalog) | to_iceberg_properties(catalog.s3) | dict(catalog.properties)


def java_properties(catalog: Catalog) -> dict[str, str]:
    """Properties for ``CatalogUtil.buildIcebergCatalog``, and for Spark under ``spark.sql.catalog.<name>.``."""
    _check_catalog(catalog)
    match catalog.type:
        case "jdbc":
            own = {"jdbc.schema-version": "V1", **_jdbc_properties(catalog.uri or "")}
        case _:
            own = {"uri": catalog.uri} if catalog.uri else {}
    # rest asks its server and glue uses S3FileIO by default; the other two would go through Hadoop
    if catalog.type in ("jdbc", "hive") and is_s3(catalog.warehouse):
        own["io-impl"] = _S3_FILES
    found = (
        {"type": catalog.type, "cache-enabled": "false"}
        | own
        | _warehouse_property(catalog)
        | to_iceberg_properties(catalog.s3)
    )
    found |= dict(catalog.properties)
    if "s3.region" in found:
        found.setdefault("client.region", found["s3.region"])
    return found


def spark_conf(catalog: Catalog) -> dict[str, str]:
    """Spark settings of the catalog; session extensions are set by the session."""
    prefix = f"spark.sql.catalog.{catalog.name}"
    return {prefix: _SPARK_CATALOG} | {f"{prefix}.{key}": value for key, value in java_properties(catalog).items()}


def _check_catalog(catalog: Catalog) -> None:
    if catalog.type not in _TYPES:
        raise UsageError(f"catalog {catalog.name!r} has type {catalog.type!r}; expected one of {', '.join(_TYPES)}")
    if catalog.type == "jdbc" and not catalog.uri:
        raise UsageError(f"catalog {catalog.name!r} has no uri; expected sqlite:///… or postgresql+psycopg://…")


def _warehouse_property(catalog: Catalog) -> dict[str, str]:
    if not catalog.warehouse:
        return {}
    local = catalog.warehouse.startswith("/")
    return {"warehouse": f"file://{catalog.warehouse}" if local else catalog.warehouse}


def _sqlalchemy_uri(uri: str) -> str:
    if path := sqlite_path(uri):
        return f"sqlite:///{path}?timeout=30"
    text = uri.removeprefix("jdbc:")
    scheme, colon, rest = text.partition(":")
    return "postgresql+psycopg" + colon + rest if scheme == "postgresql" else text


def _has_catalog_tables(path: str) -> bool:
    """Whether the SQLite database exists and has the tables of an Iceberg catalog."""
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return names >= _CATALOG_TABLES


def _jdbc_properties(uri: str) -> dict[str, str]:
    """Separate the address from user and password, because messages show the address and must not show the others."""
    if path := sqlite_path(uri):
        # Iceberg 1.10 looks for its tables and never closes that query, so that its connection reads an old state for
        # ever and every commit fails with SQLITE_BUSY_SNAPSHOT; 1.11 closes it. Where they exist, nothing need look.
        known = {"jdbc.init-catalog-tables": "false"} if _has_catalog_tables(path) else {}
        return {"uri": f"jdbc:sqlite:{path}?{_SQLITE_OPTIONS}", **known}
    if uri.startswith("jdbc:"):
        return {"uri": uri}
    parts = urlsplit(uri)
    host = parts.hostname or "localhost"
    place = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    query = f"?{parts.query}" if parts.query else ""
    found = {"uri": f"jdbc:{parts.scheme.partition('+')[0]}://{place}{port}{parts.path}{query}"}
    if parts.username:
        found["jdbc.user"] = unquote(parts.username)
    if parts.password:
        found["jdbc.password"] = unquote(parts.password)
    return found
