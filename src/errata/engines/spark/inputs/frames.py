"""Read pinned inputs as frames: exactly the snapshot or files in the manifest, cut to the requested partitions.

Tables are read at their snapshot. Files are read by path and never listed; a missing file is an error that names it.
The caller must check before a chunk runs that a file is still the planned one (size, version). If an input declares
columns, each era is read separately and adapted; rows removed by row rules, and those of erased subjects, are not in
the frame, but :func:`read_screened` returns them with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_partitions, in_scope
from errata.engines.spark.inputs.access import NO_ACCESS, InputAccess
from errata.engines.spark.inputs.change_rows import ChangeLog, screen_change_log
from errata.engines.spark.inputs.eras import read_files_by_era, read_table_by_era
from errata.engines.spark.inputs.protection import drop_listed, protect_rows
from errata.engines.spark.inputs.recorded_records import read_recorded_records
from errata.engines.spark.inputs.row_rules import ORIGIN, add_source, screen_rows, select_used
from errata.engines.spark.inputs.source_files import (
    FilesPart,
    add_partition_column,
    load_files_part,
    read_files,
    select_files,
)
from errata.engines.spark.inputs.topic_records import list_ranges, read_records, screen_records
from errata.errors import ChunkError, EngineError, ErrataError, RunExpired
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest, SourceFile, TargetPin, find_transactions_pin
from errata.model.partition import Grain
from errata.model.partition_sql import quote_table
from errata.model.pinned_snapshots import refuse_open_pin
from errata.model.types import to_spark_scalar
from errata.text.exceptions import first_line

_LEAST_COST, _USUAL_COST = 256 * 1024, 4 * 1024 * 1024
_LEAST_SPLIT = 16 * 1024 * 1024  # minimum bytes per task when Iceberg splits a small scan
_TASKS_PER_CORE = 4


def read_input_frames(
    session: SparkSession,
    manifest: Manifest,
    parts: Mapping[str, bytes],
    partitions: Sequence[str],
    earlier: Mapping[str, str] | None = None,
    access: InputAccess = NO_ACCESS,
) -> dict[str, DataFrame]:
    """All inputs needed to compute these partitions, including look-back and look-ahead; reference data is read whole.

    ``parts`` holds the manifest's parts by digest, including the file lists (``InputPin.files_part``); ``earlier`` maps
    partitions that this run has staged to their snapshots.
    """
    grain, kind = manifest.target.grain, manifest.target.column_type
    access, found = access.for_list(manifest.erasure), {}
    for pin in manifest.inputs:
        rule = rule_of_pin(pin, grain)
        wanted = rule.list_reads(partitions)
        if pin.own:
            before = [name for name in wanted if name not in set(partitions)]
            rows = read_own_frame(session, manifest, pin, before, earlier or {})
            found[pin.name] = drop_listed(rows, pin.subjects, access) if pin.subjects else rows
        elif pin.transactions_of is None:
            found[pin.name] = read_input_frame(
                session, pin, parts, wanted, rule.input_grain, kind, access, manifest.inputs
            )
    return found


def read_own_frame(
    session: SparkSession, manifest: Manifest, pin: InputPin, partitions: Sequence[str], earlier: Mapping[str, str]
) -> DataFrame:
    """The product's own earlier partitions: this run's adopted output within its scope, the base snapshot before it.

    The run branch itself is never read: it may hold output of attempts that were not adopted.
    """
    target, scope = manifest.target, set(manifest.partitions)
    if missing := [name for name in partitions if name in scope and name not in earlier]:
        raise EngineError(
            f"{pin.name}: {', '.join(missing)} is not staged yet; a product that reads itself runs in order"
        )
    base = [name for name in partitions if name not in scope]
    rows = read_partitions(session, target, target.base_snapshot_id, base)
    for snapshot in dict.fromkeys(earlier[name] for name in partitions if name in scope):
        staged = _read_appended(session, target.staging.table, snapshot)
        names = [name for name in partitions if earlier.get(name) == snapshot]
        staged = staged.where(in_scope(target, names))
        rows = rows.unionByName(staged)
    return rows


def read_partitions(
    session: SparkSession,
    target: TargetPin,
    snapshot_id: str | None,
    partitions: Sequence[str],
    table: str | None = None,
) -> DataFrame:
    """Partitions of the target, or of another table of its shape, at a snapshot, in the target's columns."""
    rows = read_snapshot(session, table or target.table, snapshot_id, len(partitions))
    return add_later_columns(rows.where(in_scope(target, partitions)), target)


