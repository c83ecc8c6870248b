"""Decide which rows of an input the transform sees, and what happens to the others. Runs no Spark action.

A screened frame has every row and an additional column with the decision: NULL for a row that is used, otherwise action
and reason. The first match decides, so that every row has one outcome: failed casts come first, then row rules in the
order of the product file. Lines of recorded files that are no rows come before them, and erased subjects before all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.spark.columns import JSON_OPTIONS
from errata.model.manifest import InputPin
from errata.model.partition_sql import quoted
from errata.model.product.eras import QUARANTINE, SUPPRESS
from errata.model.product.erasure import ERASED
from errata.model.recording.row_columns import LINE, PROBLEM, ROW_COLUMNS, TEXT
from errata.ports.measure import LISTED

CAST, ORIGIN, OUT, SOURCE = "__errata_cast", "__errata_origin", "__errata_out", "__errata_source"
"""Reason for a failed cast; origin (file, or table at snapshot); the decision; the source row."""
ERASED_KIND = "erased"
"""Kind of the decision about rows of erased subjects."""
DECISION_TYPE = "struct<action:string,kind:string,reason:string>"
OWN_COLUMNS = (CAST, LISTED, ORIGIN, OUT, SOURCE, *ROW_COLUMNS, "__errata_first", "__errata_last")


def add_source(rows: DataFrame, names: Sequence[str] | None = None) -> DataFrame:
    """Add a copy of the source row: these columns, or all. Values that have to be masked are masked by then."""
    return rows.withColumn(SOURCE, to_row_struct(rows, names))


def to_row_struct(rows: DataFrame, names: Sequence[str] | None = None) -> Column:
    """The row as one struct, without Errata's own columns."""
    wanted = [
        field
        for field in rows.schema.fields
        if field.name not in OWN_COLUMNS and (names is None or field.name in names)
    ]
    return F.struct(*(_preserve_text(field) for field in wanted))


def _preserve_text(field: T.StructField) -> Column:
    value = F.col(quoted(field.name))
    if not isinstance(field.dataType, T.StringType):
        return value
    # invalid UTF-8 would be lost in JSON, so it is written as hexadecimal digits
    digits = F.when(value.isNotNull(), F.concat(F.lit("0x"), F.hex(value)))
    return F.when(F.is_valid_utf8(value), value).otherwise(digits).alias(field.name)


def screen_rows(rows: DataFrame, pin: InputPin) -> DataFrame:
    """Add the decision for every row; the source row becomes JSON text for quarantined rows and NULL for all others."""
    chain = None
    if LISTED in rows.columns:
        chain = F.when(F.col(LISTED), _build_decision(SUPPRESS, ERASED_KIND, F.lit(ERASED)))
    for kind, reason in (("line", PROBLEM), ("cast", CAST)):
        if reason in rows.columns:
            fate = _build_decision(QUARANTINE, kind, F.col(reason))
            chain = (F if chain is None else chain).when(F.col(reason).isNotNull(), fate)
    for rule in pin.row_rules:
        holds, fate = F.expr(rule.sql), _build_decision(rule.action, "rule", F.lit(rule.name))
        chain = F.when(holds, fate) if chain is None else chain.when(holds, fate)
    decided = rows.withColumn(OUT, chain if chain is not None else F.lit(None).cast(DECISION_TYPE))
    source = F.to_json(F.col(SOURCE), JSON_OPTIONS)
    if TEXT in rows.columns:
        # in a line that cannot be read nobody can be found and nothing be masked, so that only its number is kept
        text = [] if pin.subjects or pin.masks else [F.col(TEXT).alias("text")]
        line = F.to_json(F.struct(F.col(LINE).alias("line"), *text), JSON_OPTIONS)
        source = F.when(F.col(TEXT).isNotNull(), line).otherwise(source)
    kept = F.when(F.col(OUT)["action"] == F.lit(QUARANTINE), source)
    return decided.withColumn(SOURCE, kept).drop(CAST, LISTED, *ROW_COLUMNS)


def _build_decision(action: str, kind: str, reason: Column) -> Column:
    return F.struct(F.lit(action).alias("action"), F.lit(kind).alias("kind"), reason.alias("reason")).cast(
        DECISION_TYPE
    )


def is_used() -> Column:
    """Whether the transform sees a row."""
    return F.col(OUT).isNull()


def select_used(rows: DataFrame) -> DataFrame:
    """The rows and columns that the transform sees."""
    names: Sequence[str] = [name for name in rows.columns if name not in OWN_COLUMNS]
    return rows.where(is_used()).select(*(F.col(quoted(name)) for name in names))


def split_rows(
    take: Callable[[DataFrame, str], None], frame: DataFrame, condition: Column | str, reason: str, _source: str | None
) -> DataFrame:
    """Pass the rows for which the condition is true to ``take``, and return the others; NULL is not true."""
    holds = F.coalesce(F.expr(condition) if isinstance(condition, str) else condition, F.lit(False))  # noqa: FBT003
    take(frame.where(holds), reason)
    return frame.where(~holds)
