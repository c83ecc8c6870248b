"""Live files of a snapshot by partition, collected in one pass. Reads manifests, opens no data file."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from errata.engines.iceberg.metadata.bounds import ColumnBounds
from errata.engines.iceberg.metadata.partition_fields import SpecField, find_spec_field
from errata.model.calendar_math import is_unnameable
from errata.model.manifest import ExpectedFile
from errata.model.partition import NULL, Grain
from errata.ports.tables import PartitionSize

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_CONTENT = ("data", "position_deletes", "equality_deletes")
_DELETED_PATH_FIELD = 2147483546  # reserved field id of file_path in position delete files


class LiveFile(NamedTuple):
    """The fields of a manifest entry that are needed here."""

    path: str
    rows: int
    size: int
    content: int
    sequence: int
    partition: tuple[int, Any]  # spec id and complete partition value
    only: bytes | None  # the data file to which a position delete file applies, if it is a single one
    snapshot: int = 0  # the commit that added it


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """The target's live files by partition."""

    totals: Mapping[str, PartitionSize]
    expected: Mapping[str, tuple[ExpectedFile, ...]]
    fingerprints: Mapping[str, str]
    shared: tuple[LiveFile, ...]  # data files that may contain rows of the scope and of other partitions
    unreadable: tuple[str, ...]
    unnameable: Mapping[str, str]  # partitions outside the years 1 to 9999, each with one file as an example
    writers: Mapping[str, tuple[str, ...]]  # snapshots that added the files of a requested partition


@dataclass(frozen=True, slots=True)
class LiveInput:
    """An input's live files by partition of the product, or as a whole."""

    partitions: Mapping[str, PartitionSize]
    whole: PartitionSize | None
    oldest: str | None
    note: str
    uncounted: frozenset[str] = frozenset()  # partitions whose rows metadata does not count: shared files, deletes


