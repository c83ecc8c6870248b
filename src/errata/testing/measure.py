"""Measure candidates in Python: aggregates, unique keys, look-ups, reconciliation groups, checksums and diffs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from errata.errors import RunExpired
from errata.model.diff import Diff
from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest, TargetPin
from errata.model.partition import WHOLE, Grain, name_partition
from errata.model.product import READ_AT_ITS_TIME
from errata.model.product.eras import SUPPRESS
from errata.model.product.erasure import ERASED
from errata.model.rebase import Rebase, split_by_rebase
from errata.ports.measure import (
    CANDIDATE,
    CONTENT_A,
    CONTENT_B,
    CONTROL,
    PRIOR,
    ROWS_IN,
    ROWS_USED,
    ContentDigest,
    GroupedTotal,
    Lookup,
    Measurement,
    MeasurePlan,
    Measurer,
    Scan,
    encode_shares,
    group_count_measure,
    group_measure,
    input_scope,
    taken_out_measure,
)
from errata.ports.publish import ContentPort
from errata.testing.differ import compare_rows
from errata.testing.lake import Lake
from errata.testing.pinned_inputs import PinnedInputs, Rows, read_target
from errata.testing.row_expressions import evaluate_row, evaluate_total, to_text
from errata.testing.row_values import digest_rows, freeze_value, parse_value


@dataclass(frozen=True, slots=True)
class MemoryMeasurer:
    """Measures tables in memory; ``unwritten`` maps names to rows that are in no table, such as a trial's output."""

    lake: Lake
    part: Callable[[str], bytes]
    unwritten: Mapping[str, Rows] = field(default_factory=dict)

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
        alike, target = split_by_rebase(manifest, rebased), manifest.target
        snapshots = {CANDIDATE: candidate_snapshot, PRIOR: prior_snapshot, CONTROL: prior_snapshot}
        found: list[Measurement] = []
        for scan in plan.scans:
            partitions = manifest.partitions if scan.partitions is None else scan.partitions
            column: str | None = target.column
            stored = target.grain
            if scan.scope not in snapshots:
                rows, column, stored = self._input(alike, scan.scope.partition(":")[2])
            elif snapshots[scan.scope] is None:
                continue
            else:
                pin = target.staging if scan.scope == CANDIDATE else target
                rows = self._target(pin, snapshots[scan.scope], partitions)
            if column is not None:
                groups = group_rows(rows, column, target.grain, partitions, stored)
                found += self._measure_scan(scan, groups, rows, alike)
            found += _measure_groups(scan, rows, column, (target.grain, stored), partitions)
        for piece in alike:
            for one in piece.inputs:
                if one.is_counted and (piece.partitions if one.partition else piece is alike[0]):
                    found += self._measure_accounts(piece, one)
        return tuple(found)

    def _measure_scan(
        self, scan: Scan, groups: Mapping[str, Rows], rows: Rows, alike: Sequence[Manifest]
    ) -> list[Measurement]:
        known = {name: self._list_keys(alike, lookup, groups) for name, lookup in scan.lookups.items()}
        result: list[Measurement] = []
        for partition, held in groups.items():
            values = {name: evaluate_total(sql, held) for name, sql in scan.aggregates.items()}
            if scan.content:
                values[CONTENT_A], values[CONTENT_B] = digest_rows(held, scan.content)[1:]
            for name, lookup in scan.lookups.items():
                keys = [tuple(freeze_value(row[column]) for column in lookup.columns) for row in held]
                values[name] = sum(None not in key and key not in known[name][partition] for key in keys)
            result += [
                Measurement(
                    scan.scope,
                    partition,
                    name,
                    format_measured(value),
                    exact=not isinstance(value, float) and name not in scan.estimated,
                )
                for name, value in values.items()
            ]
            result += [
                Measurement(scan.scope, partition, name, encode_shares(_count_values(held, column)))
                for name, column in scan.shares.items()
            ]
            result += [
                Measurement(scan.scope, partition, name, str(_count_repeats(held, key)))
                for name, key in scan.unique.items()
            ]
        return result + [
            Measurement(scan.scope, "", name, str(_count_repeats(rows, key)))
            for name, key in scan.unique_in_run.items()
        ]

    def _list_keys(
        self, alike: Sequence[Manifest], lookup: Lookup, partitions: Iterable[str]
    ) -> dict[str, set[tuple[Any, ...]]]:
        """Partition → the keys that its rows may have; where snapshots differ, those of its own."""
        is_apart = _find_pin(alike[0], lookup.input).reference in READ_AT_ITS_TIME
        pieces = [[one] for one in alike if one.partitions] if is_apart else [alike]
        found: dict[str, set[tuple[Any, ...]]] = {}
        for piece in pieces:
            rows = self._wide(piece, lookup.input)
            keys = {tuple(freeze_value(row.get(key)) for key in lookup.keys) for row in rows}
            found |= dict.fromkeys((name for one in piece for name in one.partitions), keys)
        return {name: found.get(name, set()) for name in partitions}

    def _wide(self, alike: Sequence[Manifest], name: str) -> Rows:
        found: Rows = []
        for one in alike:
            pin = _find_pin(one, name)
            rule = rule_of_pin(pin, one.target.grain)
            found += [
                row.values for row in self._inputs(one).read(pin, rule, one.partitions, one.target) if not row.fate
            ]
        return found

    def _inputs(self, manifest: Manifest) -> PinnedInputs:
        return PinnedInputs(self.lake, self.part, manifest.erasure)

    def _input(self, alike: Sequence[Manifest], name: str) -> tuple[Rows, str | None, Grain]:
        """Rows, partition column and grain of an input; each partition is read as pinned."""
        first = _find_pin(alike[0], name)
        pieces = ([one for one in alike if one.partitions] or alike[:1]) if first.partition else alike[:1]
        rule = rule_of_pin(first, alike[0].target.grain).without_look
        read = [self._inputs(one).read(_find_pin(one, name), rule, one.partitions, one.target) for one in pieces]
        return [row.values for rows in read for row in rows if row.fate is None], first.partition, rule.input_grain

    def _measure_accounts(self, manifest: Manifest, pin: InputPin) -> list[Measurement]:
        counts = self._inputs(manifest).count_fates(manifest, pin)
        rules = {(rule.action, rule.name) for rule in pin.row_rules}
        rules |= {(SUPPRESS, ERASED)} if pin.subjects else set()
        result: list[Measurement] = []
        for name in (WHOLE,) if pin.partition is None else manifest.partitions:
            own = {fate: count for (partition, fate), count in counts.items() if partition == name}
            numbers = {ROWS_IN: sum(own.values()), ROWS_USED: own.get(None, 0)}
            taken = {(fate.action, fate.reason): count for fate, count in own.items() if fate is not None}
            for action, reason in sorted(rules | set(taken)):
                numbers[taken_out_measure(action, reason)] = taken.get((action, reason), 0)
            result += [Measurement(input_scope(pin.name), name, one, str(count)) for one, count in numbers.items()]
        return result

    def checksums(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, ContentDigest]:
        """See the port."""
        del table
        return digest_partitions(self._target(pin, snapshot_id, partitions), pin, partitions, columns)

    def filled(
        self, table: str, snapshot_id: str, pin: TargetPin, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> dict[str, tuple[str, ...]]:
        """See the port."""
        schema = self.lake.table(table).metadata.schema
        defaults = {
            name: None if text is None else parse_value(_parse_number(text, schema.find(name).type),
                                                        schema.find(name).type)
            for name, text in columns.items()
        }  # fmt: skip
        rows = group_rows(self._target(pin, snapshot_id, partitions), pin.column, pin.grain, partitions)
        held = {
            name: tuple(one for one, default in defaults.items() if any(row.get(one) != default for row in found))
            for name, found in rows.items()
        }
        return {name: found for name, found in held.items() if found}

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
        del measurements
        pin = manifest.target
        before = self._target(pin, prior_snapshot, partitions)
        after = self._target(pin.staging, candidate_snapshot, partitions)
        return compare_rows(before, after, manifest, partitions, sample)

    def _target(self, pin: TargetPin, snapshot_id: str | None, partitions: Sequence[str]) -> Rows:
        if snapshot_id is not None and snapshot_id in self.unwritten:
            return [
                row for row in self.unwritten[snapshot_id] if name_partition(row[pin.column], pin.grain) in partitions
            ]
        return read_target(self.lake, pin, snapshot_id, partitions)


@dataclass(frozen=True, slots=True)
class MemoryContent:
    """Content digests of snapshots in memory."""

    measurer: MemoryMeasurer

    def content(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, str]:
        """See the port."""
        found = self.measurer.checksums(target.table, snapshot_id, target, partitions, columns)
        return {name: f"{digest.rows}:{digest.a}:{digest.b}" for name, digest in found.items()}

    def filled(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> dict[str, tuple[str, ...]]:
        """See the port."""
        if snapshot_id not in self.measurer.lake.table(target.table).metadata.snapshots:
            raise RunExpired(f"snapshot {snapshot_id} of {target.table} is gone")
        return self.measurer.filled(target.table, snapshot_id, target, partitions, columns)


def group_rows(
    rows: Rows, column: str, grain: Grain, partitions: Sequence[str], stored: Grain | None = None
) -> dict[str, Rows]:
    """Rows by partition: those asked for, also without rows, then any other that was found."""
    found: dict[str, Rows] = {name: [] for name in partitions}
    for row in rows:
        found.setdefault(name_partition(row[column], grain, stored), []).append(row)
    return found


def digest_partitions(
    rows: Rows, pin: TargetPin, partitions: Sequence[str], columns: Sequence[str]
) -> dict[str, ContentDigest]:
    """Row count and checksum of each partition of these rows."""
    grouped = group_rows(rows, pin.column, pin.grain, partitions)
    return {name: ContentDigest(*digest_rows(held, columns)) for name, held in grouped.items()}


def format_measured(value: Any) -> str | None:
    """A measured value as stored text."""
    match value:
        case None:
            return None
        case bool():
            return str(int(value))
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(" ")
        case _:
            return str(value)


def _count_repeats(rows: Rows, key: Sequence[str]) -> int:
    counts = Counter(tuple(freeze_value(row[name]) for name in key) for row in rows)
    return sum(counts.values()) - len(counts)


def _count_values(rows: Rows, column: str) -> Counter[str | None]:
    return Counter(None if row[column] is None else to_text(row[column]) for row in rows)


def _measure_groups(
    scan: Scan, rows: Rows, column: str | None, grains: tuple[Grain, Grain], partitions: Sequence[str]
) -> list[Measurement]:
    result: list[Measurement] = []
    for total in scan.groups:
        if not total.keys:
            result.append(_build_total(scan.scope, "", total.name, total, rows))
            continue
        found: dict[tuple[str, tuple[str | None, ...]], Rows] = {}
        for row in rows:
            place = name_partition(row[column or ""], *grains) if total.per_partition else ""
            values = tuple(_to_key(evaluate_row(key, row)) for key in total.keys)
            found.setdefault((place, values), []).append(row)
        counts = dict.fromkeys(partitions if total.per_partition else ("",), 0)
        for (place, values), held in found.items():
            if place in counts and evaluate_total(total.rows, held):
                counts[place] += 1
                result.append(_build_total(scan.scope, place, group_measure(total.name, values), total, held))
        result += [
            Measurement(scan.scope, place, group_count_measure(total.rule), str(count))
            for place, count in counts.items()
        ]
    return result


def _build_total(scope: str, partition: str, name: str, total: GroupedTotal, rows: Rows) -> Measurement:
    value = evaluate_total(total.aggregate, rows)
    return Measurement(scope, partition, name, format_measured(value), exact=not isinstance(value, float))


def _to_key(value: Any) -> str | None:
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ").removesuffix(" 00:00:00")
    return None if value is None else str(value)


def _parse_number(text: str, kind: str) -> Any:
    if kind in ("int", "long"):
        return int(text)
    if kind in ("float", "double"):
        return float(text)
    return text == "true" if kind == "boolean" else text


def _find_pin(manifest: Manifest, name: str) -> InputPin:
    return next(pin for pin in manifest.inputs if pin.name == name)


_conforms: type[Measurer] = MemoryMeasurer
_content_conforms: type[ContentPort] = MemoryContent
