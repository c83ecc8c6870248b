"""The query of old and new side by side: names, masks, columns that only one side has, and names that clash."""

from __future__ import annotations

from dataclasses import replace

import sqlglot

from errata.model.manifest import NewColumn
from errata.model.refs import before_tag, compare_view, preview_tag
from errata.publishing.sql.comparison import ComparisonSides, build_comparison_sql, build_read_statements
from unit.gate.manifests import target_pin

PIN = target_pin(columns={"day": "date", "account": "string", "gross": "decimal(12, 2)", "tags": "map<string, string>"},
                 column="day", key=("day", "account"))  # fmt: skip
SIDES = ComparisonSides("d_before", "d")
DAYS = ("2026-01-01", "2026-01-02", "2026-01-05")


def columns_of(query: str) -> list[str]:
    parsed = sqlglot.parse_one(query, read="spark")
    return [one.alias_or_name for one in parsed.selects]  # type: ignore[attr-defined]


def test_the_columns_are_the_key_the_change_and_both_sides_of_the_rest():
    """In the order of the target's key, then column by column."""
    query = build_comparison_sql(PIN, SIDES, ("account", "day", "gross", "tags"), DAYS)
    assert columns_of(query) == ["day", "account", "change", "old_gross", "new_gross", "old_tags", "new_tags"]
    assert "`lake`.`fin`.`daily_revenue` VERSION AS OF 'd_before' WHERE (`day` >= DATE'2026-01-01'" in query
    assert "VERSION AS OF 'd' WHERE" in query
    assert "DATE'2026-01-05'" in query
    assert "array_sort(map_entries(errata_old.c1)) <=> array_sort(map_entries(errata_new.c1))" in query


def test_classified_columns_say_only_whether_there_is_a_value():
    """Whether they changed is said, as in a diff; what they were is not."""
    query = build_comparison_sql(PIN, SIDES, ("account", "gross"), DAYS, masked=("account", "gross"), mask="***")
    outer = query.partition(" FROM (SELECT")[0]
    assert "CASE WHEN `account` IS NOT NULL THEN '***' END AS `account`" in outer
    assert "CASE WHEN errata_new.c0 IS NOT NULL THEN '***' END AS `new_gross`" in outer
    assert "errata_old.c0 <=> errata_new.c0" in outer


def test_a_column_that_the_target_gains_is_null_before():
    """It is read from the shadow, under its own type; the old side has no such column."""
    pin = replace(PIN, columns={**PIN.columns, "fee": "long"}, new_columns=(NewColumn("fee", "long", 9),),
                  shadow="lake.fin.errata_shadow_x")  # fmt: skip
    query = build_comparison_sql(pin, SIDES, ("fee", "gross"), DAYS)
    assert "CAST(NULL AS bigint) AS c0" in query
    assert "FROM `lake`.`fin`.`errata_shadow_x` VERSION AS OF 'd' WHERE" in query


def test_where_nothing_stood_before_everything_is_added():
    """A table without a snapshot has no old side; the query is the same for those who read it."""
    query = build_comparison_sql(PIN, ComparisonSides(None, "d"), ("gross",), DAYS)
    assert "d_before" not in query
    assert "0 AS errata_side" in query
    assert "VERSION AS OF 'd' WHERE false" in query


def test_names_of_the_key_are_never_given_twice():
    """A key column called change keeps its name; ours gets another."""
    pin = replace(
        PIN, key=("day", "change", "old_gross"), columns={**PIN.columns, "change": "string", "old_gross": "int"}
    )
    query = build_comparison_sql(pin, SIDES, ("gross",), DAYS)
    assert columns_of(query) == ["day", "change", "old_gross", "errata_change", "errata_old_gross", "new_gross"]


def test_a_key_alone_is_there_or_not():
    """Without any other column a row is the same when both sides have it."""
    assert "WHEN true THEN 'same'" in build_comparison_sql(PIN, SIDES, ("day", "account"), DAYS)


def test_every_reader_gets_its_own_statement():
    """Names with hyphens are quoted wherever they are not in quotes already."""
    name = preview_tag("bf-20260214-daily-7f3a21c0")
    reads = build_read_statements("lake.fin.t", name, "42")
    assert reads["Spark, as a table"].endswith(f".`t`.`tag_{name}`")
    assert reads["PyIceberg"] == f'table.scan(snapshot_id=table.snapshot_by_name("{name}").snapshot_id)'
    assert "42" in reads["others"]
    assert before_tag(name) == f"{name}_before"
    assert compare_view("lake.fin.t", "preview_rejected") == "lake.fin.errata_compare_t_preview_rejected"
