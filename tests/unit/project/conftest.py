"""A small project on disk, whose files tests replace one at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = """\
project: finsight
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/catalog.db", warehouse: .errata/warehouse}
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
"""

PRODUCT = """\
product: fin.daily_revenue
owner: finance-data
target:
  table: lake.fin.daily_revenue
  partition: {column: business_date, grain: day}
  key: [business_date, account_id]
transform: {call: "transforms.daily_revenue:build", version: 2.4.1}
inputs:
  transactions:
    files: "raw/transactions/business_date={business_date}/*.parquet"
    partition: business_date
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a project: ``errata.yaml`` and one product, each replaced or extended as asked."""

    def _write(*, project: str = PROJECT, product: str = PRODUCT, extra: str = "", also: str = "") -> Path:
        (tmp_path / "products").mkdir(exist_ok=True)
        (tmp_path / ".errata" / "warehouse").mkdir(parents=True, exist_ok=True)
        (tmp_path / "errata.yaml").write_text(project + also, encoding="utf-8")
        (tmp_path / "products" / "daily_revenue.yaml").write_text(product + extra, encoding="utf-8")
        return tmp_path

    return _write
