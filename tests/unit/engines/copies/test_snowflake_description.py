"""What is known about a table in Snowflake before rows of it are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.engines.copies.snowflake_description import describe_table
from errata.engines.copies.snowflake_session import Answer, StatementRefused
from errata.model.copy.delivery import WarehouseTable

DESCRIBED = ("name", "type", "kind", "null?", "default", "expression", "policy name")
COLUMNS: list[tuple[Any, ...]] = [
    ("BUSINESS_DATE", "DATE", "COLUMN", "N", None, None, None),
    ("AMOUNT", "NUMBER(12,2)", "COLUMN", "Y", None, None, None),
    ("LOADED_AT", "TIMESTAMP_LTZ(9)", "COLUMN", "N", "CURRENT_TIMESTAMP()", None, None),
    ("CENTS", "NUMBER(14,0)", "VIRTUAL_COLUMN", "Y", None, "AMOUNT * 100", None),
]


@dataclass
class Account:
    """Answers to questions about one table."""

    columns: list[tuple[Any, ...]] = field(default_factory=lambda: list(COLUMNS))
    policies: list[tuple[Any, ...]] = field(default_factory=list)
    streams: list[tuple[Any, ...]] = field(default_factory=list)
    dynamic: list[tuple[Any, ...]] = field(default_factory=list)
    tables: list[tuple[Any, ...]] = field(default_factory=lambda: [("DAILY", "1"), ("DXILY", "0")])
    refused: dict[str, int] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        self.statements.append(statement)
        for start, number in self.refused.items():
            if statement.startswith(start):
                raise StatementRefused("no", number, "01b-1")
        answers = {
            "DESCRIBE": Answer(self.columns, columns=DESCRIBED),
            "SELECT POLICY": Answer(self.policies),
            "SHOW STREAMS": Answer(self.streams, columns=("name", "table_name")),
            "SHOW DYNAMIC": Answer(self.dynamic, columns=("name", "text")),
            "SHOW TABLES": Answer(self.tables, columns=("name", "retention_time")),
        }
        return next(answer for start, answer in answers.items() if statement.startswith(start))

    def close(self) -> None:
        pass


def describe(account: Account, table: str = "DAILY") -> WarehouseTable | None:
    return describe_table(account, table, "FIN", "PUBLIC")


def test_columns_are_described_with_what_the_warehouse_fills_in() -> None:
    """Required columns, defaults, and columns that nobody can write."""
    found = describe(Account())
    assert found is not None
    assert [(one.name, one.type) for one in found.columns][:2] == [
        ("BUSINESS_DATE", "DATE"),
        ("AMOUNT", "NUMBER(12,2)"),
    ]
    flags = {one.name: (one.is_required, one.has_default, one.is_generated) for one in found.columns}
    assert flags == {
        "BUSINESS_DATE": (True, False, False),
        "AMOUNT": (False, False, False),
        "LOADED_AT": (True, True, False),
        "CENTS": (False, False, True),
    }
    assert (found.has_indexes, dict(found.obstacles)) == (False, {})


def test_what_meets_every_row_is_named() -> None:
    """Policies on columns and on the table, streams, dynamic tables, and missing time travel; not those of others."""
    account = Account(
        columns=[(*COLUMNS[1][:6], "FIN.SEC.HIDE_AMOUNT")],
        policies=[("ONLY_EU", "ROW_ACCESS_POLICY")],
        streams=[("S1", "FIN.PUBLIC.DAILY"), ("S2", "FIN.PUBLIC.DAILY_OLD")],
        dynamic=[("D1", "select * from daily"), ("D2", "select * from my_daily")],
        tables=[("DAILY", "0")],
    )
    found = describe(account)
    assert found is not None
    assert dict(found.obstacles) == {
        "policies": ("FIN.SEC.HIDE_AMOUNT", "ONLY_EU (ROW_ACCESS_POLICY)"),
        "streams": ("S1",),
        "dynamic tables": ("D1",),
        "time travel": ("retention of 0 days",),
    }


def test_what_the_role_may_not_see_is_not_taken_for_nothing() -> None:
    """A role without the right to look gets a warning, not silence."""
    found = describe(Account(refused={"SELECT POLICY": 3001, "SHOW STREAMS": 3001}))
    assert found is not None
    assert set(found.obstacles) == {"policies", "streams"}
    assert "003001" in found.obstacles["policies"][0]


def test_a_view_is_not_a_table() -> None:
    """It can be described as one, but rows of it cannot be replaced."""
    found = describe(Account(tables=[("DXILY", "1")]))
    assert found is not None
    assert found.obstacles["views"] == ("DAILY",)


def test_a_table_that_is_not_there_is_none() -> None:
    """Or one that the role may not see: Snowflake does not tell the difference."""
    assert describe(Account(refused={"DESCRIBE": 2003})) is None


def test_the_schema_of_the_table_is_looked_at() -> None:
    """Its own, if it is declared with one."""
    for table, place in (
        ("DAILY", '"FIN"."PUBLIC"'),
        ("MART.DAILY", '"FIN"."MART"'),
        ("BI.MART.DAILY", '"BI"."MART"'),
    ):
        account = Account()
        describe(account, table)
        assert f"SHOW STREAMS IN SCHEMA {place}" in account.statements
        assert f"SHOW TABLES LIKE 'DAILY' IN SCHEMA {place}" in account.statements
