"""A project with two governed tables, made without Spark, and the real command line on it."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, NestedField, StringType

import errata
from errata.cli.app.session import CliEnvironment as Outside
from errata.cli.main import main
from errata.client import Client

PROJECT = """
project: test
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
limits: {max_partitions: 400}
"""
SALES = """
product: fin.sales
owner: finance
target: {table: lake.fin.sales, partition: {column: day, grain: day}, key: [day, account]}
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  raw: {table: lake.fin.raw, partition: day}
"""
REGIONS = """
product: fin.regions
owner: finance
target: {table: lake.fin.regions, partition: {column: region, grain: value}, key: [region, account]}
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  raw: {table: lake.fin.raw_regions, partition: region}
"""
TRANSFORM = "def build(ctx, raw):\n    return raw\n"
DAYS = tuple(date(2026, 1, day) for day in range(1, 5))


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


@dataclass
class Lab:
    """The project, open; ``errata`` runs one command on it."""

    root: Path
    client: Client
    environ: Mapping[str, str] = field(default_factory=dict)

    def errata(self, *arguments: str, person: str = "ana") -> Result:
        out, err = io.StringIO(), io.StringIO()
        world = Outside(
            open_project=lambda *_, **__: Kept(self.client),
            out=out,
            err=err,
            interactive=False,
            environ={"ERRATA_USER": person, **self.environ},
            width=100,
        )
        return Result(main(arguments, world), out.getvalue(), err.getvalue())

    def plan(self, reason: str = "doubled", product: str = "fin.sales", partitions: str = "2026-01-01") -> Any:
        return self.client.plan(product, partitions=partitions, reason=reason, as_="ana")


class Kept:
    """A client that the end of a command does not close."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def close(self) -> None:
        """Stay open for the next command."""


def make_project(root: Path, *, project: str = PROJECT, products: Mapping[str, str] | None = None) -> Path:
    """Files and tables; every value was written twice as high as it should be."""
    for name, text in {
        "errata.yaml": project,
        "transforms/sales.py": TRANSFORM,
        **{f"products/{key}.yaml": text for key, text in (products or {"sales": SALES, "regions": REGIONS}).items()},
    }.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text).lstrip(), "utf-8")
    (root / ".errata").mkdir(exist_ok=True)
    return root


def make_tables(root: Path, regions: tuple[str, ...] = ("eu", "us")) -> None:
    """Four tables: days and regions, raw and governed."""
    place = root / ".errata"
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}/warehouse"
    )
    catalog.create_namespace_if_not_exists("fin")
    for name in ("sales", "raw", "regions", "raw_regions"):
        by_day = name in ("sales", "raw")
        column, kind = ("day", DateType()) if by_day else ("region", StringType())
        schema = Schema(
            NestedField(1, column, kind),
            NestedField(2, "account", StringType()),
            NestedField(3, "gross", DecimalType(12, 2)),
        )
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), column))
        table = catalog.create_table(f"fin.{name}", schema, partition_spec=spec, properties={"format-version": "2"})
        keys: Any = DAYS if by_day else regions
        rows = [{column: key, "account": f"a{n}", "gross": Decimal("1.00")} for key in keys for n in range(2)]
        table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    catalog.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One project for the tests of a module; nothing in it needs Java."""
    root = make_project(tmp_path_factory.mktemp("outside") / "project")
    make_tables(root)
    with errata.open(str(root), narrate=lambda _: None) as client:
        yield Lab(root, client)