def add_later_columns(rows: DataFrame, pin: TargetPin) -> DataFrame:
    """Add columns that are newer than the snapshot's schema as NULL, as readers of main see them."""
    kinds = {name: to_spark_scalar(kind) for name, kind in pin.columns.items() if name not in rows.columns}
    later = {name: F.lit(None).cast(kind) if kind else F.lit(None) for name, kind in kinds.items()}
    return rows.withColumns(later) if later else rows


def _read_appended(session: SparkSession, table: str, snapshot_id: str) -> DataFrame:
    """Only the rows that this snapshot appended."""
    snapshots = session.read.format("iceberg").load(f"{table}.snapshots")
    parent = snapshots.where(F.col("snapshot_id") == F.lit(int(snapshot_id))).select("parent_id").first()
    if parent is None:
        raise _build_read_error(table, snapshot_id, EngineError("Cannot find snapshot"))
    reader = session.read.format("iceberg").option("end-snapshot-id", snapshot_id)
    if parent.parent_id is not None:
        reader = reader.option("start-snapshot-id", str(parent.parent_id))
    return reader.load(table)


def list_pinned_files(manifest: Manifest, parts: Mapping[str, bytes], partitions: Sequence[str]) -> list[SourceFile]:
    """The files that :func:`read_input_frames` reads for these product partitions, each once, in path order."""
    found: dict[str, SourceFile] = {}
    for pin in manifest.inputs:
        if pin.kind == "files":
            wanted = rule_of_pin(pin, manifest.target.grain).list_reads(partitions)
            part = load_files_part(pin, parts)
            listed = part if pin.is_message_log else select_files(pin, part, wanted)
            found |= {file.path: file for files in listed.values() for file in files}
    return [found[path] for path in sorted(found)]


def read_input_frame(
    session: SparkSession,
    pin: InputPin,
    parts: Mapping[str, bytes],
    partitions: Sequence[str],
    grain: Grain,
    target_type: str,
    access: InputAccess = NO_ACCESS,
    inputs: Sequence[InputPin] = (),
) -> DataFrame:
    """One input cut to exactly these partitions; an input without a partition column is read whole.

    ``inputs`` are all of the manifest's: a change log is read together with the ends of its transactions.
    """
    if pin.is_screened:
        return select_used(read_screened(session, pin, parts, partitions, grain, target_type, access, inputs))
    if pin.kind == "table":
        return _read_table(session, pin, partitions, grain, pin.column_type or target_type)
    return _read_pinned_files(
        session, pin, load_files_part(pin, parts), partitions, grain, pin.column_type or target_type, access
    )


def read_screened(
    session: SparkSession,
    pin: InputPin,
    parts: Mapping[str, bytes],
    partitions: Sequence[str],
    grain: Grain,
    target_type: str,
    access: InputAccess = NO_ACCESS,
    inputs: Sequence[InputPin] = (),
) -> DataFrame:
    """Every row of an input in the transform's columns, with its outcome: used, or removed and why."""
    kind = pin.column_type or target_type
    if pin.log is not None:
        log = ChangeLog(pin, find_transactions_pin(pin, inputs), parts)
        return screen_change_log(log.read_changes(session, access.clusters), pin, partitions, grain, kind, access)
    if pin.topic is not None:
        records = read_records(session, pin.topic, list_ranges(pin, parts, partitions), access.clusters)
        return screen_records(records, pin, partitions, grain, kind, access)
    if pin.kind == "table":
        return read_table_by_era(pin, partial(_read_table, session, pin, grain=grain, kind=kind), partitions, access)
    part = load_files_part(pin, parts)
    if pin.value is not None:
        return screen_records(
            read_recorded_records(session, pin, part, partitions), pin, partitions, grain, kind, access
        )
    if pin.columns:
        return read_files_by_era(session, pin, part, partitions, grain, kind, access)
    return screen_rows(_read_pinned_files(session, pin, part, partitions, grain, kind, access), pin)


