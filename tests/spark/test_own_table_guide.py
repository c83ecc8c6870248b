"""The guide "Your own table in fifteen minutes", as written: its files are saved and its commands typed, in order."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from errata.engines.iceberg.catalogs import java_properties
from errata.project import load_project
from support.guides import GuideReader

WRONG = [f"2026-06-{day}" for day in range(11, 21)]


def read_wrong_days(project: Path) -> list[str]:
    """Days of the table on which a net amount is not amount minus discount, read by pyiceberg."""
    lake = load_catalog("lake", type="sql", uri=f"sqlite:///{project}/lake/catalog.db")
    rows = lake.load_table("shop.orders").scan().to_arrow().to_pylist()
    lake.close()
    assert len(rows) == 3600
    wrong = {
        row["event_ts"].date().isoformat()
        for row in rows
        if row["net"] != row["amount"] - Decimal(int(row["order_id"].removeprefix("o-")) % 5)
    }
    return sorted(wrong)


def test_the_guide_leads_from_a_table_to_its_correction_and_back(
    tmp_path: Path, spark: SparkSession, base_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten wrong days are right once published, and the day that is rolled back is wrong again."""
    wanted = {"make_table.py": WRONG, "publish": []}

    def look(command: str) -> None:
        if command in wanted:
            assert read_wrong_days(reader.directory) == wanted[command]

    reader = GuideReader(tmp_path, spark, base_spark, look)
    reader.follow("your-own-table.md", monkeypatch)
    assert read_wrong_days(reader.directory) == ["2026-06-15"]
    assert reader.typed == [
        "init", "doctor", "adopt", "check", "try", "plan", "approve", "run", "validate", "diff", "publish", "why",
        "rollback",
    ]  # fmt: skip
    ours = java_properties(load_project(reader.directory, environ={}).catalogs["lake"])
    for key, value in reader.builder.settings.items():
        if key.startswith("spark.sql.catalog.lake."):
            assert ours[key.removeprefix("spark.sql.catalog.lake.")].partition("?")[0] == value, key
