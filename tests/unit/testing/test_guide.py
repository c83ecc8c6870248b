"""The examples of the guide on tests work as printed; the one that needs Spark is run with the tests of Spark."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/guides/test-your-transforms.md"
PROJECT = """
project: guide
ledger: sqlite:///.errata/ledger.db
catalogs:
  lake: {type: jdbc, uri: "sqlite:///.errata/none.db", warehouse: .errata/none}
people:
  ana: {roles: [requester, operator]}
  bo: {roles: [approver, publisher]}
"""
PRODUCT = """
product: fin.daily_revenue
owner: finance
target:
  table: lake.fin.daily_revenue
  partition: {column: business_date, grain: day}
  key: [business_date, account_id]
transform: {call: "transforms.daily_revenue:build", version: 1.0.0}
inputs:
  transactions: {table: lake.fin.transactions, partition: business_date}
publish: {mode: replace_partitions, rollback_window: 30d}
reconcile:
  - {name: gross, input: transactions, source: "sum(amount)", target: "sum(gross)", tolerance: 0}
"""


def example(n: int) -> dict[str, Any]:
    """What the n-th example of the page defines."""
    found = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    defined: dict[str, Any] = {"pytest": pytest}
    exec(compile(found[n], f"{PAGE.name}, example {n}", "exec"), defined)  # noqa: S102 - our own page
    return defined


def test_a_project_runs_on_tables_in_memory_as_the_guide_shows(tmp_path: Path) -> None:
    """The day that was counted twice is corrected."""
    for place, text in {
        "errata.yaml": PROJECT, "products/daily_revenue.yaml": PRODUCT, "transforms/daily_revenue.py": "build = None\n",
    }.items():  # fmt: skip
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    (row,) = example(1)["correct_one_day"](tmp_path)
    assert row["gross"] == Decimal("5.00")


def test_a_contract_is_checked_as_the_guide_shows() -> None:
    """The class has the rules of the port."""
    suite = example(2)["TestMyTags"]
    assert any(name.startswith("test_a_tag") for name in dir(suite))
