"""Spark expressions equivalent to :mod:`errata.model.partition`: partition text, scope, content. Runs no Spark action.

Columns are built inside functions because classic Spark needs a live session. The session's time zone must be UTC,
because ``days(timestamptz)`` in Iceberg is in UTC.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from heapq import nlargest
from itertools import pairwise
from math import isqrt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.measure.checksums import row_hash_sql
from errata.errors import UsageError
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain, to_ordinal, value_from_text
from errata.model.partition_sql import build_partition_filter, build_range_filter, fold_values, quoted
from errata.model.types import PARTITION_TYPES, to_spark_type

_TIME_PATTERNS = {Grain.HOUR: "yyyy-MM-dd'T'HH", Grain.DAY: "yyyy-MM-dd", Grain.MONTH: "yyyy-MM", Grain.YEAR: "yyyy"}
_TEXT_SHAPES = {
    Grain.HOUR: "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}",
    Grain.DAY: "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    Grain.MONTH: "[0-9]{4}-[0-9]{2}",
    Grain.YEAR: "[0-9]{4}",
}
_ORDINALS = {
    Grain.HOUR: "CAST(floor(unix_seconds(CAST(? AS TIMESTAMP_LTZ)) / 3600) AS BIGINT)",
    Grain.DAY: "unix_date(CAST(? AS DATE))",
    Grain.MONTH: "((year(?) - 1970) * 12 + month(?) - 1)",
    Grain.YEAR: "(year(?) - 1970)",
}
_MAX_FLAT_RANGES = 32
"""Iceberg evaluates every range for every file: with 400 ranges, planning a scan of 100,000 files took 18 s."""
_MAX_RANGES = 512
"""Limited because Spark analyses every range, but larger than any chunk, so that a chunk's ranges stay exact."""
# to_json would round timestamps to milliseconds and leave NULL fields out
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def partition_unit(column: str, column_type: str, grain: Grain, stored: Grain | None = None) -> Column:
    """A cheap value to group by, equal for two rows exactly if their partition texts are equal.

    ``stored`` is the grain of the texts in a text column, if they are finer than the grain.
    """
    _refuse_mismatch(column, column_type, grain)
    value = F.col(quoted(column))
    if _is_cut(column_type, grain, stored):
        return F.substring(value, 1, grain.width)
    if is_its_own_unit(column_type, grain):
        return value
    return value.cast("date") if grain is Grain.DAY else F.date_trunc(str(grain), value)


def is_its_own_unit(column_type: str, grain: Grain, stored: Grain | None = None) -> bool:
    """Whether all rows of a partition have the same value in the partition column."""
    if _is_cut(column_type, grain, stored):
        return False
    return not grain.is_time or column_type == "string" or (column_type == "date" and grain is Grain.DAY)


def _is_cut(column_type: str, grain: Grain, stored: Grain | None) -> bool:
    return column_type == "string" and stored is not None and stored is not grain


def partition_text(column: str, column_type: str, grain: Grain, stored: Grain | None = None) -> Column:
    """The canonical text of a row's partition; ``null`` if the column is NULL. See :func:`partition_unit`."""
    _refuse_mismatch(column, column_type, grain)
    value = F.col(quoted(column))
    if _is_cut(column_type, grain, stored):
        value = F.substring(value, 1, grain.width)
    if column_type == "string":
        text = value if grain.is_time else _encode_value_text(value)
    elif grain.is_time and not (column_type == "date" and grain is Grain.DAY):
        text = F.date_format(value, _TIME_PATTERNS[grain])
    else:
        text = value.cast("string")
    return F.coalesce(text, F.lit(NULL))


def in_partitions(column: str, column_type: str, grain: Grain, partitions: Iterable[str]) -> Column:
    """Whether a row is in one of the partitions, as half-open typed ranges that Iceberg and Parquet can prune by.

    With very many scattered partitions the ranges only narrow down the files, and a set selects the exact rows.
    """
    _refuse_mismatch(column, column_type, grain)
    wanted = set(partitions)
    pieces = fold_values(column_type, grain, wanted - {NULL})
    if len(pieces) <= _MAX_FLAT_RANGES:
        condition = build_partition_filter(column, column_type, grain, wanted)
    else:
        is_exact = len(pieces) <= _MAX_RANGES
        condition = _build_grouped_ranges(
            column, column_type, grain, pieces if is_exact else list(_merge_ranges(column_type, grain, pieces))
        )
        if not is_exact:
            condition = f"({condition}) AND {_build_membership(quoted(column), column_type, grain, wanted - {NULL})}"
        condition = f"{quoted(column)} IS NULL OR ({condition})" if NULL in wanted else condition
    if column_type == "string" and grain.is_time:
        # between the texts of two days there are texts that are not days
        condition = f"({condition}) AND ({quoted(column)} IS NULL OR {quoted(column)} RLIKE '^{_TEXT_SHAPES[grain]}$')"
    # as SQL text, because a column built from Python costs several calls into the JVM
    return F.expr(condition)


