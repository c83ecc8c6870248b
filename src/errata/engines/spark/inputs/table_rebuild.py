"""Rebuild a table from the change events of Debezium: its changes, its rows at a position of the log, its history.

The rule, in one shuffle by key: a change counts from the commit of its transaction on, a row of a snapshot from the
position of the snapshot. Repeated events count once. Of each key the last change wins, by (commit, snapshot rows first,
own position). Keys that are deleted, truncated after, or missing from a later whole snapshot are not in the table.
Runs no Spark action.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

_SOURCE = "snapshot string, txId bigint, lsn bigint, db string, schema string, `table` string, ts_us bigint"
_EVENT = f"op string, before map<string,string>, after map<string,string>, source struct<{_SOURCE}>"
_END = "status string, id string"


def parse_events(values: Column) -> Column:
    """A change event of Debezium, with rows as text by column, so that columns may come and go."""
    return F.from_json(values, _EVENT)


def read_commits(transactions: DataFrame) -> DataFrame:
    """Id, first change and commit of every transaction that ended, from the text in the column ``value``; each once.

    BEGIN has the position of the first change in its id, END that of the commit.
    """
    told = transactions.select(F.from_json("value", _END).alias("t")).select("t.*")
    parts = F.split("id", ":")
    marks = told.select("status", parts[0].cast("bigint").alias("txId"), parts[1].cast("bigint").alias("position"))
    begins = marks.where("status = 'BEGIN'").select("txId", F.col("position").alias("first")).distinct()
    ends = marks.where("status = 'END'").select("txId", F.col("position").alias("at")).distinct()
    pairs = begins.join(ends, "txId").where("first <= at")
    # an id is given again after 2^32 transactions: each END belongs to the last BEGIN before it
    return pairs.groupBy("txId", "at").agg(F.max("first").alias("first"))


def normalize_changes(events: DataFrame, commits: DataFrame, key: Sequence[str]) -> DataFrame:
    """Every change once: op, key, before, after, at (where it counts from), lsn and txId; open transactions have no at.

    ``events`` has the text of an event in ``value``; a tombstone has none and says nothing.
    """
    read = events.where("value IS NOT NULL").select(parse_events(F.col("value")).alias("e")).select("e.*")
    row = F.when(F.col("op") == "d", F.col("before")).otherwise(F.col("after"))
    named = read.select(
        "op",
        "before",
        "after",
        F.col("source.txId").alias("txId"),
        F.col("source.lsn").alias("lsn"),
        F.col("source.snapshot").alias("snapshot"),
        F.col("source.ts_us").alias("source_us"),
        F.when(F.col("op") != "t", F.array(*(row[name] for name in key))).alias("key"),
    )
    # a connector that starts again delivers again: the same change of the same transaction
    once = named.dropDuplicates(["op", "txId", "lsn", "key"])
    ended = commits.select(F.col("txId").alias("__tx"), F.col("first").alias("__first"), F.col("at").alias("__at"))
    inside = (F.col("txId") == F.col("__tx")) & F.col("lsn").between(F.col("__first"), F.col("__at"))
    joined = once.join(F.broadcast(ended), inside & (F.col("op") != "r"), "left")
    at = F.when(F.col("op") == "r", F.col("lsn")).otherwise(F.col("__at"))
    return joined.withColumn("at", at).drop("__tx", "__first", "__at")


def rebuild_state(changes: DataFrame, position: int) -> DataFrame:
    """The rows of the table when everything up to a position had been committed: key, row, at and lsn of each."""
    seen = changes.where(F.col("at") <= F.lit(position))
    last = _order_by_key(seen.where("op <> 't'")).where("__later = 0")
    # where a truncate or a snapshot is newest; both empty the table for every key that did not change after it
    marks = seen.agg(
        F.max(F.when(F.col("op") == "t", F.struct("at", "lsn"))).alias("emptied"),
        F.max(F.when(F.col("op") == "r", F.col("at"))).alias("read_again"),
    )
    kept = last.crossJoin(F.broadcast(marks)).where(
        (F.col("op") != "d")
        & (F.col("emptied").isNull() | (F.struct("at", "lsn") > F.col("emptied")))
        & (F.col("read_again").isNull() | (F.col("at") >= F.col("read_again")))
    )
    return kept.select("key", F.col("after").alias("row"), "at", "lsn")


def _order_by_key(changes: DataFrame) -> DataFrame:
    """Changes with the number of later ones of the same key."""
    newest_first = (F.col("at").desc(), (F.col("op") == "r").asc(), F.col("lsn").desc(), (F.col("op") == "d").asc())
    window = Window.partitionBy("key").orderBy(*newest_first)
    return changes.withColumn("__later", F.row_number().over(window) - F.lit(1))
