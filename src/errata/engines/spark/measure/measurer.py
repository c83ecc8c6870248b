"""The measurer: runs the scans of a measure plan, computes partition checksums, and diffs old and new. Read-only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_scope
from errata.engines.spark.diff.differ import compare_snapshots
from errata.engines.spark.inputs.access import NO_ACCESS, InputAccess
from errata.engines.spark.inputs.frames import add_later_columns, read_input_frame, read_partitions, read_snapshot
from errata.engines.spark.inputs.protection import mark_subjects
from errata.engines.spark.measure.aggregates import (
    PartitionGrouping,
    digest_partitions,
    find_filled_columns,
    measure_scan,
)
from errata.engines.spark.measure.grouped_totals import measure_groups
from errata.engines.spark.measure.lookups import SNAPSHOT, KeySource
from errata.engines.spark.measure.row_accounts import measure_accounts
from errata.engines.spark.measure.shares import measure_shares
from errata.model.diff import Diff
from errata.model.graph.read_rule import ReadRule, rule_of_pin
from errata.model.manifest import InputPin, Manifest, TargetPin, list_read_parts
from errata.model.partition import Grain
from errata.model.product import READ_AT_ITS_TIME
from errata.model.rebase import Rebase, split_by_rebase
from errata.model.table import DataFile
from errata.ports.measure import (
    CANDIDATE,
    CONTENT_A,
    CONTENT_B,
    CONTROL,
    PRIOR,
    ROW_COUNT,
    ContentDigest,
    Measurement,
    MeasurePlan,
    Measurer,
    Scan,
)

_AT_ONCE = 3

FilesOf = Callable[[TargetPin, str, Sequence[str]], Sequence[DataFile]]
"""Returns the data files of a target snapshot in these partitions, with the delete files that apply to them."""


class SparkMeasurer:
    """Measures through a Spark session; ``part`` returns the bytes of a manifest part by digest.

    With ``files_of``, a scan that only counts rows is answered from table metadata if that is exact. ``unwritten`` maps
    names to rows that are in no table, such as a trial's output, to be read like snapshots. ``pool`` is the scheduler
    pool of the scans of a plan; ``access`` says how inputs are reached.
    """

    def __init__(
        self,
        session: SparkSession,
        part: Callable[[str], bytes],
        files_of: FilesOf | None = None,
        unwritten: Mapping[str, DataFrame] | None = None,
        pool: str | None = None,
        access: InputAccess = NO_ACCESS,
    ) -> None:
        self._session = session
        self._pool = pool
        self._part = part
        self._files_of = files_of
        self._unwritten = unwritten or {}
        self._access = access

    def measure(
        self,
        manifest: Manifest,
        plan: MeasurePlan,
        *,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        rebased: Sequence[Rebase] = (),
    ) -> tuple[Measurement, ...]:
        """See the port."""
        alike = split_by_rebase(manifest, rebased)
        snapshots = {CANDIDATE: candidate_snapshot, PRIOR: prior_snapshot, CONTROL: prior_snapshot}
        # in the job group of this thread, so that these scans are cancelled with it
        measure_one = inheritable_thread_target(self._session)(partial(self._measure_scan, manifest, alike, snapshots))
        # scans need nothing of each other, and planning one of them leaves most of a machine idle
        with ThreadPoolExecutor(_AT_ONCE) as at_once:
            found = [one for measured in at_once.map(measure_one, plan.scans) for one in measured]
        for piece in alike:
            for pin in piece.inputs:
                # an input that is read whole is measured once, as planned
                if pin.is_counted and (piece.partitions if pin.partition else piece is alike[0]):
                    parts = {digest: self._part(digest) for digest in list_read_parts(pin, piece.inputs)}
                    found += measure_accounts(self._session, piece, pin, parts, self._access)
        return tuple(found)

    def _measure_scan(
        self, manifest: Manifest, alike: Sequence[Manifest], snapshots: Mapping[str, str | None], scan: Scan
    ) -> list[Measurement]:
        if self._pool is not None:
            self._session.sparkContext.setLocalProperty("spark.scheduler.pool", self._pool)
        partitions = manifest.partitions if scan.partitions is None else scan.partitions
        column: str | None = manifest.target.column
        kind, stored = manifest.target.column_type, manifest.target.grain
        if scan.scope not in snapshots:
            rows, column, kind, stored = self._input(alike, scan.scope.partition(":")[2])
        elif snapshots[scan.scope] is None:
            return []
        elif counted := self._counted(scan, _select_pin(scan, manifest), partitions, snapshots[scan.scope] or ""):
            return counted
        else:
            rows = self._target(_select_pin(scan, manifest), snapshots[scan.scope], partitions)
        if scan.subjects:
            rows = mark_subjects(rows, scan.subjects, self._access.for_list(manifest.erasure))
        found: list[Measurement] = []
        by = PartitionGrouping(column, kind, manifest.target.grain, stored) if column else None
        if by is not None:
            found += measure_scan(scan, rows, by, partitions, self._read_lookups(alike, scan))
        if by is not None and scan.shares:
            found += measure_shares(scan, rows, by, partitions)
        if scan.groups:
            found += measure_groups(scan, rows, by, partitions)
        return found

    def checksums(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, ContentDigest]:
        """See the port."""
        rows = read_partitions(self._session, pin, snapshot_id, partitions, table)
        return digest_partitions(rows, pin, partitions, columns)

    def filled(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> dict[str, tuple[str, ...]]:
        """See the port."""
        rows = read_snapshot(self._session, table, snapshot_id, len(partitions)).where(in_scope(pin, partitions))
        return find_filled_columns(rows, pin, columns)

    def diff(
        self,
        manifest: Manifest,
        candidate_snapshot: str,
        prior_snapshot: str | None,
        partitions: Sequence[str],
        sample: int,
        measurements: Sequence[Measurement] = (),
    ) -> Diff:
        """See the port."""
        pin = manifest.target
        columns = sorted(set(pin.columns) - set(manifest.lineage_columns))
        before = self._rows(pin, prior_snapshot, partitions)
        after = self._rows(pin.staging, candidate_snapshot, partitions)
        # a new column is a schema change, not a change of every row, so only the other columns are compared
        shared = sorted(set(columns) - {new.name for new in pin.new_columns})
        new = _digests_from_measurements(measurements)
        if shared != columns or not set(partitions) <= set(new):
            new = digest_partitions(self._target(pin.staging, candidate_snapshot, partitions), pin, partitions, shared)
        old = {p: ContentDigest(0, "0", "0") for p in partitions}
        if prior_snapshot is not None:
            old = digest_partitions(self._target(pin, prior_snapshot, partitions), pin, partitions, shared)
        cut = in_scope(pin, partitions)
        return compare_snapshots(before.where(cut), after.where(cut), manifest, columns, partitions, old, new, sample)

    def _counted(self, scan: Scan, pin: TargetPin, partitions: Sequence[str], snapshot_id: str) -> list[Measurement]:
        """Row counts from metadata; empty if the scan measures more, or deletes or shared files make them inexact."""
        if self._files_of is None or not scan.counts_rows_only:
            return []
        rows = dict.fromkeys(partitions, 0)
        for file in self._files_of(pin, snapshot_id, partitions):
            if file.partition not in rows or file.deletes:
                return []
            rows[file.partition] += file.rows
        return [Measurement(scan.scope, partition, ROW_COUNT, str(count)) for partition, count in rows.items()]

    def _rows(self, pin: TargetPin, snapshot_id: str | None, partitions: Sequence[str]) -> DataFrame:
        if snapshot_id is not None and snapshot_id in self._unwritten:
            return self._unwritten[snapshot_id]
        return read_snapshot(self._session, pin.table, snapshot_id, len(partitions))

    def _target(self, pin: TargetPin, snapshot_id: str | None, partitions: Sequence[str]) -> DataFrame:
        return add_later_columns(self._rows(pin, snapshot_id, partitions).where(in_scope(pin, partitions)), pin)

    def _read_lookups(self, alike: Sequence[Manifest], scan: Scan) -> dict[str, KeySource]:
        """The inputs in which keys are looked up, including look-back and look-ahead."""
        found = {}
        for name in sorted({lookup.input for lookup in scan.lookups.values()}):
            pin = _find_pin(alike[0], name)
            rule = rule_of_pin(pin, alike[0].target.grain)
            snapshots = {_find_pin(one, name).snapshot_id for one in alike if one.partitions}
            if pin.reference not in READ_AT_ITS_TIME or len(snapshots) < 2:
                found[name] = KeySource(self._read_pieces(alike, name, rule))
                continue
            # each partition finds its keys in the snapshot that it was computed from
            pieces = [(one, _find_pin(one, name).snapshot_id) for one in alike if one.partitions]
            frames = [
                self._read_pieces([one], name, rule).withColumn(SNAPSHOT, F.lit(snapshot)) for one, snapshot in pieces
            ]
            read_at = [F.when(in_scope(one.target, one.partitions), F.lit(snapshot)) for one, snapshot in pieces]
            found[name] = KeySource(_union_rows(frames), F.coalesce(*read_at))
        return found

    def _input(self, alike: Sequence[Manifest], name: str) -> tuple[DataFrame, str | None, str, Grain]:
        """Rows, partition column, its type and the input's grain; each partition is read as pinned."""
        first = _find_pin(alike[0], name)
        kind = first.column_type or alike[0].target.column_type
        rule = rule_of_pin(first, alike[0].target.grain)
        return self._read_pieces(alike, name, rule.without_look), first.partition, kind, rule.input_grain

    def _read_pieces(self, alike: Sequence[Manifest], name: str, rule: ReadRule) -> DataFrame:
        cut = alike[:1] if rule.is_whole else [one for one in alike if one.partitions]
        rows = [self._pinned(one, _find_pin(one, name), rule) for one in cut or alike[:1]]
        return _union_rows(rows)

    def _pinned(self, manifest: Manifest, pin: InputPin, rule: ReadRule) -> DataFrame:
        parts = {digest: self._part(digest) for digest in list_read_parts(pin, manifest.inputs)}
        wanted = rule.list_reads(manifest.partitions)
        kind = manifest.target.column_type
        access = self._access.for_list(manifest.erasure)
        inputs = manifest.inputs
        return read_input_frame(self._session, pin, parts, wanted, rule.input_grain, kind, access, inputs)


def _find_pin(manifest: Manifest, name: str) -> InputPin:
    return next(pin for pin in manifest.inputs if pin.name == name)


def _union_rows(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)


_conforms: type[Measurer] = SparkMeasurer


def _select_pin(scan: Scan, manifest: Manifest) -> TargetPin:
    """The table for a scan of the target: the staging table for a candidate, otherwise the target."""
    return manifest.target.staging if scan.scope == CANDIDATE else manifest.target


def _digests_from_measurements(measurements: Sequence[Measurement]) -> dict[str, ContentDigest]:
    """Candidate digests from the gate's measurements, for partitions that have them."""
    values: dict[str, dict[str, str]] = {}
    for one in measurements:
        if one.scope == CANDIDATE:
            values.setdefault(one.partition, {})[one.name] = one.value or "0"
    return {
        partition: ContentDigest(int(named[ROW_COUNT]), named[CONTENT_A], named[CONTENT_B])
        for partition, named in values.items()
        if {ROW_COUNT, CONTENT_A, CONTENT_B} <= set(named)
    }
