"""Read the pinned inputs of a run as Python rows: tables in memory at their snapshot, Parquet files by path."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from errata.canonical import from_plain
from errata.errors import EngineError, RunExpired, SourceChanged, UsageError
from errata.model.graph.read_rule import ReadRule, rule_of_pin
from errata.model.manifest import InputPin, Manifest, SourceFile, TargetPin
from errata.model.partition import NULL, Grain, name_partition, start_of, value_from_text
from errata.model.pinned_snapshots import refuse_open_pin
from errata.model.product.eras import SUPPRESS
from errata.model.product.erasure import ERASED, ErasurePin
from errata.model.product.input_policy import mask_text
from errata.testing.lake import Lake
from errata.testing.metadata import Snapshot
from errata.testing.row_expressions import evaluate_condition
from errata.testing.scope import Scope

Rows = list[dict[str, Any]]
FilesPart = Mapping[str, tuple[SourceFile, ...]]


@dataclass(frozen=True, slots=True)
class Fate:
    """Why the transform does not see an input row."""

    action: str  # quarantine | suppress
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row of an input: where it comes from, and its fate if a row rule takes it out."""

    values: dict[str, Any]
    origin: str
    fate: Fate | None = None


@dataclass(frozen=True, slots=True)
class PinnedInputs:
    """Inputs as manifests pin them; ``part`` returns the bytes of a manifest part by digest."""

    lake: Lake
    part: Callable[[str], bytes]
    erasure: ErasurePin | None = None

    @property
    def listed(self) -> frozenset[str]:
        """The ids on the list of erased subjects, at the snapshot of the manifest."""
        return self.lake.erased.read_at(self.erasure.snapshot_id if self.erasure else None)

    def drop_listed(self, rows: Rows, columns: Sequence[str]) -> Rows:
        """Only the rows whose subject is not on the list."""
        listed = self.listed
        return [row for row in rows if listed.isdisjoint(str(row[name]) for name in columns if row[name] is not None)]

    def list_files(self, manifest: Manifest, partitions: Sequence[str]) -> list[SourceFile]:
        """The files that these partitions are computed from, each once, in path order."""
        found: dict[str, SourceFile] = {}
        for pin in manifest.inputs:
            if pin.kind == "files":
                wanted = rule_of_pin(pin, manifest.target.grain).list_reads(partitions)
                found |= {file.path: file for files in self._select(pin, wanted).values() for file in files}
        return [found[path] for path in sorted(found)]

    def read_all(self, manifest: Manifest, partitions: Sequence[str], earlier: Mapping[str, str]) -> dict[str, Rows]:
        """All inputs that these partitions need, including look-back and look-ahead."""
        target, found = manifest.target, dict[str, Rows]()
        for pin in manifest.inputs:
            rule = rule_of_pin(pin, target.grain)
            if pin.own:
                before = [name for name in rule.list_reads(partitions) if name not in set(partitions)]
                found[pin.name] = self.drop_listed(self._read_own(manifest, pin, before, earlier), pin.subjects)
            else:
                rows = self.read(pin, rule, partitions, target)
                found[pin.name] = [row.values for row in rows if row.fate is None]
        return found

    def read(self, pin: InputPin, rule: ReadRule, partitions: Sequence[str], target: TargetPin) -> list[InputRow]:
        """What a rule reads of an input for these partitions, every row with its fate."""
        if pin.columns or pin.eras:
            raise UsageError(
                f"input {pin.name} declares columns, which engines in memory do not convert",
                hint="test this product with Spark",
            )
        grain, wanted = rule.input_grain, rule.list_reads(partitions)
        rows = self._read_table(pin) if pin.kind == "table" else self._read_files(pin, wanted, grain, target)
        column, names = pin.partition, set(wanted)
        if column is not None:
            rows = [row for row in rows if name_partition(row.values[column], grain) in names]
        listed = self.listed
        return [
            InputRow(mask_row(row.values, pin.masks), row.origin, self._judge(pin, row.values, listed)) for row in rows
        ]

    def _judge(self, pin: InputPin, row: Mapping[str, Any], listed: frozenset[str]) -> Fate | None:
        if not listed.isdisjoint(str(row[name]) for name in pin.subjects if row[name] is not None):
            return Fate(SUPPRESS, "erased", ERASED)
        for rule in pin.row_rules:
            if evaluate_condition(rule.sql, row):
                return Fate(rule.action, "rule", rule.name)
        return None

    def _read_table(self, pin: InputPin) -> list[InputRow]:
        refuse_open_pin(pin)
        if pin.snapshot_id is None:
            return []
        rows = read_snapshot(self.lake, pin.location, pin.snapshot_id)
        return [InputRow(row, f"{pin.location}@{pin.snapshot_id}") for row in rows]

    def _read_files(self, pin: InputPin, partitions: Sequence[str], grain: Grain, target: TargetPin) -> list[InputRow]:
        import pyarrow.parquet as pq

        found = list[InputRow]()
        kind = pin.column_type or target.column_type
        for name, files in self._select(pin, partitions).items():
            for file in files:
                try:
                    rows = pq.read_table(file.path.removeprefix("file://"), partitioning=None).to_pylist()
                except FileNotFoundError as gone:
                    raise SourceChanged(f"input {pin.name}: {gone}", state="nothing was written") from gone
                if pin.partition is not None and rows and pin.partition not in rows[0]:
                    value = type_partition(name, kind, grain)
                    rows = [{**row, pin.partition: value} for row in rows]
                found += [InputRow(row, file.path) for row in rows]
        return found

    def _select(self, pin: InputPin, partitions: Sequence[str]) -> dict[str, tuple[SourceFile, ...]]:
        held: FilesPart = from_plain(Mapping[str, tuple[SourceFile, ...]], json.loads(self.part(str(pin.files_part))))  # type: ignore[type-abstract]
        names = list(held) if pin.partition is None else [name for name in partitions if name in held]
        return {name: held[name] for name in names}

    def _read_own(
        self, manifest: Manifest, pin: InputPin, partitions: Sequence[str], earlier: Mapping[str, str]
    ) -> Rows:
        """The product's own earlier partitions: this run's adopted output within its scope, the base before it."""
        target, scope = manifest.target, set(manifest.partitions)
        if missing := [name for name in partitions if name in scope and name not in earlier]:
            raise EngineError(f"{pin.name}: {', '.join(missing)} is not staged yet; a product that reads itself "
                              "runs in order")  # fmt: skip
        before = [name for name in partitions if name not in scope]
        rows = read_target(self.lake, target, target.base_snapshot_id, before)
        for name in partitions:
            if name in scope:
                rows += read_staged(self.lake, target, earlier[name], [name])
        return rows

    def count_fates(self, manifest: Manifest, pin: InputPin) -> Counter[tuple[str, Fate | None]]:
        """Number of rows of each partition by fate."""
        found: Counter[tuple[str, Fate | None]] = Counter()
        rule = rule_of_pin(pin, manifest.target.grain).without_look
        for row in self.read(pin, rule, manifest.partitions, manifest.target):
            name = (
                "*"
                if pin.partition is None
                else rule.find_owner(name_partition(row.values[pin.partition], rule.input_grain))
            )
            found[name, row.fate] += 1
        return found


