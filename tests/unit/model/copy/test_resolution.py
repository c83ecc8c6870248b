"""Whether a declared copy fits the tables on both sides: what is copied, what is refused, what is only named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from errata.model.copy.declaration import Copy
from errata.model.copy.delivery import WarehouseColumn, WarehouseTable
from errata.model.copy.resolution import LakeTable, Resolution, resolve_copy
from errata.model.copy.table import CopyColumn
from errata.model.partition import Grain

LAKE = LakeTable("day", Grain.DAY, {"day": "date", "account": "string", "gross": "decimal(12, 2)", "run": "string"})
DAY, ACCOUNT, GROSS = (
    WarehouseColumn("day", "date"),
    WarehouseColumn("account", "text"),
    WarehouseColumn("gross", "numeric(12,2)"),
)
TABLE = WarehouseTable((DAY, ACCOUNT, GROSS), ("day",))
COPY = Copy("pg", "fin.sales")


def resolve(copy: Copy = COPY, table: WarehouseTable = TABLE, lake: LakeTable = LAKE) -> Resolution:
    return resolve_copy(copy, lake, table, "postgres")


def texts(found: Resolution) -> list[str]:
    return [f"{'.'.join(map(str, one.key))}: {one.text}" for one in found.problems]


def test_columns_of_the_same_name_are_copied():
    """What the copy does not have is left out, and said."""
    found = resolve()
    assert found.copy is not None
    assert found.copy.columns == (
        CopyColumn("day", "day", "date"),
        CopyColumn("account", "account", "string"),
        CopyColumn("gross", "gross", "decimal(12, 2)"),
    )
    assert (found.copy.partition, found.left_out, found.problems) == (found.copy.columns[0], ("run",), ())


def test_names_differ_in_case_or_as_declared():
    """A warehouse that writes names in capitals needs no list of all of them."""
    table = WarehouseTable(
        (WarehouseColumn("BOOKED_ON", "date"), WarehouseColumn("ACCOUNT", "text"), replace(GROSS, name="USD")),
        ("BOOKED_ON",),
    )
    found = resolve(Copy("pg", "SALES", partition="BOOKED_ON", columns={"gross": "USD"}), table)
    assert found.copy is not None
    assert [column.name for column in found.copy.columns] == ["BOOKED_ON", "ACCOUNT", "USD"]
    assert found.copy.partition.name == "BOOKED_ON"


def test_a_name_that_could_be_two_columns_is_not_guessed():
    """Quoted names of a warehouse may differ in case only."""
    found = resolve(
        table=WarehouseTable((DAY, replace(ACCOUNT, name="ACCOUNT"), replace(ACCOUNT, name="Account"), GROSS))
    )
    assert "columns: account may be ACCOUNT or Account; name one under columns" in texts(found)


@pytest.mark.parametrize(
    "copy, table, told",
    [
        (Copy("pg", "t", columns={"grosss": "gross"}), TABLE, "columns.grosss: the target has no column grosss"),
        (Copy("pg", "t", columns={"gross": "usd"}), TABLE, "columns.gross: the copy has no column usd"),
        (Copy("pg", "t", partition="d"), TABLE, "partition: the copy has no column d"),
        (COPY, replace(TABLE, columns=(ACCOUNT, GROSS)), "partition: no column of the copy has the partitions of day"),
        (
            COPY,
            replace(TABLE, columns=(*TABLE.columns, WarehouseColumn("load_ts", "timestamp with time zone"))),
            "columns: column load_ts of the copy gets no value; name it under columns, or under default",
        ),
        (Copy("pg", "t", default=("load_ts",)), TABLE, "default.0: the copy has no column load_ts"),
        (
            Copy("pg", "t", default=("load_ts",)),
            replace(TABLE, columns=(*TABLE.columns, WarehouseColumn("load_ts", "date", is_required=True))),
            "default.0: column load_ts may not be NULL and has no default",
        ),
        (
            COPY,
            replace(TABLE, columns=(DAY, ACCOUNT, replace(GROSS, is_generated=True))),
            "columns: column gross is computed by the warehouse and cannot be written",
        ),
        (
            COPY,
            replace(TABLE, columns=(DAY, ACCOUNT, replace(GROSS, type="real"))),
            "columns: column gross cannot hold gross (decimal(12, 2)) exactly: expected numeric(12,2), found real",
        ),
        (COPY, replace(TABLE, obstacles={"views": ("sales",)}), "table: sales is a view; expected a table"),
    ],
)  # fmt: skip
def test_what_cannot_be_copied_is_refused_by_name(copy: Copy, table: WarehouseTable, told: str):
    """Each problem is at the key that would have to change, and nothing is copied."""
    found = resolve(copy, table)
    assert told in texts(found)
    assert found.copy is None


def test_columns_with_a_default_are_left_to_the_warehouse():
    """A declared default, and a column that the warehouse computes."""
    extra = (
        WarehouseColumn("load_ts", "timestamp with time zone", is_required=True, has_default=True),
        WarehouseColumn("year", "integer", is_generated=True),
    )
    found = resolve(Copy("pg", "t", default=("load_ts",)), replace(TABLE, columns=(*TABLE.columns, *extra)))
    assert found.copy is not None
    assert "load_ts" not in [column.name for column in found.copy.columns]


@pytest.mark.parametrize(
    "lake, warehouse, fits",
    [
        ("int", "integer", True), ("int", "bigint", True), ("int", "smallint", False), ("long", "integer", False),
        ("long", "bigint", True), ("decimal(12, 2)", "numeric(14,2)", True), ("decimal(12, 2)", "numeric(12,3)", False),
        ("decimal(12, 2)", "numeric(11,2)", False), ("decimal(12, 2)", "numeric", False), ("string", "text", True),
        ("string", "character varying", True), ("string", "character varying(255)", True),
        ("string", "character(9)", False),
        ("string", "citext", False), ("boolean", "boolean", True), ("date", "date", True),
        ("date", "timestamp without time zone", False), ("timestamp", "timestamp without time zone", True),
        ("timestamp", "timestamp(3) without time zone", False), ("timestamp", "timestamp with time zone", False),
        ("timestamptz", "timestamp with time zone", True), ("timestamptz", "timestamp without time zone", False),
        ("binary", "bytea", False), ("array<int>", "integer[]", False), ("struct<a:int>", "jsonb", False),
    ],
)  # fmt: skip
def test_a_type_that_cannot_come_back_as_it_was_is_refused(lake: str, warehouse: str, fits: bool):
    """When the product is checked, not when rows are loaded."""
    table = replace(TABLE, columns=(*TABLE.columns, WarehouseColumn("v", warehouse)))
    found = resolve(table=table, lake=replace(LAKE, columns={**LAKE.columns, "v": lake}))
    assert (found.copy is not None) == fits, texts(found)


def test_doubles_need_a_tolerance():
    """They are compared by sums; without a limit nobody could say what a difference is."""
    table = replace(TABLE, columns=(*TABLE.columns, WarehouseColumn("rate", "double precision")))
    lake = replace(LAKE, columns={**LAKE.columns, "rate": "double"})
    found = resolve(table=table, lake=lake)
    assert texts(found) == [
        "tolerance: rate can only be compared by sums; expected the largest difference that is none"
    ]
    assert resolve(Copy("pg", "t", tolerance="0.01"), table, lake).copy is not None


@pytest.mark.parametrize("kind, fits", [("string", True), ("long", True), ("timestamp", False)])
def test_partitions_by_value_have_to_be_found(kind: str, fits: bool):
    """A text or a number is found again as it is written; a moment is not."""
    types: Any = {"string": "text", "long": "bigint", "timestamp": "timestamp without time zone"}
    table = replace(TABLE, columns=(replace(DAY, type=types[kind]), ACCOUNT, GROSS))
    lake = LakeTable("day", Grain.VALUE, {**LAKE.columns, "day": kind})
    assert (resolve(table=table, lake=lake).copy is not None) == fits


def test_what_meets_replaced_rows_is_named_and_allowed():
    """An index that is missing, triggers, foreign keys and policies are warnings."""
    table = replace(TABLE, indexed=(), obstacles={"triggers": ("audit_sales",), "foreign keys": ("fk_sales",)})
    found = resolve(table=table)
    assert found.copy is not None
    assert all(one.is_warning for one in found.problems)
    assert texts(found) == [
        "partition: there is no index on day, so that every delivery reads the whole copy",
        "table: triggers of the copy meet every row that a delivery replaces: audit_sales",
        "table: foreign keys of the copy meet every row that a delivery replaces: fk_sales",
    ]
    assert resolve(table=replace(table, has_indexes=False, obstacles={})).problems == ()
