"""Look at files that others dropped, and store them where runs read them, through pyarrow's file systems.

A file is read twice: once to decide about it, once to copy it, and its hash must be the same both times. Lines of JSON
and CSV are also written as a Parquet file of text columns with line numbers, so that runs read numbered rows and never
parse. Everything is read in blocks of 1 MiB.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from errata.engines.files.footers import read_footers
from errata.engines.files.pattern import split_scheme
from errata.engines.files.source import open_filesystem
from errata.engines.recordings.lines import (
    UnreadableFile,
    iterate_blocks,
    iterate_lines,
    limit_blocks,
    unpack_blocks,
)
from errata.engines.recordings.redacted_rows import (
    IsErased,
    RowCounts,
    SubjectFinder,
    pack_text,
    redact_parquet,
    redact_text,
)
from errata.engines.recordings.row_file import write_rows
from errata.engines.recordings.stored_bytes import CountingFile, Digest, copy_file, open_output, remove_file
from errata.engines.recordings.text_rows import CsvReader, TextRow, check_columns, iterate_json
from errata.errors import EngineError, NotFound, SourceChanged
from errata.model.product import S3
from errata.model.recording.business_range import BusinessRange, RangeFinder, read_range_from_name
from errata.model.recording.declaration import Source
from errata.model.recording.recorded_file import Inspection, RecordedFile, Redacted, StoredContent
from errata.model.recording.row_columns import ROWS_ENDING
from errata.model.recording.subject_names import SubjectNames
from errata.ports.recordings import RecordingStore

_REASON = "reason.txt"


class RecordedFileStore:
    """Recorded files below ``location``; relative landing paths are resolved against ``root``."""

    def __init__(self, root: str, location: str, s3: S3 | None = None) -> None:
        self._root = root
        self._location = location
        self._s3 = s3
        self._open: dict[str, Any] = {}

    def list_landing(self, path: str) -> tuple[str, ...]:
        """See the port."""
        from pyarrow.fs import FileSelector

        system, place, shown = self._find(path)
        try:
            (info,) = system.get_file_info([place])
            if info.type.name == "File":
                return (shown,)
            below = system.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
        except OSError as problem:
            raise EngineError(
                f"{path} could not be listed: {problem}", state="nothing was recorded", hint="repeat the command"
            ) from problem
        names = sorted(one.path for one in below if one.type.name == "File")
        found = [name for name in names if not _is_hidden(name.removeprefix(f"{place}/"))]
        if not found:
            raise NotFound(
                f"there is no file {path}, and no file below it", state="nothing was recorded", hint="check the path"
            )
        scheme = split_scheme(shown)[0]
        return tuple(name if scheme == "file" else f"{scheme}://{name}" for name in found)

    def inspect(self, path: str, source: Source, given: BusinessRange | None = None) -> Inspection:
        """See the port."""
        system, place, shown = self._find(path)
        digest, size, produced = Digest(), 0, ""
        name = posixpath.basename(place)
        pattern = source.range.name
        known = given or (read_range_from_name(pattern, name) if pattern else None)
        days = RangeFinder()
        facts: dict[str, Any] = {}
        with self._translate(shown):
            (info,) = system.get_file_info([place])
            produced = datetime.fromtimestamp((info.mtime_ns or 0) / 1e9, UTC).isoformat()
            try:
                if source.is_text:
                    facts = _read_text_facts(system, place, source, digest.see, days)
                else:
                    facts = _read_parquet_facts(system, place, source, days)
            except UnreadableFile as problem:
                facts = {"flaw": str(problem)}
            digest.finish(system, place)
        size = digest.size
        if "flaw" not in facts and known is None:
            known = days.build() if source.range.column else None
            facts |= _find_range_flaw(source, known, facts)
        return Inspection(source.name, name, shown, size, digest.value.hexdigest(), produced, range=known, **facts)

    def store(self, seen: Inspection, source: Source, place: str, *, with_rows: bool) -> StoredContent:
        """See the port."""
        system, landing, shown = self._find(seen.path)
        target, to = self._open_location(), self._resolve(place)
        with self._translate(shown):
            digest = copy_file(system, landing, target, to)
            if (digest.size, digest.value.hexdigest()) != (seen.bytes, seen.sha256):
                remove_file(target, to)
                raise SourceChanged(
                    f"{shown} changed while it was imported",
                    state="nothing was recorded",
                    hint="import it again when its writer is done",
                )
            if not (with_rows and source.is_text):
                return StoredContent(place, place, seen.bytes, seen.sha256)
            return self._store_rows(place, source, tuple(seen.columns))

    def _store_rows(self, place: str, source: Source, columns: tuple[str, ...]) -> StoredContent:
        """Write the lines of a stored file of text as numbered rows beside it."""
        target, to = self._open_location(), self._resolve(place)
        with open_output(target, to + ROWS_ENDING) as file:
            counter = CountingFile(file)
            write_rows(counter, columns, _iterate_rows(target, to, source))
        return StoredContent(place, place + ROWS_ENDING, counter.size, counter.value.hexdigest())

    def write_reason(self, place: str, why: str) -> None:
        """See the port."""
        to = posixpath.join(posixpath.dirname(self._resolve(place)), _REASON)
        with self._translate(place), open_output(self._open_location(), to) as file:
            file.write(f"{why}\n".encode())

    def keep_beside(self, path: str, place: str) -> str:
        """See the port."""
        beside = posixpath.join(posixpath.dirname(place), posixpath.basename(path))
        system, local, shown = self._find(path)
        with self._translate(shown):
            copy_file(system, local, self._open_location(), self._resolve(beside))
        return beside

    def redact(self, one: RecordedFile, source: Source, names: SubjectNames, is_erased: IsErased) -> Redacted:
        """See the port."""
        system, stored = self._open_location(), self._resolve(one.place)
        with self._translate(one.name):
            if system.get_file_info([stored])[0].type.name != "File":
                return Redacted()
            counter = CountingFile(None)
            try:
                counts = _redact(system, stored, source, names, is_erased, counter)
            except (UnreadableFile, ValueError) as problem:  # pyarrow's errors are values that are wrong
                return Redacted(flaw=str(problem))
        return Redacted(counts.rows, counts.erased, counts.bad, counter.size, counter.value.hexdigest())

    def store_redacted(
        self, one: RecordedFile, source: Source, names: SubjectNames, is_erased: IsErased, place: str
    ) -> StoredContent:
        """See the port."""
        target, to = self._open_location(), self._resolve(place)
        with self._translate(one.name):
            with open_output(target, to) as file:
                counter = CountingFile(file)
                _redact(target, self._resolve(one.place), source, names, is_erased, counter)
            if not source.is_text:
                return StoredContent(place, place, counter.size, counter.value.hexdigest())
            return self._store_rows(place, source, tuple(one.columns))

    def remove(self, places: tuple[str, ...]) -> None:
        """See the port."""
        target = self._open_location()
        with self._translate("recordings"):
            for place in places:
                remove_file(target, self._resolve(place))

    def _find(self, path: str) -> tuple[Any, str, str]:
        scheme, place = split_scheme(path)
        if scheme == "file":
            place = str((Path(self._root) / place).resolve()) if not place.startswith("/") else place
        return self._open_scheme(scheme), place.rstrip("/"), place if scheme == "file" else path

    def _open_location(self) -> Any:
        return self._open_scheme(split_scheme(self._location)[0])

    def _resolve(self, place: str) -> str:
        return posixpath.join(split_scheme(self._location)[1].rstrip("/"), place)

    def _open_scheme(self, scheme: str) -> Any:
        if scheme not in self._open:
            self._open[scheme] = open_filesystem(scheme, self._s3)
        return self._open[scheme]

    @contextmanager
    def _translate(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise EngineError(
                f"{what} could not be read or stored: {problem}",
                state="nothing was recorded",
                hint="repeat the command",
            ) from problem


def _is_hidden(path: str) -> bool:
    return any(piece.startswith((".", "_")) for piece in path.split("/"))


def _iterate_text(system: Any, place: str, source: Source, see: Callable[[bytes], None]) -> Iterator[bytes]:
    with system.open_input_stream(place, compression=None) as file:
        blocks = iterate_blocks(file, see)
        if place.endswith(".gz"):
            yield from unpack_blocks(blocks, source.max_bytes)
        else:
            yield from limit_blocks(blocks, source.max_bytes)


def _redact(
    system: Any, stored: str, source: Source, names: SubjectNames, is_erased: IsErased, out: CountingFile
) -> RowCounts:
    counts, finder = RowCounts(), SubjectFinder(names, is_erased)
    if not source.is_text:
        with system.open_input_file(stored) as content:
            redact_parquet(content, finder, counts, out)
        return counts
    blocks = _iterate_text(system, stored, source, lambda _: None)
    with pack_text(out, is_packed=stored.endswith(".gz")) as packed:
        for piece in redact_text(blocks, source, finder, counts):
            packed.write(piece)
    return counts


def _iterate_rows(
    system: Any, place: str, source: Source, see: Callable[[bytes], None] = lambda _: None, csv: CsvReader | None = None
) -> Iterator[TextRow]:
    lines = iterate_lines(_iterate_text(system, place, source, see))
    return iterate_json(lines) if source.format == "json" else (csv or CsvReader(source.delimiter)).iterate(lines)


def _read_text_facts(
    system: Any, place: str, source: Source, see: Callable[[bytes], None], days: RangeFinder
) -> dict[str, Any]:
    csv = CsvReader(source.delimiter)
    rows = bad = 0
    names: dict[str, str] = {}
    column = source.range.column
    for row in _iterate_rows(system, place, source, see, csv):
        rows += 1
        bad += row.problem is not None
        if not names.keys() >= row.values.keys():
            names |= dict.fromkeys(row.values, "string")
            check_columns(tuple(names))
        if column is not None:
            days.see(row.values.get(column))
    columns = dict.fromkeys(csv.columns, "string") or dict(sorted(names.items()))
    return {"rows": rows, "bad_rows": bad, "columns": columns} | (
        {"flaw": f"no line of {rows:,} is a row of {source.format}"} if rows and rows == bad else {}
    )


def _read_parquet_facts(system: Any, place: str, source: Source, days: RangeFinder) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import parquet

    (footer,) = read_footers(system.open_input_file, [place], 1)
    if footer.problem is not None:
        raise UnreadableFile(f"it is not whole Parquet: {footer.problem}")
    column = source.range.column
    if column is not None and column in footer.columns:
        try:
            with system.open_input_file(place) as file, parquet.ParquetFile(file) as content:
                for batch in content.iter_batches(columns=[column]):
                    for value in pa.compute.unique(batch.column(0)).to_pylist():
                        days.see(value)
        except (pa.ArrowException, OSError) as problem:
            raise UnreadableFile(f"it is not whole Parquet: {problem}") from problem
    return {"rows": footer.rows, "columns": footer.columns}


def _find_range_flaw(source: Source, known: BusinessRange | None, facts: dict[str, Any]) -> dict[str, str]:
    if known is not None or not facts.get("rows"):
        return {}
    if source.range.column is not None:
        return {"flaw": f"no value of {source.range.column} is a date or time, so nobody knows which days it is about"}
    if source.range.name is not None:
        return {"flaw": f"its name does not match {source.range.name}, and --from and --to were not given"}
    return {}


_conforms: type[RecordingStore] = RecordedFileStore
