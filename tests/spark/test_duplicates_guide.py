"""The guide on a table that already holds duplicates, as written: its files are saved and its commands typed."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from support.guides import GuideReader

PAGE = "repair-duplicates.md"

DAYS = ("2026-06-05", "2026-06-06", "2026-06-07")


def read_table(project: Path) -> tuple[dict[str, Counter[str]], dict[str, Decimal]]:
    """By pyiceberg: how often each payment is there, by day, and the amount of the one that was loaded last."""
    lake = load_catalog("lake", type="sql", uri=f"sqlite:///{project}/lake/catalog.db")
    rows = lake.load_table("shop.payments").scan().to_arrow().to_pylist()
    lake.close()
    copies: dict[str, Counter[str]] = {}
    amounts = {}
    for row in sorted(rows, key=lambda row: row["loaded_at"]):
        copies.setdefault(row["day"].isoformat(), Counter())[row["payment_id"]] += 1
        amounts[row["payment_id"]] = row["amount"]
    return copies, amounts


@pytest.mark.slow
def test_the_guide_leaves_one_copy_of_each_row_and_loses_none(
    tmp_path: Path, spark: SparkSession, base_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: three days with copies, one of which differs. Afterwards every payment is there once, the newest."""
    seen = {}

    def look(command: str) -> None:
        if command in ("make_table.py", "publish"):
            seen[command] = read_table(reader.directory)

    reader = GuideReader(tmp_path, spark, base_spark, look)
    reader.follow(PAGE, monkeypatch)
    (before, newest), (after, amounts) = seen["make_table.py"], seen["publish"]
    assert sorted(day for day, copies in before.items() if max(copies.values()) > 1) == list(DAYS)
    assert {day: set(copies) for day, copies in after.items()} == {day: set(copies) for day, copies in before.items()}
    assert {count for copies in after.values() for count in copies.values()} == {1}
    assert amounts == newest
    assert amounts["p-14"] == Decimal("99.00")
    assert reader.typed == ["init", "check", "try", "plan", "approve", "run", "validate", "diff", "publish"]


@pytest.mark.slow
def test_a_payment_that_comes_after_the_copy_was_made_is_not_lost(
    tmp_path: Path, spark: SparkSession, base_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has it and the input has not, so that the gate blocks and nothing is published."""

    def write_late(command: str) -> None:
        if command == "set_aside.sql":
            reader.spark.sql(
                f"INSERT INTO lake.shop.payments VALUES ('late', date'{DAYS[1]}', 1.00, timestamp'2026-06-14 00:00:00')"
            )

    reader = GuideReader(tmp_path, spark, base_spark, write_late)
    with pytest.raises(AssertionError, match=r"count\(distinct payment_id\)"):
        reader.follow(PAGE, monkeypatch)
    assert reader.typed[-1] == "run"
    assert read_table(reader.directory)[0][DAYS[1]]["late"] == 1
