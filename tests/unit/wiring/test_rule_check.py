"""``errata check`` says which rules cannot be measured, by line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from errata.model.partition import Grain
from errata.project import load_project
from errata.wiring.rule_check import find_rule_problems
from unit.project.conftest import PRODUCT, Write

pytest_plugins = ["unit.project.conftest"]

TABLES = {
    "lake.fin.daily_revenue": {"business_date": "date", "account_id": "string", "gross": "decimal(18, 2)"},
    "lake.ref.fx": {"currency": "string"},
}
RULES = """\
  fx: {table: lake.ref.fx}
checks:
  - {metric: nullValues, column: acount_id, mustBe: 0}
  - {metric: invalidValues, column: account_id, pattern: "(\\\\w+\\\\s?)*$", mustBe: 0}
  - name: odd
    expression: gross in (select 1)
    mustBe: 0
  - {metric: missingReferences, column: account_id, references: {input: fx, columns: [code]}, mustBe: 0}
  - {metric: rowCount, mustBeGreaterThan: 0}
compare:
  - {metric: "sum(account_id)", warn: 5%}
"""


class Tables:
    """A catalog of made-up tables."""

    def describe(self, table: str) -> Any:
        """One of them."""
        columns = [SimpleNamespace(name=name, type=kind) for name, kind in TABLES[table].items()]
        by_day = SimpleNamespace(column="business_date", column_type="date", grain=Grain.DAY)
        return SimpleNamespace(columns=columns, partition_fields=[by_day])


def test_every_rule_is_held_against_the_tables(write: Write) -> None:
    """Columns, patterns, expressions, look-ups and aggregates, each at its own line."""
    project = load_project(write(product=PRODUCT + RULES))
    found = [str(problem) for problem in find_rule_problems(project, Tables())]
    at = "products/daily_revenue.yaml"
    starts = [
        f"{at}:14: checks[0].column: check nullValues(acount_id) (nullValues): expected columns of the target",
        f"{at}:15: checks[1].pattern: check invalidValues(account_id): the pattern ",
        f"{at}:17: checks[2].expression: check odd: expression 'gross in (select 1)' was refused; expected no sub",
        f"{at}:19: checks[3].references: check missingReferences(account_id) (missingReferences): references",
        f"{at}:22: compare[0].metric: compare sum(account_id): expression 'sum(account_id)' was refused; ",
    ]
    assert len(found) == len(starts)
    assert [start for text, start in zip(found, starts, strict=True) if not text.startswith(start)] == []


def test_what_a_merge_goes_by_is_held_against_the_target(write: Write) -> None:
    """A version that the table lacks, and a condition that asks for more than one row."""
    section = 'publish:\n  mode: merge\n  merge:\n    version: updated\n    delete: "op in (select 1)"\n'
    project = load_project(write(product=PRODUCT + section))
    found = [str(problem) for problem in find_rule_problems(project, Tables())]
    at = "products/daily_revenue.yaml"
    assert found[0] == f"{at}:15: publish.merge.version: expected a column of lake.fin.daily_revenue, found updated"
    assert found[1].startswith(f"{at}:16: publish.merge.delete: ")
    assert found[1].count("publish.merge.delete") == 1
    assert "no sub-query" in found[1]
    assert len(found) == 2
