"""Leave out rows of erased subjects and mask values, before anything else sees the rows. Runs no Spark action.

Ids are hashed in Python workers, because a key in a SQL expression would be printed in every query plan. The hashes are
joined with the list as a table, so that no id and no hash is part of a plan either. An id counts as it is in the
source, and as the declared type of its column writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import InputAccess
from errata.errors import ChunkError, EngineError
from errata.model.manifest import InputPin
from errata.model.partition_sql import quote_table, quoted
from errata.model.product.erasure import SUBJECT, ErasurePin
from errata.model.product.input_policy import BLANK, HASH, LAST4, REDACT, REDACTED
from errata.model.types import to_spark_type
from errata.ports.measure import LISTED

_HASH, _FOUND = "__errata_hash", "__errata_found"


def protect_rows(
    rows: DataFrame, pin: InputPin, access: InputAccess, names: Mapping[str, str] | None = None
) -> DataFrame:
    """The rows with masked values, and with a mark on those of erased subjects.

    ``names`` maps declared columns to those of the source, where they differ.
    """
    named = names or {}
    if pin.subjects:
        columns = [named.get(name, name) for name in pin.subjects]
        _require_columns(rows, pin, columns)
        ids = [_iterate_texts(rows, pin, name, named.get(name, name)) for name in pin.subjects]
        rows = mark_listed(rows, [text for texts in ids for text in texts], access)
    return mask_rows(rows, pin, access, named)


def mark_listed(rows: DataFrame, ids: Sequence[Column], access: InputAccess) -> DataFrame:
    """The rows with a column that says whether one of these ids is on the list."""
    erasure = access.erasure
    if erasure is None:
        raise EngineError("rows of erased subjects cannot be left out: the plan names no list")
    if erasure.snapshot_id is None:
        return rows.withColumn(LISTED, F.lit(False))  # noqa: FBT003 - a literal is a value
    listed = _read_listed(rows.sparkSession, access)
    hashed = _build_udf(access)
    marks = []
    # a masked id is its own hash already, so that the list covers tables of masked ids as well
    for n, value in enumerate([each for text in ids for each in (hashed(text), text)]):
        known, own, mark = f"{_HASH}_{n}", f"{_HASH}_{n}_row", f"{_FOUND}_{n}"
        # distinct hashes, so that the join adds no row
        right = listed.select(F.col(SUBJECT).alias(known), F.lit(True).alias(mark))  # noqa: FBT003 - a literal
        rows = rows.withColumn(own, value).join(F.broadcast(right), F.col(own) == F.col(known), "left")
        rows = rows.drop(own, known)
        marks.append(mark)
    found = F.coalesce(*(F.col(mark) for mark in marks), F.lit(False))  # noqa: FBT003 - a literal is a value
    return rows.withColumn(LISTED, found).drop(*marks)


def _build_udf(access: InputAccess) -> Callable[..., Column]:
    hasher = access.hasher()

    # Spark calls it for every row, also where the plan has a condition around it
    def hashed(text: str | None) -> str | None:
        return None if text is None else hasher(text)

    return F.udf(hashed, "string", useArrow=False)


def _read_listed(session: SparkSession, access: InputAccess) -> DataFrame:
    """The hashes that count, each once: all, or those that came after a snapshot of the list."""
    assert access.erasure is not None  # noqa: S101 - the caller has looked
    every = read_list(session, access.erasure)
    if access.since is None:
        return every.distinct()
    return every.subtract(read_list(session, replace(access.erasure, snapshot_id=access.since)))


def mark_subjects(rows: DataFrame, columns: Sequence[str], access: InputAccess) -> DataFrame:
    """The rows with a column that says whether the id in one of these columns is on the list."""
    return mark_listed(rows, [F.col(quoted(name)).cast("string") for name in columns], access)


def drop_listed(rows: DataFrame, columns: Sequence[str], access: InputAccess) -> DataFrame:
    """Only the rows whose subject is not on the list."""
    return mark_subjects(rows, columns, access).where(~F.col(LISTED)).drop(LISTED)


def read_list(session: SparkSession, erasure: ErasurePin) -> DataFrame:
    """The hashes on the list at the snapshot of the pin."""
    table = quote_table(erasure.table)
    if erasure.snapshot_id is None:
        return session.createDataFrame([], f"{SUBJECT} string")
    return session.read.option("versionAsOf", erasure.snapshot_id).table(table).select(SUBJECT)


def _iterate_texts(rows: DataFrame, pin: InputPin, name: str, source: str) -> list[Column]:
    """Texts of an id: as the source has it, and as its declared type writes it."""
    value = F.col(quoted(source))
    texts = [value.cast("string")]
    declared = pin.columns.get(name)
    if declared is not None and rows.schema[source].dataType.simpleString() != to_spark_type(declared):
        texts.append(value.try_cast(to_spark_type(declared)).cast("string"))
    return texts


def mask_rows(rows: DataFrame, pin: InputPin, access: InputAccess, named: Mapping[str, str]) -> DataFrame:
    """The rows with masked values; ``named`` maps declared columns to those of the source, where they differ."""
    wanted = {named.get(name, name): how for name, how in pin.masks.items()}
    _require_columns(rows, pin, list(wanted))
    masked = {name: _mask_value(F.col(quoted(name)), how, access) for name, how in wanted.items()}
    blank = {name: F.lit(None).cast(rows.schema[name].dataType) for name, how in wanted.items() if how == BLANK}
    return rows.withColumns({**masked, **blank}) if masked else rows


def _mask_value(value: Column, how: str, access: InputAccess) -> Column:
    text = value.cast("string")
    if how == HASH:
        return _build_udf(access)(text)
    if how == REDACT:
        return F.when(text.isNotNull(), F.lit(REDACTED))
    if how == LAST4:
        hidden = F.greatest(F.length(text) - F.lit(4), F.lit(0))
        # a text of at most four characters would be shown whole
        short = F.repeat(F.lit("*"), F.length(text))
        return F.when(hidden == 0, short).otherwise(F.concat(F.repeat(F.lit("*"), hidden), F.substring(text, -4, 4)))
    return F.lit(None)


def _require_columns(rows: DataFrame, pin: InputPin, columns: Sequence[str]) -> None:
    """Refuse rows without a column that has to be looked at: they could be anyone's."""
    if missing := [name for name in columns if name not in rows.columns]:
        raise ChunkError(
            f"input {pin.name} lacks {', '.join(missing)}, which its product file names under subjects or mask",
            state="nothing was written",
            hint="correct the names there, and plan again",
            input=pin.name,
        )
