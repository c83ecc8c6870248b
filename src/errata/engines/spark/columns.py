"""Spark expressions that mean the same as :mod:`errata.model.partition`: partition text, scope, content. No actions.

Columns are built inside functions because classic Spark needs a live session. The session's zone must be UTC: that is
what ``days(timestamptz)`` means in Iceberg.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.content import hash_texts
from errata.errors import UsageError
from errata.model.partition import NULL, Grain, fold, from_ordinal, ordinal, start_of, value_of

__all__ = [
    "JSON",
    "content_hashes",
    "every",
    "in_partitions",
    "is_its_own_unit",
    "partition_text",
    "partition_unit",
    "quoted",
    "table_name",
    "typed_partition",
]

_TIME_PATTERNS = {Grain.HOUR: "yyyy-MM-dd'T'HH", Grain.DAY: "yyyy-MM-dd", Grain.MONTH: "yyyy-MM", Grain.YEAR: "yyyy"}
_TEXT_SHAPES = {
    Grain.HOUR: r"\d{4}-\d{2}-\d{2}T\d{2}",
    Grain.DAY: r"\d{4}-\d{2}-\d{2}",
    Grain.MONTH: r"\d{4}-\d{2}",
    Grain.YEAR: r"\d{4}",
}
_SPARK_TYPES = {
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "int": "int",
    "long": "bigint",
}
_TIME_TYPES = frozenset({"date", "timestamp", "timestamptz"})
# to_json would round timestamps to milliseconds and leave NULL fields out
JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def quoted(name: str) -> str:
    """One identifier, quoted."""
    return "`" + name.replace("`", "``") + "`"


def table_name(identifier: str) -> str:
    """``catalog.namespace.table`` with every part quoted."""
    return ".".join(quoted(part) for part in identifier.split("."))


def partition_unit(column: str, column_type: str, grain: Grain) -> Column:
    """A cheap value to group by: equal for two rows exactly when their partition text is."""
    _refuse_mismatch(column, column_type, grain)
    value = F.col(quoted(column))
    if is_its_own_unit(column_type, grain):
        return value
    return value.cast("date") if grain is Grain.DAY else F.date_trunc(str(grain), value)


def is_its_own_unit(column_type: str, grain: Grain) -> bool:
    """Whether two rows of one partition have the same value in the partition column."""
    return not grain.is_time or column_type == "string" or (column_type == "date" and grain is Grain.DAY)


def partition_text(column: str, column_type: str, grain: Grain) -> Column:
    """The canonical text of the partition a row is in; ``null`` when the column is NULL."""
    _refuse_mismatch(column, column_type, grain)
    value = F.col(quoted(column))
    if column_type == "string":
        text = value if grain.is_time else _value_text(value)
    elif grain.is_time and not (column_type == "date" and grain is Grain.DAY):
        text = F.date_format(value, _TIME_PATTERNS[grain])
    else:
        text = value.cast("string")
    return F.coalesce(text, F.lit(NULL))


def in_partitions(column: str, column_type: str, grain: Grain, partitions: Iterable[str]) -> Column:
    """Whether a row is in one of the partitions, as half-open typed ranges that Iceberg and Parquet can prune by."""
    _refuse_mismatch(column, column_type, grain)
    value = F.col(quoted(column))
    wanted = set(partitions)
    terms = [value.isNull()] if NULL in wanted else []
    wanted.discard(NULL)
    if grain.is_time:
        terms += _time_ranges(value, column_type, grain, wanted)
    elif column_type in ("int", "long"):
        terms += _integer_ranges(value, wanted)
    elif wanted:
        values = [typed_partition(F.lit(value_of(text)), column_type, grain) for text in sorted(wanted)]
        terms.append(value.isin(values))
    return _any(terms)


def typed_partition(text: Column, column_type: str, grain: Grain) -> Column:
    """A partition's text (time) or value (by value) as the first value of that partition, in the column's type."""
    if grain.is_time and column_type != "string":
        return F.to_timestamp(text, _TIME_PATTERNS[grain]).cast(_SPARK_TYPES[column_type])
    return text.cast(_SPARK_TYPES[column_type])


def _refuse_mismatch(column: str, column_type: str, grain: Grain) -> None:
    if column_type not in _SPARK_TYPES:
        raise UsageError(
            f"partition column {column}: type {column_type} was refused; expected one of {', '.join(_SPARK_TYPES)}"
        )
    if grain.is_time and column_type in ("int", "long"):
        raise UsageError(f"partition column {column}: grain {grain} was refused; a {column_type} has grain value")
    if not grain.is_time and column_type in ("timestamp", "timestamptz"):
        raise UsageError(f"partition column {column}: grain value was refused; a {column_type} has a time grain")


def _value_text(value: Column) -> Column:
    ambiguous = (value == F.lit(NULL)) | value.startswith('"')
    return F.when(value == "", F.lit('""')).when(ambiguous, _json_text(value)).otherwise(value)


def _json_text(value: Column) -> Column:
    """What ``json.dumps`` gives for a string: ASCII, by UTF-16 unit."""
    hexed = F.hex(F.encode(value, "UTF-16BE"))
    escapes = {"0022": r"\"", "005C": r"\\", "0008": r"\b", "0009": r"\t", "000A": r"\n", "000C": r"\f", "000D": r"\r"}

    def escape(at: Column) -> Column:
        unit = F.substring(hexed, at * 4 + 1, 4)
        known = reduce(
            lambda chain, item: chain.when(unit == item[0], F.lit(item[1])),
            list(escapes.items())[1:],
            F.when(unit == "0022", F.lit(escapes["0022"])),
        )
        character, code = F.decode(F.unhex(unit), "UTF-16BE"), F.concat(F.lit("\\u"), F.lower(unit))
        return known.when(unit.between("0020", "007E"), character).otherwise(code)

    units = F.transform(F.sequence(F.lit(0), (F.length(hexed) / 4 - 1).cast("int")), escape)
    return F.concat(F.lit('"'), F.array_join(units, ""), F.lit('"'))


def _time_ranges(value: Column, column_type: str, grain: Grain, wanted: Iterable[str]) -> list[Column]:
    terms = []
    for first, last in fold(grain, wanted):
        if column_type == "string":
            term = value.between(first, last) & value.rlike(f"^{_TEXT_SHAPES[grain]}$")
        else:
            term = value >= _instant(start_of(grain, first), column_type)
            if (end := _end_of(grain, last)) is not None:
                term &= value < _instant(end, column_type)
        terms.append(term)
    return terms


def _end_of(grain: Grain, text: str) -> datetime | None:
    try:
        return start_of(grain, from_ordinal(grain, ordinal(grain, text) + 1))
    except UsageError:
        return None  # 9999-12-31, a favourite for "never": nothing comes after it


def _instant(moment: datetime, column_type: str) -> Column:
    # text cast to the column's type folds to a typed literal; datetime literals would pass through the local zone
    text = moment.strftime("%Y-%m-%d") if column_type == "date" else moment.strftime("%Y-%m-%d %H:%M:%S")
    return F.lit(text.rjust(10 if column_type == "date" else 19, "0")).cast(_SPARK_TYPES[column_type])


def _integer_ranges(value: Column, wanted: Iterable[str]) -> list[Column]:
    try:
        numbers = sorted({int(text) for text in wanted})
    except ValueError as error:
        found = str(error).rpartition(":")[2].strip()
        raise UsageError(f"a partition was refused; expected whole numbers, found {found}") from None
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [value == first if first == last else value.between(first, last) for first, last in runs]


def _any(terms: Sequence[Column]) -> Column:
    """A balanced OR, so that a thousand separate days do not make a tree a thousand deep."""
    if not terms:
        return F.lit(False)  # noqa: FBT003 - a literal is a value
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return _any(terms[:middle]) | _any(terms[middle:])


def content_hashes(frame: DataFrame, columns: Sequence[str]) -> tuple[Column, Column]:
    """Two 64-bit hashes of a row of this frame; see :mod:`errata.engines.spark.content`."""
    first, second = hash_texts({field.name: field.dataType for field in frame.schema.fields}, columns)
    return F.expr(first), F.expr(second)


def every(terms: Sequence[Column]) -> Column:
    """All of the conditions."""
    return reduce(operator.and_, terms, F.lit(True))  # noqa: FBT003 - a literal is a value
