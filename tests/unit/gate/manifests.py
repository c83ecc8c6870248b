"""Small run manifests for tests of validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.model.manifest import FORMAT, Code, Estimate, InputPin, Manifest, TargetPin
from errata.model.partition import Grain
from errata.model.product import Limits

COLUMNS = {
    "business_date": "date",
    "account_id": "string",
    "currency": "string",
    "event_count": "long",
    "gross": "decimal(18, 2)",
    "is_open": "boolean",
    "produced_by_run_id": "string",
}


def target_pin(
    table: str = "lake.fin.daily_revenue",
    column: str = "business_date",
    column_type: str = "date",
    grain: Grain = Grain.DAY,
    columns: Mapping[str, str] = COLUMNS,
    key: tuple[str, ...] = ("business_date", "account_id", "currency"),
) -> TargetPin:
    """A target without expected files."""
    return TargetPin(
        table=table,
        table_uuid="uuid",
        base_snapshot_id=None,
        schema_id=0,
        spec_id=0,
        column=column,
        column_type=column_type,
        transform="identity",
        grain=grain,
        columns=columns,
        key=key,
        expected_part="",
        fingerprints={},
        total_partitions=0,
    )


def input_pin(name: str, location: str, partition: str | None, column_type: str | None, **changes: Any) -> InputPin:
    """An Iceberg table as input, unless changed."""
    facts: dict[str, Any] = {
        "kind": "table",
        "lookback": 0,
        "lookahead": 0,
        "input_partitions": (),
        "fingerprints": {},
        "rows": 0,
        "bytes": 0,
        "file_count": 0,
    }
    return InputPin(name=name, location=location, partition=partition, column_type=column_type, **(facts | changes))


def manifest(**changes: Any) -> Manifest:
    """A run over two days of one product."""
    facts: dict[str, Any] = {
        "format": FORMAT,
        "ledger_id": "ledger",
        "project": "finsight",
        "product": "fin.daily_revenue",
        "owner": "finance-data",
        "kind": "restate",
        "reason": "FX bug",
        "requested_by": "ana",
        "single_user": False,
        "as_of": "2026-02-15T00:00:00Z",
        "partitions": ("2026-01-01", "2026-01-02"),
        "order": "newest",
        "target": target_pin(),
        "inputs": (),
        "code": Code("t:build", "1", {}, "0" * 64, "0" * 64, None, {}, None, git_dirty=False, errata_version="0"),
        "chunks": (),
        "estimate": Estimate(0, 0, 0, 0, "0", ""),
        "limits": Limits(),
    }
    return Manifest(**(facts | changes))
