"""Read sealed offsets of a topic as a frame: every record once, its value parsed, cut by its own event time.

Spark's batch source reads exactly the offsets that the plan sealed, as a reader of committed records. It joins a group
of its own name and commits no offset. A record whose value cannot be read, or that has no event time, is quarantined;
it counts for the partition of its record time, so that exactly one chunk accounts for it. Runs no Spark action.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.canonical import from_plain
from errata.engines.kafka.settings import build_spark_options
from errata.engines.spark.columns import in_partitions
from errata.engines.spark.inputs.access import NO_ACCESS, Clusters, InputAccess
from errata.engines.spark.inputs.eras import adapt_rows, describe_masked
from errata.engines.spark.inputs.protection import protect_rows
from errata.engines.spark.inputs.row_rules import ORIGIN, SOURCE, add_source
from errata.errors import EngineError, SourceChanged
from errata.model.kafka.declaration import RECORD_COLUMNS, RecordValue
from errata.model.kafka.topic_range import OffsetRange, OffsetsPart, TopicPin, merge_ranges
from errata.model.manifest import InputPin
from errata.model.partition import Grain
from errata.model.partition_sql import quoted
from errata.model.product.eras import eras_or_default
from errata.model.types import to_spark_type
from errata.ports.compute import ChunkWork

_PARSED, _BROKEN = "__errata_parsed", "__errata_broken"
_GROUP_PREFIX = "errata-reader"


def load_offsets_part(pin: InputPin, parts: Mapping[str, bytes]) -> OffsetsPart:
    """The sealed offsets of an input, from the manifest part named by its pin."""
    return from_plain(Mapping[str, tuple[OffsetRange, ...]], json.loads(parts[str(pin.files_part)]))  # type: ignore[type-abstract]


def list_ranges(pin: InputPin, parts: Mapping[str, bytes], partitions: Sequence[str]) -> tuple[OffsetRange, ...]:
    """What is read for these partitions of an input: one range for each partition of the topic that has any."""
    part = load_offsets_part(pin, parts)
    if pin.is_message_log:
        return merge_ranges(part.values())
    return merge_ranges(part[name] for name in partitions if name in part)


def read_records(
    session: SparkSession, topic: TopicPin, ranges: Sequence[OffsetRange], clusters: Clusters
) -> DataFrame:
    """Every record in these ranges, with the columns of records and its value as bytes."""
    declared = topic.declared
    if not ranges:
        return build_empty_records(session)
    if declared.cluster not in clusters:
        raise EngineError(f"{declared.location}: errata.yaml has no Kafka cluster {declared.cluster}")
    options = {
        **build_spark_options(clusters[declared.cluster]),
        "assign": json.dumps({declared.topic: [one.partition for one in ranges]}),
        "startingOffsets": json.dumps({declared.topic: {str(one.partition): one.start for one in ranges}}),
        "endingOffsets": json.dumps({declared.topic: {str(one.partition): one.end for one in ranges}}),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "groupIdPrefix": _GROUP_PREFIX,
        "kafka.isolation.level": "read_committed",
    }
    rows = session.read.format("kafka").options(**options).load()
    return rows.select(
        F.col("key").alias("kafka_key"),
        F.col("topic").alias("kafka_topic"),
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        F.col("timestamp").alias("kafka_timestamp"),
        F.to_json(F.transform("headers", _describe_header)).alias("kafka_headers"),
        F.col("value"),
    )


def build_empty_records(session: SparkSession) -> DataFrame:
    """No record, with the columns of records."""
    return session.createDataFrame([], f"{_list_columns()}, value binary")


@dataclass(frozen=True, slots=True)
class RecordCount:
    """Counts the records of a topic while they are read, and compares them with the sealed offsets."""

    topic: TopicPin
    ranges: tuple[OffsetRange, ...]
    seen: Observation

    def observe(self, records: DataFrame) -> DataFrame:
        """The same records; they are counted by topic partition when an action reads them."""
        by = [F.count_if(F.col("kafka_partition") == one.partition).alias(f"p{one.partition}") for one in self.ranges]
        return records.observe(self.seen, *by)

    def settle(self, work: ChunkWork) -> dict[str, int]:
        """Records read and offsets without one; raises ``SourceChanged`` where nothing explains the difference."""
        seen = self.seen.get
        return self.compare({one.partition: int(seen[f"p{one.partition}"] or 0) for one in self.ranges}, work)

    def count(self, records: DataFrame, work: ChunkWork) -> dict[str, int]:
        """Count the records in a pass of their own, for a plan that may read them more than once."""
        counted = records.groupBy("kafka_partition").count().collect()
        return self.compare({row["kafka_partition"]: int(row["count"]) for row in counted}, work)

    def compare(self, seen: Mapping[int, int], work: ChunkWork) -> dict[str, int]:
        """See :meth:`settle`; ``seen`` has the records by topic partition."""
        declared = self.topic.declared
        missing = {one.partition: one.size - seen.get(one.partition, 0) for one in self.ranges}
        lacking = {number: count for number, count in missing.items() if count}
        is_explained = declared.compacted or declared.transactions
        if any(count < 0 for count in lacking.values()) or (lacking and not is_explained):
            told = ", ".join(f"{count:,} of partition {number}" for number, count in sorted(lacking.items()))
            raise SourceChanged(
                f"{work.where}: {declared.location} has no record at offsets that were planned: {told}",
                state=work.unstaged,
                hint="if producers use transactions, say transactions: true in the input, and plan again with "
                f"--supersede {work.run_id}; without them, records are lost",
            )
        return {"records_read": sum(seen.values()), "offsets_empty": sum(lacking.values())}


def screen_records(
    records: DataFrame,
    pin: InputPin,
    partitions: Sequence[str],
    grain: Grain,
    kind: str,
    access: InputAccess = NO_ACCESS,
) -> DataFrame:
    """The records of these partitions in the transform's columns, each with its outcome."""
    value = pin.topic.declared.value if pin.topic else pin.value
    assert value is not None  # noqa: S101 - only topics and their recordings come here
    origin = F.format_string("%s/%d@%d", F.lit(pin.location), F.col("kafka_partition"), F.col("kafka_offset"))
    schema, (era, *_) = pin.schemas[0], eras_or_default(pin.eras)
    told = records.withColumns({"value": F.col("value").cast("string"), ORIGIN: origin})
    parsed, broken = _parse_values(told, value)
    safe = protect_rows(parsed, pin, access)
    rows = adapt_rows(
        _add_record(safe, pin, records.columns, broken), pin, era, describe_masked(pin, era, schema), broken=broken
    )
    column = str(pin.partition)
    return rows.where(in_partitions(column, kind, grain, partitions))


