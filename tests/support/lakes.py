"""Catalogs to run a suite on: each as the project file says it and, written apart, as pyiceberg opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Lake", "postgres_lake", "rest_lake", "sqlite_lake"]


@dataclass(frozen=True)
class Lake:
    """One empty catalog ``lake``."""

    yaml: str  # the value of ``catalogs.lake``
    pyiceberg: Mapping[str, str] = field(repr=False)
    storage: str = "{}"  # the value of ``storage``


def sqlite_lake(root: Path) -> Lake:
    """A database file in the project."""
    place = root / ".errata"
    return Lake(
        '{type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}',
        {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/warehouse"},
    )


def postgres_lake(root: Path, url: str) -> Lake:
    """A database of a PostgreSQL server; files in the project."""
    return Lake(
        f'{{type: jdbc, uri: "{url}", warehouse: .errata/warehouse}}',
        {"type": "sql", "uri": url, "warehouse": f"file://{root}/.errata/warehouse", "pool_pre_ping": "true"},
    )


def rest_lake(url: str) -> Lake:
    """A REST server, which knows where the files are."""
    return Lake(f'{{type: rest, uri: "{url}"}}', {"type": "rest", "uri": url})
