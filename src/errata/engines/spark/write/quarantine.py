"""Write and count a chunk's quarantined rows, in one append to the run's quarantine table, marked with the attempt.

Every screened input is read once more, for the chunk's own partitions and without look-back: each row is written by the
one chunk that publishes its partition, so two chunks never write the same row. An input that is read whole is accounted
for by the chunk with the first partition to be computed. Rows that the transform quarantines are part of the same
append.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import JSON_OPTIONS, in_partitions, partition_text
from errata.engines.spark.inputs.access import Clusters, InputAccess
from errata.engines.spark.inputs.frames import read_screened
from errata.engines.spark.inputs.row_rules import ORIGIN, OUT, SOURCE, is_used, split_rows, to_row_struct
from errata.engines.spark.inputs.topic_records import RecordCount, list_ranges, read_records, screen_records
from errata.engines.spark.write.append import SparkWriter
from errata.errors import TransformFailed
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest, list_divisible_inputs
from errata.model.partition import WHOLE, Grain
from errata.model.product.eras import QUARANTINE, SUPPRESS
from errata.model.refs import quarantine_table
from errata.ports.compute import ChunkWork


@dataclass(slots=True)
class TransformQuarantine:
    """Collects the rows that a transform quarantines until they are written. Runs no Spark action."""

    manifest: Manifest
    rows: list[tuple[InputPin, str, DataFrame]] = field(default_factory=list)

    def __call__(self, frame: DataFrame, condition: Column | str, reason: str, source: str | None) -> DataFrame:
        """Quarantine the rows for which the condition is true, and return the others; NULL is not true."""
        pin = self._input(source)
        if str(pin.partition).lower() not in (name.lower() for name in frame.columns):
            raise TransformFailed(
                f"ctx.quarantine of rows of {pin.name} was refused; expected its partition column {pin.partition} in "
                f"the frame, found {', '.join(frame.columns)}"
            )
        if not reason.strip():
            raise TransformFailed("ctx.quarantine was refused; expected a reason")
        return split_rows(lambda rows, why: self.rows.append((pin, why, rows)), frame, condition, reason, source)

    def _input(self, name: str | None) -> InputPin:
        able = list_divisible_inputs(self.manifest)
        chosen = [pin for pin in able if name in (None, pin.name)]
        if len(chosen) != 1:
            known = ", ".join(pin.name for pin in able) or "none"
            raise TransformFailed(
                f"ctx.quarantine was refused; expected the input whose rows these are, one of {known}; found "
                f"{name or 'none'}",
                hint='ctx.quarantine(frame, condition, "reason", of="…")',
            )
        return chosen[0]


def is_owned_by_chunk(pin: InputPin, manifest: Manifest, partitions: Sequence[str]) -> bool:
    """Whether a chunk of these partitions accounts for the rows of this input."""
    first = manifest.chunks[0].partitions[0] if manifest.chunks else manifest.partitions[0]
    return pin.partition is not None or first in partitions


def write_quarantine(
    session: SparkSession,
    writer: SparkWriter,
    work: ChunkWork,
    aside: TransformQuarantine,
    ensure: Callable[[str], None],
    access: InputAccess,
) -> Mapping[str, int]:
    """Append the quarantined rows; returns counts of rows read, used, quarantined and suppressed, by input.

    Raises ``SourceChanged`` if a topic did not return every record of its sealed offsets.
    """
    pieces = [
        *_iterate_screened(session, work, access.for_list(work.manifest.erasure)),
        *_iterate_set_aside(work, aside),
    ]
    if not pieces:
        return {}
    table = quarantine_table(work.manifest.target.table, work.run_id)
    ensure(table)
    rows = reduce(DataFrame.unionAll, [piece.rows for piece in pieces])
    writer.append(rows, table, None, ("errata.attempt", work.attempt), {"errata.run": work.run_id})
    found = _count_log_records(session, work, access.clusters)
    for piece in pieces:
        for name, count in piece.seen.get.items():
            found[f"{name}:{piece.input}"] = found.get(f"{name}:{piece.input}", 0) + int(count or 0)
        if piece.records is not None:
            found |= {f"{name}:{piece.input}": count for name, count in piece.records.settle(work).items()}
    return found


def _count_log_records(session: SparkSession, work: ChunkWork, clusters: Clusters) -> dict[str, int]:
    """Records of change logs in Kafka, and of the ends of their transactions, compared with the sealed offsets."""
    found: dict[str, int] = {}
    for pin in work.manifest.inputs:
        if pin.topic is not None and pin.is_message_log:
            ranges = list_ranges(pin, work.parts, ())
            counted = RecordCount(pin.topic, ranges, Observation())
            records = read_records(session, pin.topic, ranges, clusters)
            found |= {f"{name}:{pin.name}": n for name, n in counted.count(records, work).items()}
    return found


@dataclass(frozen=True, slots=True)
class _QuarantineBatch:
    input: str
    rows: DataFrame
    seen: Observation
    records: RecordCount | None = None


def _iterate_screened(session: SparkSession, work: ChunkWork, access: InputAccess) -> Iterator[_QuarantineBatch]:
    manifest, grain = work.manifest, work.manifest.target.grain
    for pin in manifest.inputs:
        if not pin.is_counted or not is_owned_by_chunk(pin, manifest, work.chunk.partitions):
            continue
        kind = pin.column_type or manifest.target.column_type
        rule = rule_of_pin(pin, grain).without_look
        names = rule.list_reads(work.chunk.partitions)
        every, records = _read_and_count(session, work, pin, names, rule.input_grain, kind, access)
        action, seen = F.col(OUT)["action"], Observation()
        counted = every.observe(
            seen,
            F.count(F.lit(1)).alias("rows_in"),
            F.count_if(is_used()).alias("rows_used"),
            F.count_if(action == QUARANTINE).alias("rows_quarantined"),
            F.count_if(action == SUPPRESS).alias("rows_suppressed"),
        )
        kept = counted.where(action == QUARANTINE)
        partition = (
            F.lit(WHOLE) if pin.partition is None else partition_text(pin.partition, kind, grain, rule.input_grain)
        )
        reason = (F.col(OUT)["kind"], F.col(OUT)["reason"])
        yield _QuarantineBatch(
            pin.name, _build_records(kept, work, pin, partition, reason, F.col(ORIGIN), F.col(SOURCE)), seen, records
        )


def _read_and_count(
    session: SparkSession,
    work: ChunkWork,
    pin: InputPin,
    names: Sequence[str],
    grain: Grain,
    kind: str,
    access: InputAccess,
) -> tuple[DataFrame, RecordCount | None]:
    """The screened rows of an input; of a topic also the count of its records, before any is cut."""
    if pin.topic is None or pin.log is not None:
        inputs = work.manifest.inputs
        return read_screened(session, pin, work.parts, names, grain, kind, access, inputs), None
    ranges = list_ranges(pin, work.parts, names)
    counted = RecordCount(pin.topic, ranges, Observation())
    records = counted.observe(read_records(session, pin.topic, ranges, access.clusters))
    return screen_records(records, pin, names, grain, kind, access), counted


def _iterate_set_aside(work: ChunkWork, aside: TransformQuarantine) -> Iterator[_QuarantineBatch]:
    manifest, grain = work.manifest, work.manifest.target.grain
    for pin, reason, frame in aside.rows:
        kind, seen = pin.column_type or manifest.target.column_type, Observation()
        # look-back rows are written by the chunk that publishes their partition
        rule = rule_of_pin(pin, grain).without_look
        names = rule.list_reads(work.chunk.partitions)
        own = frame.where(in_partitions(str(pin.partition), kind, rule.input_grain, names))
        counted = own.observe(seen, F.count(F.lit(1)).alias("rows_set_aside"))
        partition = partition_text(str(pin.partition), kind, grain, rule.input_grain)
        origin = F.lit(f"{manifest.code.call} {manifest.code.version}")
        row = F.to_json(to_row_struct(frame), JSON_OPTIONS)
        told = (F.lit("transform"), F.lit(reason))
        yield _QuarantineBatch(pin.name, _build_records(counted, work, pin, partition, told, origin, row), seen)


def _build_records(
    rows: DataFrame,
    work: ChunkWork,
    pin: InputPin,
    partition: Column,
    reason: tuple[Column, Column],
    origin: Column,
    row: Column,
) -> DataFrame:
    return rows.select(
        F.lit(work.run_id).alias("run_id"),
        F.lit(work.chunk.chunk_id).alias("chunk_id"),
        F.lit(work.attempt).alias("attempt"),
        F.lit(pin.name).alias("input"),
        partition.alias("partition"),
        reason[0].alias("kind"),
        reason[1].alias("reason"),
        origin.alias("origin"),
        row.alias("row"),
    )