def in_scope(target: TargetPin, partitions: Iterable[str]) -> Column:
    """Whether a row of the target is in one of the partitions."""
    return in_partitions(target.column, target.column_type, target.grain, partitions)


def partition_name(target: TargetPin) -> Column:
    """The canonical text of a target row's partition."""
    return partition_text(target.column, target.column_type, target.grain)


def is_partition_text(text: Column, grain: Grain) -> Column:
    """Whether a text is the canonical text of a time partition."""
    is_time = F.try_to_timestamp(text, F.lit(_TIME_PATTERNS[grain])).isNotNull()
    return text.rlike(f"^{_TEXT_SHAPES[grain]}$") & is_time


def typed_partition(text: Column, column_type: str, grain: Grain) -> Column:
    """The first value of a partition in the column's type, from its text (by time) or its value (by value)."""
    value = F.to_timestamp(text, _TIME_PATTERNS[grain]) if grain.is_time and column_type != "string" else text
    return value.cast(to_spark_type(column_type))


def _refuse_mismatch(column: str, column_type: str, grain: Grain) -> None:
    if column_type not in PARTITION_TYPES:
        raise UsageError(
            f"partition column {column}: type {column_type} was refused; expected one of {', '.join(PARTITION_TYPES)}"
        )
    if grain.is_time and column_type in ("int", "long"):
        raise UsageError(f"partition column {column}: grain {grain} was refused; a {column_type} has grain value")
    if not grain.is_time and column_type in ("timestamp", "timestamptz"):
        raise UsageError(f"partition column {column}: grain value was refused; a {column_type} has a time grain")


def _encode_value_text(value: Column) -> Column:
    ambiguous = (value == F.lit(NULL)) | value.startswith('"')
    return F.when(value == "", F.lit('""')).when(ambiguous, _json_text(value)).otherwise(value)


def _json_text(value: Column) -> Column:
    """The JSON text of a string as ``json.dumps`` writes it: ASCII, escaped by UTF-16 unit."""
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


def _build_grouped_ranges(column: str, column_type: str, grain: Grain, pieces: Sequence[tuple[str, str]]) -> str:
    """Ranges in groups, each preceded by the range that covers it, so that most files need one comparison per group."""
    size = isqrt(len(pieces)) + 1
    groups = [pieces[start : start + size] for start in range(0, len(pieces), size)]

    def term(first: str, last: str) -> str:
        return build_range_filter(column, column_type, grain, first, last)

    return " OR ".join(
        f"({term(group[0][0], group[-1][1])} AND ({' OR '.join(term(*one) for one in group)}))" for group in groups
    )


def _merge_ranges(column_type: str, grain: Grain, pieces: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """At most ``_MAX_RANGES`` wider ranges that cover all pieces, cut at the largest gaps."""
    if grain.is_time or column_type in ("int", "long"):
        place = (lambda text: to_ordinal(grain, text)) if grain.is_time else int
        gaps = {n: place(after[0]) - place(before[1]) for n, (before, after) in enumerate(pairwise(pieces), 1)}
        cuts = sorted(nlargest(_MAX_RANGES - 1, gaps, key=gaps.__getitem__))
    else:
        cuts = [n * len(pieces) // _MAX_RANGES for n in range(1, _MAX_RANGES)]  # text has no distances
    for start, end in pairwise([0, *cuts, len(pieces)]):
        yield pieces[start][0], pieces[end - 1][1]


def _build_membership(name: str, column_type: str, grain: Grain, partitions: Iterable[str]) -> str:
    """Exact membership by a computed value: one set lookup, and no ``IN`` on a column that Iceberg would evaluate."""
    if grain.is_time and column_type != "string":
        listed = ", ".join(str(to_ordinal(grain, text)) for text in partitions)
        number = _ORDINALS[grain].replace("?", name)
        return f"{number} IN ({listed})"
    texts = (text if grain.is_time else value_from_text(text) or "" for text in partitions)
    # hexadecimal, so that no value needs quoting
    return f"hex(CAST({name} AS STRING)) IN ({', '.join(repr(text.encode().hex().upper()) for text in texts)})"


def content_hashes(frame: DataFrame, columns: Sequence[str]) -> tuple[Column, Column]:
    """Two 64-bit hashes of a row of this frame; see :mod:`errata.engines.spark.measure.checksums`."""
    first, second = row_hash_sql({field.name: field.dataType for field in frame.schema.fields}, columns)
    return F.expr(first), F.expr(second)


def all_of(terms: Sequence[Column]) -> Column:
    """The conjunction of the conditions."""
    return reduce(operator.and_, terms, F.lit(True))  # noqa: FBT003 - a literal is a value
