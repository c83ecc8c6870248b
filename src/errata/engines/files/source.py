"""List source files and re-check pinned ones through pyarrow's file systems.

Files are listed, not opened, unless the input declares columns or row rules; then only footers are read. A file is
pinned by size and version: the ETag on S3, the modification time elsewhere. pyarrow's S3 listings have no ETags, so
each file costs one HEAD request; many run at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from errata.engines.files.footers import Footer, read_footers
from errata.engines.files.pattern import (
    FileLocation,
    locate_marker,
    locate_partition,
    matches,
    partitions_from_names,
    pattern_root,
    placeholder_column,
    split_scheme,
)
from errata.engines.files.search import find_near_miss
from errata.engines.s3 import to_pyarrow_arguments
from errata.errors import EngineError, UsageError
from errata.model.manifest import SourceFile
from errata.model.near_miss import NearMiss
from errata.model.partition import WHOLE, Grain
from errata.model.product import S3, Input
from errata.ports.tables import Arrival, FileTimes, InputReader, InputState, PartitionSize

_LIST_ONCE_FROM = 16
"""From this many partitions on, an object store is listed once, recursively from the pattern's root."""
_BLOCK = 1024 * 1024
HASH = "sha256:"
"""Version of a recorded file: the hash of its content, which is checked before it is read."""
_MAX_REQUESTS = 32
"""Maximum number of concurrent requests for ETags and footers."""


