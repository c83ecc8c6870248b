"""The query behind a view of accepted versions: every partition once, ranges where they follow each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.publishing.sql.accepted_view import build_accepted_sql, build_swapped_sql

DAYS = TargetPin(
    "lake.fin.t", "u", "1", 0, 0, "d", "date", "identity", Grain.DAY, {"d": "date", "x": "int"}, (), "part", {}, 1
)


def where(sql: str) -> str:
    return sql.partition(" WHERE ")[2]


def test_partitions_of_one_version_are_ranges() -> None:
    """A thousand days of one run are one comparison."""
    accepted = {"2026-01-01": 1, "2026-01-02": 1, "2026-01-03": 2, "2026-01-05": 1}
    assert build_accepted_sql("lake.fin.v", DAYS, ("d", "x"), accepted) == (
        "SELECT `d`, `x` FROM `lake`.`fin`.`v` WHERE "
        "(`errata_version` = 1 AND ((`d` >= DATE'2026-01-01' AND `d` < DATE'2026-01-03') OR "
        "(`d` >= DATE'2026-01-05' AND `d` < DATE'2026-01-06'))) OR "
        "(`errata_version` = 2 AND ((`d` >= DATE'2026-01-03' AND `d` < DATE'2026-01-04')))"
    )


def test_no_condition_on_values_is_an_in_list() -> None:
    """Iceberg fails on ``IN`` when a text column has a NULL partition, so several values are several equalities."""
    pin = replace(DAYS, column_type="string", grain=Grain.VALUE)
    assert where(build_accepted_sql("lake.fin.v", pin, ("d",), {"a": 1, "b": 1, "null": 1})) == (
        "(`errata_version` = 1 AND (`d` IS NULL OR `d` = 'a' OR `d` = 'b'))"
    )


def test_the_last_day_there_is_ends_with_its_year() -> None:
    """9999-12-31 does not take rows of later years along, which a table can hold."""
    assert where(build_accepted_sql("lake.fin.v", DAYS, ("d",), {"9999-12-31": 1, "0999-01-01": 1})) == (
        "(`errata_version` = 1 AND ((`d` >= DATE'0999-01-01' AND `d` < DATE'0999-01-02') OR "
        "(`d` >= DATE'9999-12-31' AND `d` < DATE'10000-01-01')))"
    )


def test_nothing_accepted_shows_nothing_or_the_target_as_it_is() -> None:
    """After everything was rolled back."""
    assert where(build_accepted_sql("lake.fin.v", DAYS, ("d",), {})) == "false"
    assert build_swapped_sql("lake.fin.v", DAYS, ("d",), {}) == "SELECT `d` FROM `lake`.`fin`.`t`"


def test_a_swapped_view_has_every_row_of_the_target_that_is_not_replaced() -> None:
    """Rows of the NULL partition are neither lost in the comparison nor shown twice."""
    some = build_swapped_sql("lake.fin.v", DAYS, ("d",), {"2026-01-01": 1}).partition(" UNION ALL ")[2]
    assert where(some) == "NOT ((`d` >= DATE'2026-01-01' AND `d` < DATE'2026-01-02')) OR `d` IS NULL"
    null = build_swapped_sql("lake.fin.v", DAYS, ("d",), {"null": 1}).partition(" UNION ALL ")[2]
    assert where(null) == "NOT (`d` IS NULL)"


@pytest.mark.parametrize(
    "kind, grain, partition, expected",
    [
        ("timestamptz", Grain.HOUR, "2026-01-01T05", "TIMESTAMP'2026-01-01 05:00:00+00:00'"),
        ("timestamp", Grain.MONTH, "2026-01", "TIMESTAMP_NTZ'2026-01-01 00:00:00'"),
        ("string", Grain.DAY, "2026-01-01", "`d` = '2026-01-01'"),
        ("long", Grain.VALUE, "42", "`d` = 42"),
        ("string", Grain.VALUE, "o'hara\\", r"`d` = 'o\'hara\\'"),
    ],
)
def test_partitions_are_literals_of_the_columns_type(kind: str, grain: Grain, partition: str, expected: str) -> None:
    """A value that looks like SQL stays a value."""
    pin = replace(DAYS, column_type=kind, grain=grain)
    assert expected in build_accepted_sql("lake.fin.v", pin, ("d",), {partition: 1})
