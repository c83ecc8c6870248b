"""``target.add_columns`` in a product file: Iceberg's types in Iceberg's spelling, and names that can be new."""

from __future__ import annotations

import pytest

from errata.ports.tables import Column
from errata.project import load_project
from errata.project.check import check_project
from unit.project.conftest import PRODUCT, Write
from unit.project.test_check import Facts, Tables, with_transform
from unit.project.test_load import problems_of


def adding(columns: str) -> str:
    """The product with these columns added."""
    return PRODUCT.replace(
        "  key: [business_date, account_id]\n", f"  key: [business_date]\n  add_columns: {columns}\n"
    )


def test_types_are_kept_in_the_spelling_of_iceberg_and_in_order(write: Write):
    """A type is compared as text with the table's, and field ids follow the order of the file."""
    columns = '{zeta: "decimal(12,2)", at: timestamptz, n: long, is_new: boolean}'
    product = load_project(write(product=adding(columns))).products["fin.daily_revenue"]
    assert list(product.target.add_columns.items()) == [
        ("zeta", "decimal(12, 2)"),
        ("at", "timestamptz"),
        ("n", "long"),
        ("is_new", "boolean"),
    ]


@pytest.mark.parametrize(
    "columns, said",
    [
        ("{x: bigint}", "expected one of boolean, int, long"),
        ('{x: "decimal(39,2)"}', "expected decimal(p,s) with 1 ≤ p ≤ 38 and s ≤ p"),
        ('{x: "decimal(4,5)"}', "expected decimal(p,s)"),
        ("{Business_Date: date}", "business_date is taken"),
        ("{business_date: date}", "business_date is taken"),
        ("{x: long, X: long}", "x is taken"),
        ("[x]", "expected"),
    ],
)
def test_what_cannot_be_added_is_refused_with_its_line(write: Write, columns: str, said: str):
    """Types of other engines, the partition column, and names that differ in case only."""
    found = problems_of(write(product=adding(columns)))
    assert any(said in problem and problem.startswith("products/daily_revenue.yaml:7: ") for problem in found), found


def test_a_key_column_cannot_be_new(write: Write):
    """Rows of before have none, so no old row would ever meet its new one."""
    product = PRODUCT.replace("  key:", "  add_columns: {account_id: string}\n  key:")
    assert any("account_id is in the key" in problem for problem in problems_of(write(product=product)))


@pytest.mark.parametrize(
    "columns, said",
    [
        ("{margin: long}", None),
        ("{account_id: string}", None),
        ("{account_id: long}", "has it as string"),
        ("{Account_Id: string}", "differs from the column account_id in case only"),
    ],
)
def test_check_compares_added_columns_with_the_table(write: Write, columns: str, said: str | None):
    """New is fine, the same is fine, anything else is said before a plan is made; checks may name new columns."""
    extra = "checks:\n  - {metric: nullValues, column: margin, mustBe: 0}\n" if "margin" in columns else ""
    root = with_transform(write(product=adding(columns), extra=extra))
    tables = Tables(
        {"lake.fin.daily_revenue": Facts(columns=(Column("business_date", "date"), Column("account_id", "string")))}
    )
    found = [one.message for one in check_project(load_project(root), tables) if one.level == "problem"]
    assert bool(found) == (said is not None), found
    assert said is None or any(said in message for message in found)
