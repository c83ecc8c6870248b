"""A small world for planner tests: one daily product with files, a table and reference data."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from errata.model.consumer.declaration import Consumer
from errata.model.manifest import Code, ExpectedFile, SourceFile
from errata.model.partition import Grain, expand_range
from errata.model.product import Catalog, Input, Product, Project, Protect, Target, Transform
from errata.planning.build import Plan, build_plan
from errata.planning.request import Request
from errata.ports.tables import Column, InputState, PartitionField, PartitionSize, TargetState

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
DAYS = expand_range(Grain.DAY, "2026-01-01", "2026-02-01")
MB = 1024 * 1024

PRODUCT = Product(
    name="fin.daily_revenue",
    owner="finance-data",
    target=Target("lake.fin.daily_revenue", "business_date", Grain.DAY, ("business_date", "account_id")),
    transform=Transform("transforms.daily:build", "2.4.1"),
    inputs=(
        Input("transactions", files="raw/{business_date}/*.parquet", partition="business_date"),
        Input("adjustments", table="lake.raw.adjustments", partition="business_date"),
        Input("fx_rates", table="lake.ref.fx_rates", reference="corrected_truth"),
    ),
)
PROJECT = Project(
    name="finsight",
    root="/finsight",
    ledger="sqlite://",
    catalogs={"lake": Catalog("lake", "jdbc", "sqlite:////finsight/c.db", "/finsight/wh")},
    products={PRODUCT.name: PRODUCT},
    consumers={"exec-dashboard": Consumer("exec-dashboard", (PRODUCT.name,))},
    core_hour_usd="0.0757",
    chunk_bytes=512 * MB,
)
STREAMED = replace(PROJECT, consumers={"fraud": Consumer("fraud", (PRODUCT.name,), kind="iceberg-stream")})
REWOUND = replace(
    PROJECT, consumers={"fraud": Consumer("fraud", (PRODUCT.name,), kind="iceberg-stream", on_replace="rewind")}
)
CODE = Code(
    call="transforms.daily:build",
    version="2.4.1",
    config={},
    zip_digest="1" * 64,
    config_digest="2" * 64,
    lock_digest=None,
    jars={},
    git_commit="8d91ab7" + "0" * 33,
    git_dirty=False,
    errata_version="0.1.0",
)
FIELD = PartitionField("business_date", "date", "identity", Grain.DAY)
TARGET = TargetState(
    table=PRODUCT.target.table,
    table_uuid="7d2f",
    base_snapshot_id="7719",
    base_timestamp_ms=1_768_000_000_000,
    schema_id=0,
    spec_id=0,
    format_version=2,
    columns=tuple(
        Column(name, kind)
        for name, kind in {"business_date": "date", "account_id": "string", "gross": "decimal(18, 2)"}.items()
    ),
    partition_fields=(FIELD,),
    partition_field=FIELD,
    partitions={day: PartitionSize(10, 100, 1) for day in DAYS},
    expected={day: (ExpectedFile(f"s3://lake/{day}.parquet", 10, "data"),) for day in DAYS},
    fingerprints={day: f"t{day}" for day in DAYS},
    properties={"commit.retry.num-retries": "30"},
)
INPUTS = {
    "transactions": InputState(
        name="transactions",
        kind="files",
        location="raw/{business_date}/*.parquet",
        column_type=None,
        partitions={day: PartitionSize(0, 100 * MB, 4, f"f{day}") for day in DAYS},
        newest_ms=1_769_000_000_000,
        files={day: (SourceFile(f"file:///raw/{day}/a.parquet", 100 * MB, "mtime:1"),) for day in DAYS},
        oldest=DAYS[0],
        rows_known=False,
    ),
    "adjustments": InputState(
        name="adjustments",
        kind="table",
        location="lake.raw.adjustments",
        column_type="date",
        partitions={day: PartitionSize(5, MB, 1, f"a{day}") for day in DAYS},
        snapshot_id="8123",
        table_uuid="aa",
        newest_ms=1_768_500_000_000,
        oldest=DAYS[0],
    ),
    "fx_rates": InputState(
        name="fx_rates",
        kind="table",
        location="lake.ref.fx_rates",
        column_type=None,
        partitions={},
        whole=PartitionSize(300, MB, 1, "fx"),
        snapshot_id="1203944182745550012",
        table_uuid="bb",
        newest_ms=1_768_100_000_000,
    ),
}


def ask(**more: Any) -> Request:
    """A request for the first week of January."""
    given: dict[str, Any] = {"product": PRODUCT.name, "reason": "FX bug FIN-231", "requester": "ana"}
    if "partitions" not in more:
        given |= {"start": "2026-01-01", "end": "2026-01-08"}
    return Request(**(given | more))


def plan(request: Request | None = None, **more: Any) -> Plan:
    """The plan of this world, with parts of it replaced by name."""
    world: dict[str, Any] = {
        "product": PRODUCT,
        "project": PROJECT,
        "target": TARGET,
        "inputs": INPUTS,
        "code": CODE,
        "now": NOW,
        "ledger_id": "ledger-1",
    } | more
    names = ("product", "project", "target", "inputs", "code")
    first = [world.pop(name) for name in names]
    return build_plan(request or ask(), *first, **world)


def levels(made: Plan, rule: str) -> list[str]:
    """The levels of one rule's verdicts."""
    return [verdict.level for verdict in made.verdicts if verdict.rule == rule]


def message(made: Plan, rule: str) -> str:
    """What one rule says."""
    return "; ".join(verdict.message for verdict in made.verdicts if verdict.rule == rule)


def without(name: str, *days: str) -> dict[str, InputState]:
    """The inputs with some partitions of one of them gone."""
    left = {day: size for day, size in INPUTS[name].partitions.items() if day not in days}
    return INPUTS | {name: replace(INPUTS[name], partitions=left, oldest=min(left))}


def protected(recent: str = "0d", *locked: str) -> Product:
    """The product with protected partitions."""
    return replace(PRODUCT, protect=Protect(recent, locked))