class FileSource:
    """Reads file inputs; relative patterns are resolved against ``root``."""

    def __init__(self, root: str, s3: S3 | None = None) -> None:
        self._root = root
        self._s3 = s3
        self._open: dict[str, Any] = {}

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """Pinned files by partition; partitions without files are left out."""
        if source.files is None:
            raise UsageError(f"input {source.name} names no files")
        scheme, path = self._resolve_pattern(source.files)
        if placeholder_column(path) is None or source.partition is None:
            places = {WHOLE: locate_partition(path, grain, None)}
        else:
            places = {name: locate_partition(path, grain, name) for name in partitions}
        found = {
            name: infos for name, infos in self._list_partitions(scheme, pattern_root(path), places).items() if infos
        }
        files = self._pinned(scheme, found)
        footers = self._read_footers(scheme, files) if source.needs_schema else {}
        files, schemas = _number_schemas(files, footers)
        sizes = {name: build_size(listed, footers) for name, listed in files.items()}
        whole = sizes.get(WHOLE, build_size((), {})) if WHOLE in places else None
        missing = next((name for name in places if name not in sizes), None)
        return InputState(
            name=source.name,
            kind="files",
            location=source.files,
            column_type=None,
            partitions={} if whole else sizes,
            whole=whole,
            newest_ms=max((info.mtime_ns // 10**6 for infos in found.values() for info in infos), default=None),
            files=files,
            oldest=None if whole or len(sizes) == len(places) else self._find_oldest(scheme, path, grain),
            rows_known=source.needs_schema,
            note="" if source.needs_schema else "rows unknown: source files are not opened",
            schemas=schemas,
            unreadable={path: footer.problem for path, footer in footers.items() if footer.problem},
            near_miss=None if missing is None else self._search(source.files, scheme, _join(places[missing])),
            arrival=self._read_arrival(scheme, source, grain, places, found),
        )

    def _read_arrival(
        self,
        scheme: str,
        source: Input,
        grain: Grain,
        places: Mapping[str, FileLocation],
        found: Mapping[str, Sequence[Any]],
    ) -> Arrival | None:
        """When markers and files were written; the listing has the times of the files."""
        if source.complete is None:
            return None
        marker = source.complete.marker
        if marker is None:
            return Arrival()  # footers were read, so every row is counted
        paths = {name: locate_marker(place, grain, name, marker) for name, place in places.items()}
        infos = dict(zip(paths, self._get_file_infos(scheme, list(paths.values())), strict=True))
        return Arrival(
            {
                name: FileTimes(
                    info.mtime_ns if info.type.name == "File" else None,
                    max((one.mtime_ns for one in found.get(name, ())), default=None),
                )
                for name, info in infos.items()
            }
        )

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """Where the search for any file of the input ended; None if there is one."""
        scheme, path = self._resolve_pattern(source.files or "")
        return self._search(source.files or "", scheme, path)

    def _search(self, pattern: str, scheme: str, path: str) -> NearMiss | None:
        from pyarrow.fs import FileSelector

        def list_directory(place: str, *, is_deep: bool) -> dict[str, bool] | None:
            # the root of a file system has no name
            (info,) = self._get_file_infos(scheme, [place or "/"])
            if info.type.name != "Directory":
                return None
            listed = self._get_file_infos(scheme, FileSelector(place or "/", recursive=is_deep))
            return {one.path.removeprefix(f"{place}/"): one.type.name == "File" for one in listed}

        found = find_near_miss(pattern, path, list_directory)
        if found is None:
            return None
        # a place in the project is shown as its files write it
        root = f"{self._root.rstrip('/')}/"
        return replace(found, pattern=found.pattern.removeprefix(root), directory=found.directory.removeprefix(root))

    def _read_footers(self, scheme: str, files: Mapping[str, Sequence[SourceFile]]) -> dict[str, Footer]:
        pinned = [file.path for listed in files.values() for file in listed]
        system = self._get_filesystem(scheme)
        found = read_footers(system.open_input_file, [split_scheme(path)[1] for path in pinned], _MAX_REQUESTS)
        return dict(zip(pinned, found, strict=True))

    def verify(self, files: Iterable[SourceFile]) -> list[str]:
        """Describe every pinned file that is now missing or changed. Reads the content of recorded files only."""
        problems = []
        by_kind: dict[tuple[str, bool], list[SourceFile]] = {}
        for file in files:
            by_kind.setdefault((split_scheme(file.path)[0], file.version.startswith(HASH)), []).append(file)
        for (scheme, is_hashed), pinned in by_kind.items():
            states = self._states(scheme, [split_scheme(file.path)[1] for file in pinned], is_hashed=is_hashed)
            problems += [
                text for file, state in zip(pinned, states, strict=True) if (text := _describe_change(file, state))
            ]
        return problems

    def _states(self, scheme: str, paths: Sequence[str], *, is_hashed: bool = False) -> list[tuple[int, str] | None]:
        """Current size and version of each file; None if it is missing."""
        if is_hashed:
            return [self._hash(scheme, path) for path in paths]
        if scheme == "s3":
            return self._heads(paths)
        infos = self._get_file_infos(scheme, list(paths))
        return [(info.size, _mtime_version(info)) if info.type.name == "File" else None for info in infos]

    def _hash(self, scheme: str, path: str) -> tuple[int, str] | None:
        system, digest, size = self._get_filesystem(scheme), hashlib.sha256(), 0
        try:
            with system.open_input_stream(path, compression=None) as file:
                while block := bytes(file.read(_BLOCK)):
                    digest.update(block)
                    size += len(block)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise EngineError(f"{path} could not be read: {problem}") from problem
        return size, f"{HASH}{digest.hexdigest()}"

    def _heads(self, paths: Sequence[str]) -> list[tuple[int, str] | None]:
        system = self._get_filesystem("s3")

        def head(path: str) -> tuple[int, str] | None:
            try:
                with system.open_input_file(path) as file:
                    return file.size(), f"etag:{file.metadata()['ETag'].decode().strip(chr(34))}"
            except FileNotFoundError:
                return None
            except OSError as problem:
                raise EngineError(f"s3://{path} could not be looked at: {problem}") from problem

        with ThreadPoolExecutor(min(_MAX_REQUESTS, len(paths) or 1), "errata-s3") as pool:
            return list(pool.map(head, paths))

    def _pinned(self, scheme: str, found: Mapping[str, Sequence[Any]]) -> dict[str, tuple[SourceFile, ...]]:
        infos = {info.path: info for listed in found.values() for info in listed}
        if scheme == "s3":
            states = dict(zip(infos, self._heads(list(infos)), strict=True))
        else:
            states = {path: (info.size, _mtime_version(info)) for path, info in infos.items()}
        # a file that was deleted after the listing is left out
        pins = {path: SourceFile(f"{scheme}://{path}", *state) for path, state in states.items() if state}
        kept = {name: [pins[info.path] for info in listed if info.path in pins] for name, listed in found.items()}
        return {name: tuple(sorted(listed, key=lambda file: file.path)) for name, listed in kept.items() if listed}

    def _resolve_pattern(self, pattern: str) -> tuple[str, str]:
        scheme, path = split_scheme(pattern)
        if scheme == "file" and not path.startswith("/"):
            path = str(Path(self._root) / path)
        return scheme, path

    def _list_partitions(self, scheme: str, root: str, places: Mapping[str, FileLocation]) -> dict[str, list[Any]]:
        if scheme == "file" or len(places) < _LIST_ONCE_FROM:
            return {name: self._files(scheme, place) for name, place in places.items()}
        # an object store returns a thousand keys per request, so one recursive listing beats one listing per partition
        by_directory: dict[str, list[Any]] = {}
        for info in self._list_directory(scheme, root, is_deep=True):
            for parent in _list_parents(info.path, root):
                by_directory.setdefault(parent, []).append(info)
        return {
            name: [info for info in by_directory.get(place.directory, ()) if matches(place, info.path)]
            for name, place in places.items()
        }

    def _find_oldest(self, scheme: str, path: str, grain: Grain) -> str | None:
        from pyarrow.fs import FileSelector

        listed = self._get_file_infos(scheme, FileSelector(pattern_root(path), allow_not_found=True))
        return min(partitions_from_names(path, grain, (info.base_name for info in listed)), default=None)

    def _files(self, scheme: str, place: FileLocation) -> list[Any]:
        if not place.segments:
            (info,) = self._get_file_infos(scheme, [place.directory])
            if info.type.name == "File":
                return [info]
        found = self._list_directory(scheme, place.directory, is_deep=place.is_deep)
        return [info for info in found if matches(place, info.path)]

    def _list_directory(self, scheme: str, directory: str, *, is_deep: bool) -> list[Any]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(directory, allow_not_found=True, recursive=is_deep)
        return [info for info in self._get_file_infos(scheme, selector) if info.type.name == "File"]

    def _get_file_infos(self, scheme: str, asked: Any) -> list[Any]:
        try:
            return list(self._get_filesystem(scheme).get_file_info(asked))
        except OSError as problem:
            raise EngineError(f"source files could not be listed: {problem}") from problem

    def _get_filesystem(self, scheme: str) -> Any:
        if scheme not in self._open:
            self._open[scheme] = open_filesystem(scheme, self._s3)
        return self._open[scheme]


def open_filesystem(scheme: str, s3: S3 | None) -> Any:
    """The file system of pyarrow for a scheme."""
    from pyarrow import fs

    if scheme == "file":
        return fs.LocalFileSystem()
    if scheme != "s3":
        return fs.FileSystem.from_uri(f"{scheme}://")[0]
    return fs.S3FileSystem(**to_pyarrow_arguments(s3))


def _mtime_version(info: Any) -> str:
    return f"mtime:{info.mtime_ns}"


def build_size(files: Sequence[SourceFile], footers: Mapping[str, Footer]) -> PartitionSize:
    """Size of a partition with these files; rows only if their footers were read."""
    listed = json.dumps([[f.path, f.size, f.version] for f in files], separators=(",", ":"), ensure_ascii=False)
    rows = sum(footers[file.path].rows for file in files) if footers else 0
    return PartitionSize(rows, sum(f.size for f in files), len(files), hashlib.sha256(listed.encode()).hexdigest())


def _number_schemas(
    files: Mapping[str, tuple[SourceFile, ...]], footers: Mapping[str, Footer]
) -> tuple[dict[str, tuple[SourceFile, ...]], tuple[Mapping[str, str], ...]]:
    """Files with the number of their schema, and the distinct schemas in order of first use."""
    if not footers:
        return dict(files), ()
    numbers: dict[tuple[tuple[str, str], ...], int] = {}

    def known(file: SourceFile) -> SourceFile:
        return replace(file, schema=numbers.setdefault(tuple(footers[file.path].columns.items()), len(numbers)))

    told = {name: tuple(known(file) for file in files[name]) for name in sorted(files)}
    return told, tuple(dict(columns) for columns in numbers)


def _describe_change(file: SourceFile, state: tuple[int, str] | None) -> str | None:
    if state is None:
        return f"{file.path} is missing"
    size, version = state
    if size != file.size:
        return f"{file.path} changed: {file.size} bytes were pinned, {size} are there"
    if version != file.version:
        return f"{file.path} changed: {file.version} was pinned, {version} is there"
    return None


def _join(place: FileLocation) -> str:
    """The path of a location, as one pattern."""
    return "/".join((place.directory, *place.segments))


def _list_parents(path: str, root: str) -> list[str]:
    found = []
    while len(path) > len(root):
        path = path.rpartition("/")[0]
        found.append(path)
    return found


_conforms: type[InputReader] = FileSource
