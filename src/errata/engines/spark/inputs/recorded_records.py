"""Read the recorded records of a topic as if they came from the topic: each once, with the same columns.

Recordings of windows that touch each other share records, so a record counts by its topic, partition and offset. Runs
no Spark action.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.inputs.source_files import FilesPart, read_files, select_files
from errata.engines.spark.inputs.topic_records import build_empty_records
from errata.model.kafka.recorded_record import RECORDED_COLUMNS
from errata.model.manifest import InputPin
from errata.model.partition_sql import quoted
from errata.model.recording.row_columns import ROWS_ENDING
from errata.model.types import to_spark_type

_TOPIC_ID = "__errata_topic_id"


def read_recorded_records(
    session: SparkSession, pin: InputPin, part: FilesPart, partitions: Sequence[str]
) -> DataFrame:
    """Every record of the recorded files of these partitions, with the columns of records and its value as bytes."""
    paths = sorted({file.path for files in select_files(pin, part, partitions).values() for file in files})
    if not paths:
        return build_empty_records(session)
    frames = []
    for is_text in (False, True):
        some = [path for path in paths if path.endswith(ROWS_ENDING) == is_text]
        if some:
            frames.append(_to_records(read_files(session, pin, some, _build_ddl(is_text=is_text))))
    records = reduce(DataFrame.unionAll, frames)
    if len(paths) > 1:
        records = records.dropDuplicates([_TOPIC_ID, "kafka_partition", "kafka_offset"])
    return records.drop(_TOPIC_ID)


def _build_ddl(*, is_text: bool) -> str:
    kinds = {name: "string" if is_text else kind for name, kind in RECORDED_COLUMNS.items()}
    return ", ".join(f"{quoted(name)} {to_spark_type(kind)}" for name, kind in kinds.items())


def _to_records(rows: DataFrame) -> DataFrame:
    key, value = (
        F.coalesce(F.col(name).cast("binary"), F.unbase64(F.col(f"{name}_base64"))) for name in ("key", "value")
    )
    return rows.select(
        key.alias("kafka_key"),
        F.col("topic").alias("kafka_topic"),
        F.col("partition").cast("int").alias("kafka_partition"),
        F.col("offset").cast("bigint").alias("kafka_offset"),
        F.col("timestamp").cast("timestamp").alias("kafka_timestamp"),
        F.col("headers").alias("kafka_headers"),
        value.alias("value"),
        F.col("topic_id").alias(_TOPIC_ID),
    )
