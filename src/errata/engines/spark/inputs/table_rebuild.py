"""Rebuild a table from its changes: its rows at a position of the log, every change once, or the history of each row.

The rule, in one shuffle by key: a change counts from the commit of its transaction on, a row of a snapshot from the
position of the snapshot. Repeated messages count once. Of each key the last change wins, by (commit, snapshot rows
first, own position). The span that the plan sealed begins with the newest whole snapshot, so keys that it lacks are
gone; keys that changed before the last truncate are gone too. Runs no Spark action.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.model.change_log.log_contents import LogReset, LogSpan

_KEPT = ("op", "row", "before", "at", "lsn", "tx", "time_us", "origin")


def _is_in(span: LogSpan) -> Column:
    return (F.col("at") >= F.lit(span.base)) & (F.col("at") <= F.lit(span.position))


def _build_order() -> Column:
    """What orders the changes of one key; a key that is deleted and made again at one position is there."""
    return F.struct("at", F.col("op") != "r", "lsn", F.col("op") != "d")


def rebuild_state(changes: DataFrame, span: LogSpan) -> DataFrame:
    """The rows of the table when everything up to the position had been committed."""
    seen = changes.where(_is_in(span) & (F.col("op") != "t"))
    if reset := span.resets[-1] if span.resets else None:
        # a row of the snapshot itself counts, what was written before a truncate does not
        later = (F.col("at") > F.lit(reset.at)) | ((F.col("at") == F.lit(reset.at)) & (F.col("lsn") > F.lit(reset.lsn)))
        is_row = (F.col("op") == "r") & (F.col("at") == F.lit(reset.at))
        seen = seen.where(later if reset.kind == "truncate" else later | is_row)
    last = seen.groupBy("key").agg(F.max_by(F.struct(*_KEPT), _build_order()).alias("last"))
    return last.select("key", "last.*").where(F.col("op") != "d")


def list_changes(changes: DataFrame, span: LogSpan, after: int | None = None) -> DataFrame:
    """Every change in the span once; with ``after`` only those that count from a later position on."""
    seen = changes.where(_is_in(span))
    if after is not None:
        seen = seen.where(F.col("at") > F.lit(after))
    # by key first, so that removing repetitions needs no shuffle of its own
    return seen.repartition("key").dropDuplicates(["key", "op", "tx", "lsn"]).select("key", *_KEPT)


def build_history(changes: DataFrame, span: LogSpan) -> DataFrame:
    """One row per version of a row: from the commit that made it until the one that replaced or removed it.

    ``until`` is NULL for versions that are still there at the position.
    """
    once = list_changes(changes, span).where("op <> 't'")
    # only the last change of a key in a transaction was ever visible
    newest = Window.partitionBy("key", "at").orderBy(_build_order().desc())
    visible = once.withColumn("__n", F.row_number().over(newest)).where("__n = 1").drop("__n")
    in_order = Window.partitionBy("key").orderBy("at")
    following = F.lead(F.struct("at", "time_us")).over(in_order)
    ended = visible.withColumn("until", F.least(following, _find_next_reset(span.resets)))
    # a row that was written and truncated in one transaction was never visible
    lasting = ended.where((F.col("op") != "d") & (F.col("until").isNull() | (F.col("until")["at"] > F.col("at"))))
    # a snapshot shows what a row was, not that it changed: the same row again continues its version
    before = F.lag(F.struct(F.col("until")["at"].alias("at"), _to_pairs().alias("row"))).over(in_order)
    continues = (F.col("op") == "r") & (before["at"] == F.col("at")) & (before["row"] == _to_pairs())
    numbered = lasting.withColumn("__new", (~F.coalesce(continues, F.lit(False))).cast("int"))  # noqa: FBT003
    version = numbered.withColumn("__version", F.sum("__new").over(in_order))
    first, last = F.struct(*_KEPT), F.struct("at", "until")
    merged = version.groupBy("key", "__version").agg(
        F.min_by(first, "at").alias("first"), F.max_by(last, "at").alias("last")
    )
    return merged.select("key", "first.*", F.col("last")["until"].alias("until"))


def _to_pairs() -> Column:
    """A row as a value that can be compared."""
    return F.array_sort(F.map_entries("row"))


def _find_next_reset(resets: Sequence[LogReset]) -> Column:
    """Where the table is next emptied or read again after a change: position and time; NULL if it is not."""
    none = F.lit(None).cast("struct<at:bigint,time_us:bigint>")
    found = none
    for one in reversed(resets):
        ends = F.struct(F.lit(one.at).cast("bigint").alias("at"), F.lit(one.time_us).cast("bigint").alias("time_us"))
        is_after = F.lit(one.at) > F.col("at")
        if one.kind == "truncate":
            is_after |= (F.lit(one.at) == F.col("at")) & (F.lit(one.lsn) > F.col("lsn"))
        found = F.when(is_after, ends).otherwise(found)
    return found
