"""Resolve an input that reads a recording to the recorded files of its partitions, pinned by their hash.

The ledger knows everything that a plan needs, so no file is opened or listed. A file without a business range can be
read only as a whole: an input with partitions refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from errata.engines.files.source import HASH, build_size
from errata.errors import UsageError
from errata.model.kafka.declaration import build_record_schema
from errata.model.manifest import SourceFile
from errata.model.near_miss import NearMiss
from errata.model.partition import WHOLE, Grain
from errata.model.product import Input
from errata.model.recording.business_range import is_covered
from errata.model.recording.declaration import TEXT_FORMATS, name_recording
from errata.model.recording.recorded_file import FileStatus, RecordedFile, list_counted
from errata.model.recording.row_columns import ROW_COLUMNS
from errata.ports.tables import InputReader, InputState, PartitionSize


@dataclass(frozen=True, slots=True)
class RecordingReader:
    """Reads inputs of recorded files; ``list_files`` gives all files of a source, ``location`` is theirs."""

    list_files: Callable[[str], Sequence[RecordedFile]]
    location: str

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """See the port."""
        if source.recording is None:
            raise UsageError(f"input {source.name} names no recording")
        held = list_counted(self.list_files(source.recording))
        schemas: dict[tuple[tuple[str, str], ...], int] = {}
        pins = {one.file_id: self._pin(one, source, grain, schemas) for one in held}
        is_whole = source.partition is None
        wanted = (WHOLE,) if is_whole else partitions
        if source.value is not None:  # a topic: what lies between two recordings was never copied
            wanted = [name for name in wanted if is_covered([one.range for one in held if one.range], grain, name)]
        files = {
            name: tuple(pins[one.file_id] for one in held if is_whole or may_hold(pins[one.file_id], name))
            for name in wanted
        }
        by_path = {pins[one.file_id].path: one for one in held}
        sizes = {name: _build_size(found, by_path) for name, found in files.items() if found}
        starts = [pin.span[0] for pin in pins.values() if pin.span]
        return InputState(
            name=source.name,
            kind="files",
            location=name_recording(source.recording),
            column_type=None,
            partitions={} if is_whole else sizes,
            whole=sizes.get(WHOLE, PartitionSize(0, 0, 0)) if is_whole else None,
            newest_ms=max((_to_ms(one.seen_at) for one in held), default=None),
            files={name: found for name, found in files.items() if found},
            oldest=min(starts, default=None) if grain.is_time and not is_whole else None,
            rows_known=source.value is None
            and (is_whole or all(pin.span and pin.span[0] == pin.span[1] for pin in pins.values())),
            schemas=tuple(dict(columns) for columns in schemas),
            unreadable={
                **({} if is_whole else _find_unplaced(source, held, pins)),
                **{pins[one.file_id].path: _describe_removed(one) for one in _find_removed(held, pins, files)},
            },
        )

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """See the port."""
        del source
        return None

    def _pin(
        self, one: RecordedFile, source: Input, grain: Grain, schemas: dict[tuple[tuple[str, str], ...], int]
    ) -> SourceFile:
        columns = dict(one.columns) if source.value is None else build_record_schema(source.value)
        if not columns:  # a file without rows has no columns either, and fits any
            columns = dict.fromkeys(source.columns, "string") if one.format in TEXT_FORMATS else {}
        if one.format in TEXT_FORMATS and source.value is None:
            columns |= ROW_COLUMNS
        number = schemas.setdefault(tuple(columns.items()), len(schemas))
        span = one.range.find_ends(grain) if one.range and grain.is_time and source.partition else None
        scheme = "" if "://" in self.location else "file://"
        path = f"{scheme}{self.location.rstrip('/')}/{one.content}"
        return SourceFile(path, one.content_bytes, f"{HASH}{one.content_sha256}", number, span)


def may_hold(file: SourceFile, partition: str) -> bool:
    """Whether rows of this partition can be in a recorded file; canonical texts of a grain sort in time order."""
    return file.span is None or file.span[0] <= partition <= file.span[1]


def _build_size(files: Sequence[SourceFile], by_path: dict[str, RecordedFile]) -> PartitionSize:
    size = build_size(files, {})
    rows = sum(by_path[file.path].rows for file in files)
    return PartitionSize(rows, size.bytes, size.files, size.fingerprint)


def _find_unplaced(source: Input, held: Sequence[RecordedFile], pins: dict[str, SourceFile]) -> dict[str, str]:
    """Files whose rows cannot be put into partitions: they lack the column, and are not about one partition alone."""
    old = {era_old for era in source.eras for era_old, new in era.rename.items() if new == source.partition}
    found = {}
    for one in held:
        pin = pins[one.file_id]
        if pin.span is None:
            found[pin.path] = "it has no business range, so nobody knows which partitions it is about"
            continue
        known = source.columns if source.value else one.columns
        if not known or {str(source.partition), *old} & known.keys() or not source.columns:
            continue
        if pin.span[0] != pin.span[1]:
            found[pin.path] = f"it has no column {source.partition} and is not about one partition alone"
    return found


def _find_removed(
    held: Sequence[RecordedFile], pins: dict[str, SourceFile], files: dict[str, tuple[SourceFile, ...]]
) -> list[RecordedFile]:
    wanted = {file.path for listed in files.values() for file in listed}
    return [one for one in held if one.status is FileStatus.EXPIRED and pins[one.file_id].path in wanted]


def _describe_removed(one: RecordedFile) -> str:
    return f"it was removed on {(one.expired_at or '')[:10]} ({one.why}); import it again if its producer has it"


def _to_ms(instant: str) -> int:
    return int(datetime.fromisoformat(instant).timestamp() * 1000)


_conforms: type[InputReader] = RecordingReader
