"""A project with two governed tables, made without Spark, and the real command line on it."""

from __future__ import annotations

import dataclasses
import io
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, NestedField, StringType

from errata.cli.app.session import CliEnvironment as Outside
from errata.cli.main import main
from errata.client import Client
from errata.wiring import build_client, open_workspace
from errata.workspace import Engines, Workspace

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
    workspace: Workspace
    environ: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = build_client(self.workspace)

    @classmethod
    @contextmanager
    def open(cls, root: Path) -> Iterator[Lab]:
        """The project in this directory."""
        lab = cls(root, open_workspace(root, narrate=lambda _: None))
        with lab.client:
            lab.client.create_ledger()
            yield lab

    def failing(self, port: str, cause: Exception) -> Lab:
        """The same project, where this port of the engines always fails."""
        engines = cast("Engines", FailingPort(self.workspace.engines, port, cause))
        return Lab(self.root, dataclasses.replace(self.workspace, engines=engines), self.environ)

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


class FailingPort:
    """Engines of which one port raises ``cause`` whatever is asked."""

    def __init__(self, engines: Engines, port: str, cause: Exception) -> None:
        self._engines, self._port, self._cause = engines, port, cause

    def __getattr__(self, name: str) -> Any:
        return Failing(self._cause) if name == self._port else getattr(self._engines, name)


class Failing:
    """A port, or a method, whose every call fails."""

    def __init__(self, cause: Exception) -> None:
        self._cause = cause

    def __getattr__(self, name: str) -> Failing:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise self._cause


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
    with Lab.open(root) as lab:
        yield lab
