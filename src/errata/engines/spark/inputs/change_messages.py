"""Read change messages from where they are (a topic, recorded files, a table), and parse what Debezium writes.

A message is a change, a mark (BEGIN or END of a transaction), a tombstone, or unreadable. Rows stay text by column, so
that columns may come and go. Runs no Spark action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.access import Clusters
from errata.engines.spark.inputs.source_files import load_files_part, read_files
from errata.engines.spark.inputs.topic_records import load_offsets_part, read_records
from errata.errors import EngineError
from errata.model.change_log.declaration import ChangeCapture
from errata.model.kafka.topic_range import OffsetRange, TopicPin, merge_ranges
from errata.model.manifest import InputPin, SourceFile
from errata.model.partition_sql import quote_table
from errata.model.recording.row_columns import PROBLEM

UNAVAILABLE = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
"""What Debezium writes for a value that the log does not have, as text and as base64 of bytes."""
OPERATIONS = ("c", "u", "d", "r", "t")
_NEEDED = ("value", "partition", "offset")
_SOURCE = (
    "name string, snapshot string, txId bigint, lsn bigint, db string, schema string, `table` string, sequence string, "
    "ts_ms bigint, ts_us bigint"
)
_COUNT = "array<struct<data_collection:string,event_count:bigint>>"
_MESSAGE = (
    f"op string, before map<string,string>, after map<string,string>, source struct<{_SOURCE}>, status string, "
    f"id string, data_collections {_COUNT}, ts_ms bigint"
)
_MARK_ID = r"\A[0-9]+:[0-9]+\z"


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where messages are, with what the plan pinned of it."""

    location: str
    topic: TopicPin | None = None
    ranges: tuple[OffsetRange, ...] = ()
    files: tuple[SourceFile, ...] = ()
    table: str | None = None
    snapshot_id: str | None = None
    pin: InputPin | None = field(default=None, repr=False)


def find_pinned_place(pin: InputPin, parts: Mapping[str, bytes]) -> MessagePlace:
    """The place of a sealed input."""
    if pin.topic is not None:
        ranges = merge_ranges(load_offsets_part(pin, parts).values())
        return MessagePlace(pin.location, topic=pin.topic, ranges=ranges, pin=pin)
    if pin.kind == "table":
        return MessagePlace(pin.location, table=pin.location, snapshot_id=pin.snapshot_id, pin=pin)
    files = {file.path: file for files in load_files_part(pin, parts).values() for file in files}
    return MessagePlace(pin.location, files=tuple(files[path] for path in sorted(files)), pin=pin)


def read_messages(session: SparkSession, place: MessagePlace, clusters: Clusters) -> DataFrame:
    """Every message: topic, partition, offset, value as text, and why a line is none (problem)."""
    if place.topic is not None:
        rows = read_records(session, place.topic, place.ranges, clusters)
        return rows.select(
            F.col("kafka_topic").alias("topic"),
            F.col("kafka_partition").alias("partition"),
            F.col("kafka_offset").alias("offset"),
            F.col("value").cast("string").alias("value"),
            F.lit(None).cast("string").alias("problem"),
        )
    rows = _read_files(session, place) if place.table is None else _read_table(session, place)
    return _select_fields(rows, place)


def _read_files(session: SparkSession, place: MessagePlace) -> DataFrame:
    if not place.files:
        return session.createDataFrame([], "topic string, partition int, offset bigint, value string")
    assert place.pin is not None  # noqa: S101 - files are named by their input
    return read_files(session, place.pin, [file.path for file in place.files])


def _read_table(session: SparkSession, place: MessagePlace) -> DataFrame:
    if place.snapshot_id is None:
        return session.read.table(quote_table(str(place.table))).where(F.lit(False))  # noqa: FBT003 - a literal
    return session.read.option("versionAsOf", place.snapshot_id).table(quote_table(str(place.table)))


def _select_fields(rows: DataFrame, place: MessagePlace) -> DataFrame:
    known = {name.lower(): name for name in rows.columns}
    problem = F.col(PROBLEM) if PROBLEM in rows.columns else F.lit(None).cast("string")
    if missing := [name for name in _NEEDED if name not in known]:
        raise EngineError(
            f"{place.location}: its messages have no {', '.join(missing)}; expected the fields topic, partition, "
            f"offset and value of a record, found {', '.join(sorted(rows.columns)[:12])}",
            state="nothing was changed",
            hint="record the topic with these fields, or read another place",
        )
    topic = F.col(known["topic"]).cast("string") if "topic" in known else F.lit(place.location)
    return rows.select(
        F.coalesce(topic, F.lit(place.location)).alias("topic"),
        F.col(known["partition"]).cast("string").try_cast("int").alias("partition"),
        F.col(known["offset"]).cast("string").try_cast("bigint").alias("offset"),
        F.col(known["value"]).cast("string").alias("value"),
        problem.alias("problem"),
    )


def parse_messages(messages: DataFrame) -> DataFrame:
    """Messages with their content in the column ``m``; a message with its schema is read as its payload."""
    value = F.col("value")
    with_schema = value.rlike(r'\A\s*\{\s*"schema"\s*:')
    body = F.when(with_schema, F.get_json_object(value, "$.payload")).otherwise(value)
    return messages.withColumn("m", F.from_json(body, _MESSAGE))


