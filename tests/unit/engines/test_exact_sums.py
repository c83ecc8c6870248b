"""Which sums are written as sums of integers, as text; that Spark finds the same number is tested on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.measure.exact_sums import write_exact_sums

KINDS = {
    "amount": T.DecimalType(12, 2),
    "large": T.DecimalType(18, 2),
    "whole": T.DecimalType(18, 0),
    "small": T.DecimalType(8, 2),
    "wide": T.DecimalType(19, 2),
    "fine": T.DecimalType(18, 9),
    "n": T.LongType(),
    "k": T.IntegerType(),
    "x": T.DoubleType(),
    "note": T.StringType(),
}


@pytest.mark.parametrize(
    "sql",
    [
        "COALESCE(SUM(`x`), 0)",
        "COALESCE(SUM(`n`), 0)",
        "COALESCE(SUM(`small`), 0)",
        "COALESCE(SUM(`wide`), 0)",
        "COALESCE(SUM(`fine`), 0)",
        "COALESCE(SUM(`amount` * 2), 0)",
        "COALESCE(SUM(DISTINCT `amount`), 0)",
        "COALESCE(SUM(`elsewhere`), 0)",
        "COALESCE(SUM(CAST(`k` AS DECIMAL(10, 0))), 0)",
        "COUNT_IF(`note` = 'SUM(`amount`)')",
        "MAX(`amount`)",
    ],
)
def test_a_sum_that_integers_cannot_hold_stays_as_it_is_written(sql: str) -> None:
    """Floats, wide decimals, expressions and distinct values are added as Spark does it; literals are never touched."""
    assert write_exact_sums(sql, KINDS) == sql


def test_a_sum_of_decimals_keeps_the_type_that_spark_gives_it() -> None:
    """What surrounds a sum, such as a division, rounds by the sum's type: ten digits more, the same places."""
    found = write_exact_sums("TRY_DIVIDE(COALESCE(SUM(`Amount`), 0), COUNT(*))", KINDS)
    assert found.startswith("TRY_DIVIDE(COALESCE(CAST(CAST(SUM(")
    assert found.endswith(" AS DECIMAL(22, 2)), 0), COUNT(*))")
    assert "SUM(`Amount`)" not in found


def test_every_part_of_a_sum_has_its_filter() -> None:
    """A sum over some rows is made of parts over the same rows."""
    where = " FILTER(WHERE `k` > 3 AND `note` = '__errata_sum0_')"
    for column, parts in {"`amount`": 2, "`large`": 3, "`whole`": 2, "CAST(`n` AS DECIMAL(38, 0))": 2}.items():
        found = write_exact_sums(f"COALESCE(SUM({column}){where}, 0)", KINDS)
        assert found.count(where) == found.count("SUM(") == parts, found


def test_a_literal_that_looks_like_a_sum_beside_one_is_kept() -> None:
    """Only the parsed sum is replaced, never text that happens to read the same."""
    found = write_exact_sums("COALESCE(SUM(`amount`), 0) + COUNT_IF(`note` = 'SUM(`amount`)')", KINDS)
    assert found.endswith(" + COUNT_IF(`note` = 'SUM(`amount`)')")
    assert found.count("SUM(`amount`)") == 1


def test_a_name_that_two_columns_share_up_to_case_is_left_to_spark() -> None:
    """Spark refuses such a name; guessing one of the two types would hide that."""
    sql = "COALESCE(SUM(`amount`), 0)"
    assert write_exact_sums(sql, {**KINDS, "Amount": T.DecimalType(12, 2)}) == sql
