"""Find out which offsets and ends of transactions a change log has, and where some are missing. Collects aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.change_messages import is_unreadable, name_origin
from errata.model.change_log.log_contents import EndFacts, LogPartition
from errata.ports.tables import InputState

_BUCKET = 1_000_000


def read_ends(marks: DataFrame, commits: DataFrame, state: InputState) -> EndFacts:
    """Ends of transactions: how many, the first and the last, and whether any is missing or goes back."""
    seen = read_offsets(marks.where(F.col("value").isNotNull() & F.col("m.status").isNotNull()))
    partitions = len(state.topic.logs) if state.topic is not None else len(seen)
    total = read_row(commits.agg(F.count(F.lit(1)).alias("n"), F.min("at").alias("first"), F.max("at").alias("last")))
    is_trimmed = state.topic is not None and any(log.earliest > 0 for log in state.topic.logs)
    return EndFacts(
        partitions=max(1, partitions),
        count=int(total["n"]),
        first=total["first"],
        last=total["last"],
        fall=_find_fall(commits),
        is_from_start=not is_trimmed and all(one["first"] == 0 for one in seen),
        missing=sum(int(one["span"]) - int(one["seen"]) for one in seen),
    )


def _find_fall(commits: DataFrame) -> tuple[int, int] | None:
    """A commit position that is lower than one that was sent before it; repeated ENDs count where they were first.

    Ends are compared within buckets of offsets, and buckets with each other, so that nothing is sorted as a whole.
    """
    bucketed = commits.withColumn("bucket", (F.col("offset") / F.lit(_BUCKET)).cast("bigint"))
    in_order = Window.partitionBy("bucket").orderBy("offset")
    before = F.lag("at").over(in_order)
    pairs = bucketed.withColumn("fell", F.when(before > F.col("at"), F.struct(before.alias("was"), "at")))
    found = pairs.groupBy("bucket").agg(
        F.min("at").alias("least"), F.max("at").alias("most"), F.first("fell", ignorenulls=True).alias("fell")
    )
    highest: int | None = None
    for one in sorted(found.collect(), key=lambda row: row["bucket"]):
        if one["fell"] is not None:
            return int(one["fell"]["was"]), int(one["fell"]["at"])
        if highest is not None and one["least"] < highest:
            return highest, int(one["least"])
        highest = int(one["most"])
    return None


def read_partitions(offsets: Sequence[Row], normal: DataFrame, state: InputState) -> tuple[LogPartition, ...]:
    """Partitions of the topics that have changes of the table; of Kafka also those that retention emptied."""
    heads = normal.groupBy("topic", "partition").agg(
        F.count(F.lit(1)).alias("n"), F.min_by(F.struct("op", "at"), "offset").alias("head")
    )
    by_place = {(one["topic"], one["partition"]): one for one in heads.collect()}
    topics = {topic for topic, _ in by_place}
    found = [
        _build_partition(one, by_place.get((one["topic"], one["partition"])))
        for one in offsets
        if one["topic"] in topics and one["first"] is not None
    ]
    names = {one.name for one in found}
    topic = state.location.rpartition("/")[2]
    logs = {f"{topic}/{log.partition}": log for log in (state.topic.logs if state.topic is not None else ())}
    emptied = {name: log for name, log in logs.items() if name not in names and log.earliest > 0}
    found += [LogPartition(name, log.earliest, missing=0, changes=1) for name, log in emptied.items()]
    return tuple(sorted(found, key=lambda part: part.name))


def _build_partition(one: Row, head: Row | None) -> LogPartition:
    return LogPartition(
        name=f"{one['topic']}/{one['partition']}",
        first_offset=int(one["first"]),
        missing=int(one["span"]) - int(one["seen"]),
        changes=int(head["n"]) if head else 0,
        head_at=head["head"]["at"] if head else None,
        head_is_row=bool(head and head["head"]["op"] == "r"),
    )


def read_offsets(messages: DataFrame) -> list[Row]:
    """Of each partition of each topic: the first offset, how many, how many there should be, unreadable messages."""
    span = F.max("offset") - F.min("offset") + F.lit(1)
    place = F.coalesce(name_origin(), F.col("problem"), F.lit("a message without a place"))
    grouped = messages.groupBy("topic", "partition").agg(
        F.min("offset").alias("first"),
        F.count_distinct("offset").alias("seen"),
        span.alias("span"),
        F.count_if(is_unreadable()).alias("bad"),
        F.min(F.when(is_unreadable(), place)).alias("bad_first"),
    )
    return grouped.collect()


def read_row(aggregate: DataFrame) -> Row:
    """The one row of an aggregate."""
    return aggregate.collect()[0]
