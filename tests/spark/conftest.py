"""Everything in this directory needs Spark and carries the marker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from errata.engines.iceberg.commits.java import JavaIceberg
from support.bare import BareTable, bare_iceberg


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this directory carries the marker ``spark``."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def java(gateway: Any, tmp_path_factory: pytest.TempPathFactory) -> JavaIceberg:
    """The Iceberg adapter on a catalog of its own, without Spark."""
    return bare_iceberg(gateway, tmp_path_factory.mktemp("bare"))


@pytest.fixture
def table(java: JavaIceberg) -> BareTable:
    """A table of metadata alone, with a file for each of three days."""
    made = BareTable(java)
    made.append(*[made.file(day) for day in ("2026-01-01", "2026-01-02", "2026-01-03")])
    return made