def fingerprint_files(files: Iterable[tuple[str, int]]) -> str:
    """SHA-256 of the sorted ``[path, rows]`` pairs as canonical JSON."""
    listed = json.dumps(sorted(files), separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(listed.encode()).hexdigest()


@contextmanager
def _pause_gc() -> Iterator[None]:
    # manifest entries have no cycles, and collecting garbage took a quarter of the time at 43,800 partitions
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_pause_gc()
def scan_target(
    table: Table, snapshot: Snapshot | None, column: str, grain: Grain, partitions: Sequence[str] | None
) -> LiveTarget:
    """Totals of every partition, the files of the requested ones (None: all that there are), and shared files.

    Files written with the current partition field (same column, same transform), and files whose bounds lie within one
    partition, can be replaced one partition at a time. The rest are shared: each is listed with every requested
    partition that it may contain.
    """
    places = _find_spec_fields(table, column, grain)
    own = find_spec_field(table.spec(), table.schema(), column, grain)
    totals: dict[str, list[int]] = {}
    found: dict[str, list[LiveFile]] = {name: [] for name in partitions or ()}
    bounds = ColumnBounds(table.schema(), column, grain)
    loose: list[_LooseFile] = []
    elsewhere: list[LiveFile] = []  # delete files whose spec has no partition of this grain
    unreadable: set[str] = set()
    unnameable: dict[str, str] = {}
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        place = places.get(manifest.partition_spec_id)
        is_own = place is not None and own is not None and place.transform == own.transform and place.is_exact
        for value, entry, file in _iterate_entries(table, manifest, place):
            key = place.text(value) if place else None
            if place and key is None:
                unreadable.add(str(value))
                continue
            if not is_own:
                wider = key
                key = bounds.only(file) if entry.content == 0 else None
                if key is None and entry.content:
                    elsewhere.append(entry)
                elif key is None:
                    loose.append((entry, file, place, wider))
            if key is not None and is_unnameable(grain, key):
                unnameable.setdefault(key, entry.path)
            elif key is not None:
                _add_to_totals(totals, key, entry)
                if partitions is None or key in found:
                    found.setdefault(key, []).append(entry)
    shared = _find_sharers(loose, bounds, list(found))
    for entry, names in shared.values():
        for name in names:
            found[name].append(entry)
            _add_to_totals(totals, name, entry, len(names))
    expected = {name: attach_deletes(files, elsewhere) for name, files in found.items()}
    return LiveTarget(
        totals={name: PartitionSize(size[0], size[1], size[2]) for name, size in totals.items()},
        expected=expected,
        fingerprints={name: fingerprint_files((f.path, f.rows) for f in files) for name, files in expected.items()},
        shared=tuple(shared[path][0] for path in sorted(shared)),
        unreadable=tuple(sorted(unreadable)),
        unnameable=unnameable,
        writers={name: tuple(sorted({str(f.snapshot) for f in files})) for name, files in found.items()},
    )


@_pause_gc()
def scan_input(
    table: Table, snapshot: Snapshot | None, column: str | None, grain: Grain, partitions: Sequence[str]
) -> LiveInput:
    """Sizes and fingerprints of the requested partitions, or of the whole table if it is not partitioned that way."""
    place = find_spec_field(table.spec(), table.schema(), column, grain) if column else None
    if column is None or place is None:
        note = "" if column is None else f"not partitioned by {column}: its filter decides what is read"
        return LiveInput({}, _measure_whole(table, snapshot), None, note, frozenset(partitions))
    places = _find_spec_fields(table, column, grain)
    wanted = {place.covering_interval(name) for name in partitions}
    totals: dict[str, list[int]] = {}
    files: dict[str, list[tuple[str, int]]] = {}
    shared = _SharedFiles(ColumnBounds(table.schema(), column, grain), partitions)
    deleted: set[str] = set()
    oldest = _OldestPartition(grain)
    span = None if NULL in partitions or not partitions else (min(partitions), max(partitions))
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        here = places.get(manifest.partition_spec_id)
        if here and _is_outside(manifest, here, span, oldest):
            continue
        for value, entry, file in _iterate_entries(table, manifest, here):
            text = here.text(value) if here else None
            # an interval of another width than the current spec's tells a partition only if it lies within one
            is_told = here is not None and (here.is_exact or here.stored is place.stored)
            key = place.covering_interval(text) if text and is_told else None
            if key is None:
                for name in shared.add(entry, file, here, text):
                    oldest.observe_partition(name)
                continue
            if is_unnameable(grain, key):
                continue
            oldest.observe_partition(key)
            if key in wanted:
                _add_to_totals(totals, key, entry)
                files.setdefault(key, []).append((entry.path, entry.rows))
                deleted |= {key} if entry.content else set()
    uncounted = {
        name
        for name in partitions
        if not place.is_exact or name in shared.files or place.covering_interval(name) in deleted
    }
    note = "" if place.stored is grain else f"partitioned by {place.stored}, read by {grain}"
    sizes = _map_to_partitions(place, partitions, totals, files, shared)
    return LiveInput(sizes, None, oldest.text, note, frozenset(uncounted))


class _SharedFiles:
    """Files of other specs that do not give one partition, each with every requested partition that it may concern.

    A file belongs to a partition by its own interval and bounds, never by what else is requested: a fingerprint is
    compared with one that was read for another range.
    """

    def __init__(self, bounds: ColumnBounds, partitions: Sequence[str]) -> None:
        self._bounds, self._partitions = bounds, partitions
        self._inside: dict[tuple[Grain, str], Sequence[str]] = {}
        self.files: dict[str, list[tuple[str, int]]] = {}
        self.totals: dict[str, list[int]] = {}  # of partitions that may have rows in them

    def add(self, entry: LiveFile, file: Any, place: SpecField | None, interval: str | None) -> Sequence[str]:
        """Note a file; returns the partitions that may have rows in it."""
        names = self._list_inside(place, interval)
        if entry.content == 0:
            names = self._bounds.span(file).filter_possible(names)
        for name in names:
            self.files.setdefault(name, []).append((entry.path, entry.rows))
            if entry.content == 0:
                _add_to_totals(self.totals, name, entry, len(names))
        return names if entry.content == 0 else ()

    def _list_inside(self, place: SpecField | None, interval: str | None) -> Sequence[str]:
        if place is None or interval is None:
            return self._partitions
        key = place.stored, interval
        if key not in self._inside:
            self._inside[key] = _partitions_inside(place, interval, self._partitions)
        return self._inside[key]


class _OldestPartition:
    """The oldest partition seen; canonical time texts sort as time does."""

    def __init__(self, grain: Grain) -> None:
        self._is_time = grain.is_time
        self.text: str | None = None

    def observe_partition(self, key: str) -> None:
        if self._is_time and key != NULL and (self.text is None or key < self.text):
            self.text = key


def _map_to_partitions(
    place: SpecField,
    partitions: Sequence[str],
    totals: Mapping[str, list[int]],
    files: Mapping[str, list[tuple[str, int]]],
    shared: _SharedFiles,
) -> dict[str, PartitionSize]:
    prints = {key: fingerprint_files(listed) for key, listed in files.items()}
    sharers: dict[str, int] = {}
    if not place.is_exact:
        for name in partitions:
            sharers[place.covering_interval(name)] = sharers.get(place.covering_interval(name), 0) + 1
    mapped = {}
    for name in partitions:
        key, more = place.covering_interval(name), shared.totals.get(name, (0, 0, 0))
        if key in totals or name in shared.totals:
            own = (number // sharers.get(key, 1) for number in totals.get(key, (0, 0, 0)))
            rows, size, count = (one + other for one, other in zip(own, more, strict=True))
            held = shared.files.get(name)
            found = fingerprint_files([*files.get(key, ()), *held]) if held else prints[key]
            mapped[name] = PartitionSize(rows, size, count, found)
    return mapped


def _find_spec_fields(table: Table, column: str, grain: Grain) -> dict[int, SpecField]:
    schema = table.schema()
    found = {number: find_spec_field(spec, schema, column, grain) for number, spec in table.specs().items()}
    return {number: place for number, place in found.items() if place}


_LooseFile = tuple[LiveFile, Any, SpecField | None, str | None]
"""A data file of no single partition, its manifest entry, and the wider interval that its spec gives."""


def _find_sharers(
    loose: Sequence[_LooseFile], bounds: ColumnBounds, partitions: Sequence[str]
) -> dict[str, tuple[LiveFile, tuple[str, ...]]]:
    """Files that may hold rows of several partitions, by path, each with those partitions."""
    found = {}
    for entry, file, place, wider in loose:
        if names := bounds.span(file).filter_possible(_partitions_inside(place, wider, partitions)):
            found[entry.path] = (entry, names)
    return found


def _partitions_inside(place: SpecField | None, key: str | None, partitions: Sequence[str]) -> Sequence[str]:
    """The partitions that lie within a wider interval; all of them if the spec gives no interval."""
    if place is None or key is None:
        return partitions
    return [name for name in partitions if place.covering_interval(name) == key]


def _iterate_entries(
    table: Table, manifest: ManifestFile, place: SpecField | None
) -> Iterator[tuple[Any, LiveFile, Any]]:
    position = place.position if place else None
    spec = manifest.partition_spec_id
    for live in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
        file = live.data_file
        content = int(file.content or 0)
        value = file.partition[position] if position is not None else None
        yield (
            value,
            LiveFile(
                file.file_path,
                file.record_count,
                file.file_size_in_bytes,
                content,
                live.sequence_number or 0,
                (spec, file.partition),
                _find_deleted_path(file) if content == 1 else None,
                live.snapshot_id or 0,
            ),
            file,
        )


def _find_deleted_path(file: Any) -> bytes | None:
    low, high = (file.lower_bounds or {}).get(_DELETED_PATH_FIELD), (file.upper_bounds or {}).get(_DELETED_PATH_FIELD)
    return low if low is not None and low == high else None


def _add_to_totals(totals: dict[str, list[int]], key: str, entry: LiveFile, sharers: int = 1) -> None:
    size = totals.setdefault(key, [0, 0, 0])
    if entry.content == 0:
        size[0] += entry.rows // sharers
    size[1] += entry.size // sharers
    size[2] += 1


def attach_deletes(files: Sequence[LiveFile], elsewhere: Sequence[LiveFile]) -> tuple[ExpectedFile, ...]:
    """Data files and the delete files that apply to at least one of them, by the rules of an Iceberg scan."""
    data = [file for file in files if file.content == 0]
    kept = data
    if elsewhere or len(data) != len(files):
        kept = data + [
            delete
            for delete in (*files, *elsewhere)
            if delete.content and any(_delete_applies(delete, file) for file in data)
        ]
    ordered = sorted((_CONTENT[file.content], file.path, file.rows) for file in kept)
    return tuple(ExpectedFile(path, rows, content) for content, path, rows in ordered)


def _delete_applies(delete: LiveFile, file: LiveFile) -> bool:
    if delete.content == 1:
        named = delete.only is None or delete.only == file.path.encode()
        return named and file.partition == delete.partition and file.sequence <= delete.sequence
    is_global = not len(delete.partition[1])
    return (is_global or file.partition == delete.partition) and file.sequence < delete.sequence


def _is_outside(
    manifest: ManifestFile, place: SpecField, span: tuple[str, str] | None, oldest: _OldestPartition
) -> bool:
    """Whether the bounds in the manifest list already rule out every requested partition."""
    if not (span and place.is_number and manifest.partitions):
        return False
    summary = manifest.partitions[place.position]
    if summary.lower_bound is None or summary.upper_bound is None:
        return False
    low = place.text(int.from_bytes(summary.lower_bound, "little", signed=True))
    high = place.text(int.from_bytes(summary.upper_bound, "little", signed=True))
    if low is None or high is None or any(is_unnameable(place.wanted, text) for text in (low, high)):
        return False
    oldest.observe_partition(low)
    return high < place.covering_interval(span[0]) or low > place.covering_interval(span[1])


def _measure_whole(table: Table, snapshot: Snapshot | None) -> PartitionSize:
    size = [0, 0, 0]
    files: list[tuple[str, int]] = []
    for manifest in snapshot.manifests(table.io) if snapshot else ():
        for _, entry, _file in _iterate_entries(table, manifest, None):
            size = [size[0] + (entry.rows if entry.content == 0 else 0), size[1] + entry.size, size[2] + 1]
            files.append((entry.path, entry.rows))
    return PartitionSize(size[0], size[1], size[2], fingerprint_files(files))