def _add_record(rows: DataFrame, pin: InputPin, names: Sequence[str], broken: Column) -> DataFrame:
    """Add the source row: the record as it is, with its value as text.

    Where values are masked, the parsed fields take the place of key, headers and value, which have them unmasked. Where
    subjects are left out, a value that cannot be read is not kept: it could be anyone's.
    """
    if pin.masks:
        hidden = {"kafka_key", "kafka_headers", "value"} - set(pin.masks)
        return add_source(rows, [name for name in rows.columns if name not in hidden and name != _BROKEN])
    rows = add_source(rows, names)
    readable = F.when(broken.isNull(), F.col("value"))
    return rows.withColumn(SOURCE, F.col(SOURCE).withField("value", readable)) if pin.subjects else rows


def _parse_values(records: DataFrame, value: RecordValue) -> tuple[DataFrame, Column]:
    """Records with the fields of their values as text, and why a value cannot be read."""
    text = F.col("value")
    missing = F.when(text.isNull(), F.lit("value is missing"))
    if value.format == "text":
        return records, missing
    names = list(value.columns)
    schema = ", ".join(f"{quoted(name)} string" for name in (*names, _BROKEN))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN}
    # a generator, because a filter below a plain column would parse the value again for every use of a field
    parsed = records.withColumn(_PARSED, F.explode(F.array(F.from_json(text, schema, options))))
    fields = {name: F.col(_PARSED)[name] for name in names}
    # an array of objects would otherwise count as its first object
    is_object = text.rlike(r"\A\s*\{")
    wrong = F.col(_PARSED).isNull() | F.col(_PARSED)[_BROKEN].isNotNull() | ~is_object
    reason = missing.when(wrong, F.lit("value is no JSON object"))
    return parsed.withColumns({**fields, _BROKEN: reason}).drop(_PARSED), F.col(_BROKEN)


def _describe_header(header: Column) -> Column:
    value = header["value"].cast("string")
    text = F.when(F.is_valid_utf8(value), value).otherwise(F.concat(F.lit("0x"), F.hex(header["value"])))
    return F.struct(header["key"].alias("key"), text.alias("value"))


def _list_columns() -> str:
    return ", ".join(f"{name} {to_spark_type(kind)}" for name, kind in RECORD_COLUMNS.items())
