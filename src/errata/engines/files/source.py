"""Lists and re-checks source files through pyarrow's file systems. Reads directories, opens no data file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from errata.engines.files.pattern import Place, column_of, locate, matches, neighbours, root_of, split_scheme
from errata.errors import EngineError, UsageError
from errata.model.manifest import SourceFile
from errata.model.partition import Grain
from errata.model.product import Input
from errata.planner.ports import WHOLE, InputFacts, InputReader, PartitionSize

__all__ = ["FileSource"]

_MANY = 16
"""From this many partitions on, an object store is listed once with everything below the pattern's root."""


class FileSource:
    """Files of an input; ``properties`` are those of the catalog (``s3.endpoint``, ``s3.region``, …)."""

    def __init__(self, root: str, properties: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._properties = properties or {}
        self._open: dict[str, Any] = {}

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputFacts:
        """Pinned files per partition; a partition without files is left out."""
        if source.files is None:
            raise UsageError(f"input {source.name} names no files")
        scheme, path = self._absolute(source.files)
        if column_of(path) is None or source.partition is None:
            places = {WHOLE: locate(path, grain, None)}
        else:
            places = {name: locate(path, grain, name) for name in partitions}
        found = self._list(scheme, root_of(path), places)
        files = {name: tuple(sorted(listed, key=lambda file: file.path)) for name, listed in found.items() if listed}
        sizes = {name: _size(listed) for name, listed in files.items()}
        whole = sizes.get(WHOLE, _size(())) if WHOLE in places else None
        return InputFacts(
            name=source.name,
            kind="files",
            location=source.files,
            column_type=None,
            partitions={} if whole else sizes,
            whole=whole,
            newest_ms=max(
                (int(file.version[6:]) // 10**6 for listed in files.values() for file in listed), default=None
            ),
            files=files,
            oldest=None if whole or len(sizes) == len(places) else self._oldest(scheme, path, grain),
            rows_known=False,
            note="rows unknown: source files are not opened",
        )

    def verify(self, files: Iterable[SourceFile]) -> list[str]:
        """What is wrong with pinned files now, by name; one request per batch, nothing opened."""
        problems = []
        by_scheme: dict[str, list[SourceFile]] = {}
        for file in files:
            by_scheme.setdefault(split_scheme(file.path)[0], []).append(file)
        for scheme, pinned in by_scheme.items():
            infos = self._infos(scheme, [split_scheme(file.path)[1] for file in pinned])
            problems += [text for file, info in zip(pinned, infos, strict=True) if (text := _problem(file, info))]
        return problems

    def _absolute(self, pattern: str) -> tuple[str, str]:
        scheme, path = split_scheme(pattern)
        if scheme == "file" and not path.startswith("/"):
            path = str(Path(self._root) / path)
        return scheme, path

    def _list(self, scheme: str, root: str, places: Mapping[str, Place]) -> dict[str, list[SourceFile]]:
        if scheme == "file" or len(places) < _MANY:
            return {name: self._files(scheme, place) for name, place in places.items()}
        # an object store answers a thousand keys per request wherever they lie, so one listing beats one per day
        below = self._below(scheme, root, is_deep=True)
        by_directory: dict[str, list[SourceFile]] = {}
        for file in below:
            path = split_scheme(file.path)[1]
            for parent in _parents(path, root):
                by_directory.setdefault(parent, []).append(file)
        return {
            name: [f for f in by_directory.get(place.directory, ()) if matches(place, split_scheme(f.path)[1])]
            for name, place in places.items()
        }

    def _oldest(self, scheme: str, path: str, grain: Grain) -> str | None:
        from pyarrow.fs import FileSelector

        listed = self._infos(scheme, FileSelector(root_of(path), allow_not_found=True))
        return min(neighbours(path, grain, (info.base_name for info in listed)), default=None)

    def _files(self, scheme: str, place: Place) -> list[SourceFile]:
        if not place.segments:
            (info,) = self._infos(scheme, [place.directory])
            if info.type.name == "File":
                return [_pinned(scheme, info)]
        found = self._below(scheme, place.directory, is_deep=place.is_deep)
        return [file for file in found if matches(place, split_scheme(file.path)[1])]

    def _below(self, scheme: str, directory: str, *, is_deep: bool) -> list[SourceFile]:
        from pyarrow.fs import FileSelector

        selector = FileSelector(directory, allow_not_found=True, recursive=is_deep)
        return [_pinned(scheme, info) for info in self._infos(scheme, selector) if info.type.name == "File"]

    def _infos(self, scheme: str, asked: Any) -> list[Any]:
        try:
            return list(self._system(scheme).get_file_info(asked))
        except OSError as problem:
            raise EngineError(f"source files could not be listed: {problem}") from problem

    def _system(self, scheme: str) -> Any:
        if scheme not in self._open:
            self._open[scheme] = _connect(scheme, self._properties)
        return self._open[scheme]


def _connect(scheme: str, properties: Mapping[str, str]) -> Any:
    from pyarrow import fs

    if scheme == "file":
        return fs.LocalFileSystem()
    if scheme != "s3":
        return fs.FileSystem.from_uri(f"{scheme}://")[0]
    return fs.S3FileSystem(**s3_options(properties))


def s3_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of pyarrow's S3 file system from catalog properties; what is absent comes from the environment."""
    endpoint = properties.get("s3.endpoint", "")
    scheme, mark, host = endpoint.partition("://")
    options = {
        "access_key": properties.get("s3.access-key-id"),
        "secret_key": properties.get("s3.secret-access-key"),
        "session_token": properties.get("s3.session-token"),
        "region": properties.get("s3.region") or properties.get("client.region"),
        "endpoint_override": (host if mark else scheme) or None,
        "scheme": scheme if mark else None,
    }
    found: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if "s3.path-style-access" in properties:
        found["force_virtual_addressing"] = properties["s3.path-style-access"] != "true"
    return found


def _pinned(scheme: str, info: Any) -> SourceFile:
    return SourceFile(f"{scheme}://{info.path}", info.size, f"mtime:{info.mtime_ns}")


def _size(files: Sequence[SourceFile]) -> PartitionSize:
    listed = json.dumps([[f.path, f.size, f.version] for f in files], separators=(",", ":"), ensure_ascii=False)
    return PartitionSize(0, sum(f.size for f in files), len(files), hashlib.sha256(listed.encode()).hexdigest())


def _problem(file: SourceFile, info: Any) -> str | None:
    if info.type.name != "File":
        return f"{file.path} is missing"
    if info.size != file.size:
        return f"{file.path} changed: {file.size} bytes were pinned, {info.size} are there"
    if f"mtime:{info.mtime_ns}" != file.version:
        return f"{file.path} changed: {file.version} was pinned, mtime:{info.mtime_ns} is there"
    return None


def _parents(path: str, root: str) -> list[str]:
    found = []
    while len(path) > len(root):
        path = path.rpartition("/")[0]
        found.append(path)
    return found


_conforms: type[InputReader] = FileSource
