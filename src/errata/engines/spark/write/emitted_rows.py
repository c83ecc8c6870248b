"""Keep the rows that a transform emits for topics, in one append to the run's own table, marked with the attempt.

They are written before the output. Once the attempt is adopted they are there, and rows of any other attempt are never
sent. Key and value become text here, so that what was judged is what goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows
from pyspark.sql import types as T  # noqa: N812

from errata.engines.emitted_check import require_sound_rows
from errata.engines.spark.columns import JSON_OPTIONS, partition_text
from errata.engines.spark.inputs.frames import read_snapshot
from errata.engines.spark.write.append import SparkWriter
from errata.model.kafka.outgoing import describe_inputs
from errata.model.partition_sql import quoted
from errata.model.product.sinks import SEND, Sink, require_allowed_sink, require_row_columns
from errata.model.refs import emitted_table
from errata.model.types import to_spark_type
from errata.ports.compute import ROWS_EMITTED, ChunkWork

_PARTITION = "__errata_partition"


@dataclass(slots=True)
class EmittedRows:
    """Collects the rows that a transform emits until they are written. Runs no Spark action."""

    work: ChunkWork
    frames: list[tuple[str, Sink, DataFrame]] = field(default_factory=list)

    def __call__(self, sink: str, rows: DataFrame) -> None:
        """Keep or drop the rows as the sealed plan says; raises ``TransformFailed`` if it forbids the sink."""
        found = require_allowed_sink(self.work.manifest.sinks, sink, self.work.mode)
        if found.decision != SEND:
            return
        require_row_columns(sink, found, self.work.manifest.target.column, rows.columns)
        self.frames.append((sink, found, rows))


def write_emitted(
    session: SparkSession, writer: SparkWriter, emitted: EmittedRows, ensure: Callable[[str], None]
) -> Mapping[str, int]:
    """Append the rows and count them by sink; raises ``TransformFailed`` if their keys or partitions are wrong."""
    work = emitted.work
    if not emitted.frames:
        return {}
    table = emitted_table(work.manifest.target.table, work.run_id)
    ensure(table)
    rows = reduce(DataFrame.unionAll, _iterate_rows(emitted))
    snapshot = writer.append(rows, table, None, ("errata.attempt", work.attempt), {"errata.run": work.run_id})
    kept = read_snapshot(session, table, snapshot, 1).where(F.col("attempt") == F.lit(work.attempt))
    is_foreign = ~F.col("partition").isin(*work.chunk.partitions)
    counted = kept.groupBy("sink").agg(
        F.count(F.lit(1)).alias("rows"), F.countDistinct("key").alias("keys"), F.count_if(is_foreign).alias("foreign")
    )
    found = {row["sink"]: row.asDict() for row in counted.collect()}
    for sink, one in found.items():
        require_sound_rows(work, sink, one["rows"], one["keys"], one["foreign"])
    return {f"{ROWS_EMITTED}:{sink}": int(one["rows"]) for sink, one in found.items()}


def _iterate_rows(emitted: EmittedRows) -> Iterator[DataFrame]:
    work, target = emitted.work, emitted.work.manifest.target
    read = describe_inputs(work.manifest.inputs)
    for name, sink, rows in emitted.frames:
        typed = F.col(quoted(target.column)).try_cast(to_spark_type(target.column_type))
        partition = partition_text(_PARTITION, target.column_type, target.grain)
        yield rows.withColumn(_PARTITION, typed).select(
            F.lit(work.run_id).alias("run_id"),
            F.lit(work.chunk.chunk_id).alias("chunk_id"),
            F.lit(work.attempt).alias("attempt"),
            F.lit(name).alias("sink"),
            partition.alias("partition"),
            _to_json(rows, sink.key).alias("key"),
            _to_json(rows, rows.columns).alias("value"),
            F.lit(read).alias("input_snapshot"),
        )


def _to_json(rows: DataFrame, names: tuple[str, ...] | list[str]) -> Column:
    kinds = {one.name.lower(): one.dataType for one in rows.schema.fields}
    return F.to_json(F.struct(*(_to_value(name, kinds[name.lower()]) for name in names)), JSON_OPTIONS)


def _to_value(name: str, kind: T.DataType) -> Column:
    """A column for JSON; a decimal is text, because many readers of JSON would round a number."""
    value = F.col(quoted(name))
    return (value.cast("string") if isinstance(kind, T.DecimalType) else value).alias(name)