def _read_table(session: SparkSession, pin: InputPin, partitions: Sequence[str], grain: Grain, kind: str) -> DataFrame:
    refuse_open_pin(pin)
    rows = read_snapshot(session, pin.location, pin.snapshot_id, len(partitions))
    return rows if pin.partition is None else rows.where(in_partitions(pin.partition, kind, grain, partitions))


def read_snapshot(session: SparkSession, table: str, snapshot_id: str | None, partitions: int) -> DataFrame:
    """A table at a snapshot; None means that the table had no snapshot, and gives an empty frame.

    ``partitions`` is the number of partitions the caller will filter for; it only tunes the split size.
    """
    try:
        if snapshot_id is None:
            return session.read.table(quote_table(table)).where(F.lit(False))  # noqa: FBT003 - a literal is a value
        cost = compute_open_cost(partitions, session.sparkContext.defaultParallelism)
        options = {"file-open-cost": str(cost), "versionAsOf": snapshot_id}
        return session.read.options(**options).table(quote_table(table))
    except (Py4JError, PySparkException) as error:
        raise _build_read_error(table, snapshot_id, error) from error


def compute_open_cost(partitions: int, cores: int) -> int:
    """Minimum size to count for each file when a scan is split into tasks.

    With Iceberg's default of 4 MB, thousands of small partitions become hundreds of tasks that mostly cost start-up;
    too small a value gives one or two tasks, and cores sit idle.
    """
    wanted = _LEAST_SPLIT * _TASKS_PER_CORE * cores // max(partitions, 1)
    return max(_LEAST_COST, min(wanted, _USUAL_COST))


def _build_read_error(table: str, snapshot_id: str | None, error: Exception) -> ErrataError:
    if "Cannot find snapshot" in str(error):
        return RunExpired(
            f"{table}: snapshot {snapshot_id} was pinned but the table no longer has it",
            hint="plan again; the snapshot was expired although it was pinned, or could not be pinned",
            table=table,
            snapshot_id=snapshot_id,
        )
    return EngineError(f"{table} at snapshot {snapshot_id} cannot be read: {first_line(error)}", table=table)


def _read_pinned_files(
    session: SparkSession,
    pin: InputPin,
    part: FilesPart,
    partitions: Sequence[str],
    grain: Grain,
    column_type: str,
    access: InputAccess,
) -> DataFrame:
    wanted = select_files(pin, part, partitions)
    if paths := sorted({file.path for files in wanted.values() for file in files}):
        return _read_with_partition(session, pin, paths, wanted if pin.partition else {}, grain, column_type, access)
    known = next((file.path for files in part.values() for file in files), None)
    if known is None:
        raise ChunkError(
            f"input {pin.name}: no file is pinned for {pin.location}, so its columns are not known",
            hint="an input needs at least one file somewhere in its range",
            input=pin.name,
        )
    empty = _read_with_partition(session, pin, [known], {}, grain, column_type, access)
    return session.createDataFrame([], empty.schema)


def _read_with_partition(
    session: SparkSession,
    pin: InputPin,
    paths: Sequence[str],
    part: FilesPart,
    grain: Grain,
    column_type: str,
    access: InputAccess,
) -> DataFrame:
    rows = read_files(session, pin, paths)
    if not pin.is_screened:
        return add_partition_column(rows, pin, part, grain, column_type)
    names = rows.columns
    # origin and partition first: they come from the path, which only rows as they are read have
    placed = add_partition_column(rows.withColumn(ORIGIN, F.col("_metadata.file_path")), pin, part, grain, column_type)
    return add_source(protect_rows(placed, pin, access), names)
