"""Read checkpoints of streaming queries, and write copies of them, through pyarrow's file systems."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from errata.engines.files.pattern import split_scheme
from errata.engines.files.source import open_filesystem
from errata.errors import EngineError, NotFound, StateRefused
from errata.model.consumer.checkpoint import STATE, Checkpoint, parse_checkpoint
from errata.model.product import S3
from errata.ports.checkpoints import CheckpointStore

_MAX_REQUESTS = 16
_LAST = "metadata"
"""Written last: Spark starts a new query where it is missing, and an unfinished copy must not look like a whole one."""


class CheckpointFiles:
    """Checkpoints as directories of files; relative locations are resolved against ``root``."""

    def __init__(self, root: str, s3: S3 | None = None) -> None:
        self._root = root
        self._s3 = s3

    def read(self, location: str) -> Checkpoint:
        """See the port."""
        system, place = self._open(location)
        names = self._list(system, place, location)
        if not names:
            raise NotFound(f"checkpoint {location} was not found; expected the checkpointLocation of the query")
        is_stateful = any(name.startswith(STATE) for name in names)
        wanted = [name for name in names if not name.startswith(STATE)]
        contents = self._map(lambda name: _read_file(system, f"{place}/{name}"), wanted, location)
        found = {name: content for name, content in zip(wanted, contents, strict=True) if content is not None}
        return parse_checkpoint(location, found, is_stateful=is_stateful)

    def write(self, location: str, files: Mapping[str, bytes]) -> None:
        """See the port."""
        system, place = self._open(location)
        others = [name for name in self._list(system, place, location) if name not in files]
        if others:
            raise StateRefused(
                f"a copy of a checkpoint was not written to {location}; there is {others[0]}, which is not part of it",
                state="no checkpoint was changed",
                hint=f"remove {location} if no reader uses it",
            )
        names = sorted(files, key=lambda name: name == _LAST)
        self._map(lambda name: _write_file(system, f"{place}/{name}", files[name]), names[:-1], location)
        self._map(lambda name: _write_file(system, f"{place}/{name}", files[name]), names[-1:], location)

    def _open(self, location: str) -> tuple[Any, str]:
        # Hadoop also writes file:/path
        scheme, path = split_scheme(location.replace("file:/", "file:///", 1) if _has_one_slash(location) else location)
        if scheme == "file" and not path.startswith("/"):
            path = str(Path(self._root) / path)
        try:
            return open_filesystem(scheme, self._s3), path.rstrip("/")
        except (OSError, ValueError) as problem:
            raise EngineError(f"checkpoint {location} could not be read: {problem}") from problem

    def _list(self, system: Any, place: str, location: str) -> list[str]:
        from pyarrow.fs import FileSelector

        try:
            infos = system.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
        except OSError as problem:
            raise EngineError(f"checkpoint {location} could not be listed: {problem}") from problem
        return sorted(info.path.removeprefix(f"{place}/") for info in infos if info.type.name == "File")

    def _map(self, act: Any, names: list[str], location: str) -> list[Any]:
        try:
            with ThreadPoolExecutor(_MAX_REQUESTS, "errata-checkpoint") as pool:
                return list(pool.map(act, names))
        except OSError as problem:
            raise EngineError(f"checkpoint {location} could not be read or written: {problem}") from problem


def _has_one_slash(location: str) -> bool:
    return location.startswith("file:/") and not location.startswith("file://")


def _read_file(system: Any, path: str) -> bytes | None:
    try:
        with system.open_input_stream(path) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None  # the query removed an old batch meanwhile


def _write_file(system: Any, path: str, content: bytes) -> None:
    if system.type_name != "s3":  # which has no directories, and would get objects with their names
        system.create_dir(path.rpartition("/")[0], recursive=True)
    with system.open_output_stream(path) as file:
        file.write(content)


_conforms: type[CheckpointStore] = CheckpointFiles