def is_change() -> Column:
    """Whether a parsed message is a change."""
    found = F.col("m.op").isin(*OPERATIONS) & F.col("m.source.lsn").isNotNull()
    return F.coalesce(found, F.lit(False))  # noqa: FBT003 - a literal


def is_mark() -> Column:
    """Whether a parsed message is the BEGIN or END of a transaction."""
    found = F.col("m.status").isin("BEGIN", "END") & F.col("m.id").rlike(_MARK_ID)
    return F.coalesce(found, F.lit(False))  # noqa: FBT003 - a literal


def is_unreadable() -> Column:
    """Whether a parsed message is nothing that Debezium writes to these topics; a tombstone has no value."""
    has_value = F.col("value").isNotNull() & ~is_change() & ~is_mark()
    return has_value | F.col("problem").isNotNull() | F.col("partition").isNull() | F.col("offset").isNull()


def name_origin() -> Column:
    """Where a message is, in words."""
    return F.format_string("%s/%d@%d", F.col("topic"), F.col("partition"), F.col("offset"))


def read_commits(marks: DataFrame, table: str | None = None) -> DataFrame:
    """Id, first change, commit and count of every transaction that ended, each once, from parsed messages.

    BEGIN has the position of the first change in its id, END that of the commit. An id is given again after 2^32
    transactions, and a connector that starts again repeats both: an END belongs to the BEGINs since the END before.
    """
    parts = F.split("m.id", ":")
    counted = F.filter("m.data_collections", lambda one: one["data_collection"] == F.lit(table)) if table else None
    count = F.aggregate(
        counted if counted is not None else F.col("m.data_collections"),
        F.lit(0).cast("bigint"),
        lambda total, one: total + F.coalesce(one["event_count"], F.lit(0)),
    )
    told = marks.where(is_mark()).select(
        (F.col("m.status") == "END").alias("is_end"),
        parts[0].cast("bigint").alias("tx"),
        parts[1].cast("bigint").alias("position"),
        F.coalesce(count, F.lit(0)).alias("count"),
        "offset",
        F.col("m.ts_ms").alias("ts_ms"),
    )
    once = told.groupBy("tx", "is_end", "position").agg(
        F.max("count").alias("count"), F.min("offset").alias("offset"), F.max("ts_ms").alias("ts_ms")
    )
    # one session per END: what comes after the END before it
    before = Window.partitionBy("tx").orderBy("position", "is_end").rowsBetween(Window.unboundedPreceding, -1)
    numbered = once.withColumn("session", F.coalesce(F.sum(F.col("is_end").cast("int")).over(before), F.lit(0)))
    ended = numbered.groupBy("tx", "session").agg(
        F.min(F.when(~F.col("is_end"), F.col("position"))).alias("first"),
        F.max(F.when(F.col("is_end"), F.col("position"))).alias("at"),
        F.max(F.when(F.col("is_end"), F.col("count"))).alias("count"),
        F.max(F.when(F.col("is_end"), F.col("offset"))).alias("offset"),
        F.max(F.when(F.col("is_end"), F.col("ts_ms"))).alias("ts_ms"),
    )
    return ended.where("at IS NOT NULL").drop("session")


def normalize_changes(messages: DataFrame, commits: DataFrame, declared: ChangeCapture) -> DataFrame:
    """Every change message: op, key, row, before, after, at (where it counts from), lsn, tx and its origin.

    ``row`` is the row after the change, or the deleted one. Changes of open transactions have no ``at``. Repeated
    messages are still there.
    """
    row = F.when(F.col("m.op") == "d", F.col("m.before")).otherwise(F.col("m.after"))
    source = F.col("m.source")
    named = messages.where(is_change()).select(
        F.col("m.op").alias("op"),
        F.when(F.col("m.op") != "t", row).alias("row"),
        F.col("m.before").alias("before"),
        F.when(F.col("m.op") != "t", F.array(*(row[name] for name in declared.key))).alias("key"),
        source["txId"].alias("tx"),
        source["lsn"].alias("lsn"),
        source["snapshot"].alias("snapshot"),
        F.coalesce(source["ts_us"], source["ts_ms"] * F.lit(1000)).alias("time_us"),
        F.concat_ws(".", source["schema"], source["table"]).alias("source_table"),
        F.concat_ws("/", source["name"], source["db"]).alias("source"),
        # a connector without a stored position knows no commit before the first that it sends
        ((F.col("m.op") != "r") & source["sequence"].rlike(r"\A\[\s*null")).alias("is_fresh"),
        "topic",
        "partition",
        "offset",
        name_origin().alias("origin"),
    )
    if declared.source_table is not None:
        named = named.where(F.col("source_table") == F.lit(declared.source_table))
    ended = commits.select(
        F.col("tx").alias("__tx"), F.col("first").alias("__first"), F.col("at").alias("__at")
    )  # fmt: skip
    is_inside = (F.col("lsn") <= F.col("__at")) & (F.col("__first").isNull() | (F.col("lsn") >= F.col("__first")))
    joined = named.join(ended, (F.col("tx") == F.col("__tx")) & is_inside & (F.col("op") != "r"), "left")
    at = F.when(F.col("op") == "r", F.col("lsn")).otherwise(F.col("__at"))
    return joined.withColumn("at", at).drop("__tx", "__first", "__at")
