"""The partitions of a copy in Snowflake: each row belongs to one, and a condition selects exactly its rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from copies.snowflake_subject import make_account
from errata.engines.copies.snowflake_copies import SnowflakeCopies
from errata.model.copy.measure import measure_rows
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain
from errata.testing.contracts.copies import Rows
from support.fakesnow import FakeSnowflake

STARTS = ("2026-01-31T23:59:59.999999", "2026-02-01T00:00", "1969-07-20T03:05")
HOURS = [datetime.fromisoformat(f"{at}+00:00") for at in STARTS]
DAYS = [hour.date() for hour in HOURS]
LOCAL = [hour.replace(tzinfo=None) for hour in HOURS]
TEXTS = ["a", "it's", "back\\slash", "\\n", "null", '"', "", "né😀", "%", "_", "x'; delete"]


@pytest.mark.parametrize(
    "kind,grain,values",
    [
        *(("timestamptz", grain, HOURS) for grain in (Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR)),
        *(("timestamp", grain, LOCAL) for grain in (Grain.HOUR, Grain.YEAR)),
        *(("date", grain, DAYS) for grain in (Grain.DAY, Grain.MONTH)),
        ("string", Grain.VALUE, TEXTS),
        ("long", Grain.VALUE, [-(2**63), -1, 0, 1, 7, 2**63 - 1]),
        ("string", Grain.DAY, ["2026-01-31", "2026-02-01"]),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)  # fmt: skip
def test_each_partition_has_its_rows_and_no_others(
    fakesnow: FakeSnowflake, snowflake_database: str, kind: str, grain: Grain, values: list[Any]
) -> None:
    """Also for values with quotes and backslashes, hours before 1970, and rows without a value."""
    key, number = CopyColumn("k", "K", kind), CopyColumn("n", "N", "int")
    copy = CopyTable("snow", "PARTS", (key, number), key, grain)
    copies = SnowflakeCopies({"snow": make_account(fakesnow, snowflake_database)})
    rows = [{"K": value, "N": at} for at, value in enumerate([*values, *values, None])]
    copies.load(copy, "errata_stage_1", Rows(copy, rows))
    wanted = measure_rows(copy, rows)
    assert copies.measure(copy, None, staging="errata_stage_1") == wanted
    for name, checksum in wanted.items():
        assert copies.measure(copy, [name], staging="errata_stage_1") == {name: checksum}
    assert copies.measure(copy, list(wanted), staging="errata_stage_1") == wanted
