"""Write sums of whole numbers and decimals as sums of 64-bit integers: the same number, much cheaper. Runs no Spark.

Spark adds decimals of more than 18 digits, which the sum of a decimal(9,…) already has, as Java objects, and then also
groups through a slower map. A sum of longs is machine code, and ANSI mode raises an error before one could wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as T  # noqa: N812 - the name every Spark reader knows

from errata.model.partition_sql import quoted

if TYPE_CHECKING:
    from sqlglot import exp

_LONG_DIGITS = 18
_SUM_DIGITS = 10
"""Digits by which Spark widens the sum of a decimal."""
_SAFE_DIGITS = 10
"""A long holds the sum of 900 million integers of this many digits; beyond that, ANSI mode raises an error."""


def sum_longs_sql(value: str, condition: str = "") -> str:
    """The exact sum of 64-bit integers, as a decimal of 32 digits; ``condition`` is a FILTER clause.

    Each half is summed as a long, which costs less than half as much as adding decimals. The low half is signed, so
    that the sum stays in range for 2^32 rows; beyond that, ANSI mode raises an error.
    """
    low = f"SUM(shiftright(shiftleft({value}, 32), 32)){condition}"
    high = f"SUM(shiftright({value}, 32) + (shiftright({value}, 31) & 1)){condition}"
    return f"CAST({high} AS DECIMAL(20, 0)) * CAST('4294967296' AS DECIMAL(10, 0)) + CAST({low} AS DECIMAL(20, 0))"


def write_exact_sums(sql: str, kinds: Mapping[str, T.DataType]) -> str:
    """The same aggregate with its sums of plain columns as sums of integers; ``kinds`` are the types of the rows.

    Every sum keeps its value, its type and its NULL. Sums that cannot be written so stay as they are.
    """
    if "SUM(" not in sql.upper():
        return sql
    # imported late: the parser takes half a second to import
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, read="spark")
    if tree.sql("spark") != sql:
        return sql  # the parser would write it differently, so it stays as it was checked
    holder, mark, written = exp.Paren(this=tree), "__errata_sum", list[str]()
    while mark in sql:
        mark += "_"
    for total in list(holder.find_all(exp.Sum)):
        outer = total.parent if isinstance(total.parent, exp.Filter) else total
        condition = f" FILTER({outer.expression.sql('spark')})" if outer is not total else ""
        if text := _write_sum(total.this, kinds, condition):
            # as text, because the parser might write the parts of the sum in another way
            outer.replace(exp.column(f"{mark}{len(written)}_", quoted=True))
            written.append(text)
    result: str = holder.this.sql("spark")
    for n, text in enumerate(written):
        result = result.replace(f"`{mark}{n}_`", text)
    return result


def _write_sum(summed: exp.Expr, kinds: Mapping[str, T.DataType], condition: str) -> str | None:
    """The sum of a column, or of a whole number cast to decimal(38,0); None if Spark's own is as cheap or needed."""
    from sqlglot import exp

    column = summed.this if isinstance(summed, exp.Cast) else summed
    if not isinstance(column, exp.Column) or len(column.parts) != 1:
        return None
    # as Spark resolves it; a name that two columns share up to case would be ambiguous there as well
    found = [kind for name, kind in kinds.items() if name.lower() == column.name.lower()]
    kind, value = found[0] if len(found) == 1 else None, quoted(column.name)
    if isinstance(summed, exp.Cast):
        is_guarded = summed.to.sql("spark") == "DECIMAL(38, 0)"
        return _write_integer_sum(value, kind, condition) if is_guarded else None
    return _write_decimal_sum(value, kind, condition) if isinstance(kind, T.DecimalType) else None


def _write_integer_sum(value: str, kind: T.DataType | None, condition: str) -> str | None:
    if isinstance(kind, T.IntegerType):
        return f"CAST(SUM({value}){condition} AS DECIMAL(38, 0))"
    return f"CAST({sum_longs_sql(value, condition)} AS DECIMAL(38, 0))" if isinstance(kind, T.LongType) else None


def _write_decimal_sum(value: str, kind: T.DecimalType, condition: str) -> str | None:
    """The sum of the digits before the point plus the sum of those after it."""
    digits, places = kind.precision, kind.scale
    if not _LONG_DIGITS - _SUM_DIGITS < digits <= _LONG_DIGITS or places > _LONG_DIGITS - _SUM_DIGITS:
        return None
    whole = f"CAST({value} AS BIGINT)"  # toward zero
    is_small = digits - places <= _SAFE_DIGITS
    total = f"SUM({whole}){condition}" if is_small else sum_longs_sql(whole, condition)
    total = f"CAST({total} AS DECIMAL({digits - places + _SUM_DIGITS}, 0))"
    if places:
        # |rest| < 1, so it has no more digits than places, and Spark adds so few as a long
        rest = f"CAST({value} - CAST({whole} AS DECIMAL({digits}, {places})) AS DECIMAL({places}, {places}))"
        total = f"{total} + SUM({rest}){condition}"
    return f"CAST({total} AS DECIMAL({digits + _SUM_DIGITS}, {places}))"