def mask_row(row: dict[str, Any], masks: Mapping[str, str]) -> dict[str, Any]:
    """The row with its masked values; a hash in memory is the value itself, marked as one."""
    return {**row, **{name: mask_text(row[name], how, lambda text: f"hash of {text}") for name, how in masks.items()}}


def read_snapshot(lake: Lake, table: str, snapshot_id: str) -> Rows:
    """Every row of a snapshot; raises ``RunExpired`` if it has expired."""
    metadata = lake.table(table).metadata
    return list(Scope(metadata, 0, Grain.VALUE).rows(require_pinned(lake, table, snapshot_id)))


def read_target(lake: Lake, target: TargetPin, snapshot_id: str | None, partitions: Sequence[str]) -> Rows:
    """Rows of the target, with its planned columns: those that the snapshot does not have yet are NULL."""
    if snapshot_id is None:
        return []
    metadata = lake.table(target.table).metadata
    found = Scope.of_pin(metadata, target).rows(require_pinned(lake, target.table, snapshot_id), partitions)
    return [{**dict.fromkeys(target.columns), **row} for row in found]


def read_staged(lake: Lake, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> Rows:
    """Only the rows that a staged snapshot appended."""
    metadata = lake.table(target.staging.table).metadata
    snapshot, scope = require_pinned(lake, target.staging.table, snapshot_id), Scope.of_pin(metadata, target)
    rows = [row for file in snapshot.added for row in file.rows if scope.partition_of(row) in partitions]
    return [{**dict.fromkeys(target.columns), **metadata.schema_of(snapshot).read(row)} for row in rows]


def require_pinned(lake: Lake, table: str, snapshot_id: str) -> Snapshot:
    """The snapshot; raises ``RunExpired`` if it has expired."""
    found = lake.table(table).metadata.snapshots.get(snapshot_id)
    if found is None:
        raise RunExpired(f"snapshot {snapshot_id} of {table} is gone", state="main is unchanged")
    return found


def type_partition(name: str, column_type: str, grain: Grain) -> Any:
    """The value that the partition column has in the first row of a partition."""
    if name == NULL:
        return None
    if not grain.is_time or column_type == "string":
        text = value_from_text(name) if grain is Grain.VALUE else name
        return int(text or 0) if column_type in ("int", "long") else text
    start: datetime = start_of(grain, name)
    values: Mapping[str, date] = {
        "date": start.date(), "timestamp": start.replace(tzinfo=None), "timestamptz": start.astimezone(UTC)
    }  # fmt: skip
    return values[column_type]
