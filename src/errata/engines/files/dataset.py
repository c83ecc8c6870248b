"""Plain Parquet files below a directory: found, and described by their footers."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from errata.engines.files.footers import to_columns
from errata.engines.files.pattern import split_scheme
from errata.engines.files.source import open_filesystem
from errata.errors import EngineError, NotFound
from errata.model.dataset.parquet_files import Dataset, ParquetFile, is_harmless, split_folder
from errata.model.product import S3
from errata.ports.datasets import DatasetReader
from errata.text.exceptions import first_line

_ENDING = ".parquet"
_AT_ONCE = 16
_FIELD_ID = b"PARQUET:field_id"


class ParquetDatasets:
    """Datasets; relative paths are resolved against ``root``."""

    def __init__(self, root: str, s3: S3 | None = None) -> None:
        self._root, self._s3 = root, s3

    def read(self, path: str) -> Dataset:
        """See the port."""
        from pyarrow.fs import FileSelector

        scheme, place = split_scheme(path)
        place = str((Path(self._root) / place).resolve()) if scheme == "file" else place.rstrip("/")
        system = open_filesystem(scheme, self._s3)
        try:
            found = system.get_file_info(FileSelector(place, allow_not_found=True, recursive=True))
        except OSError as problem:
            raise EngineError(f"{path} could not be listed: {problem}", state="nothing was changed") from problem
        infos = {one.path.removeprefix(f"{place}/"): one for one in found if one.type.name == "File"}
        if not infos:
            raise NotFound(f"there is no file below {path}", state="nothing was changed", hint="check the path")
        hidden = [name for name in sorted(infos) if _is_hidden(name)]
        shown = [name for name in sorted(infos) if not _is_hidden(name)]
        wanted = [name for name in shown if name.endswith(_ENDING)]

        def describe(name: str) -> ParquetFile:
            info = infos[name]
            version = f"mtime:{info.mtime_ns}"
            return _read_footer(system.open_input_file, posixpath.join(place, name), name, info.size, version)

        with ThreadPoolExecutor(_AT_ONCE, "errata-footers") as pool:
            files = tuple(pool.map(describe, wanted))
        return Dataset(
            f"file://{place}" if scheme == "file" else f"{scheme}://{place}",
            files,
            tuple(name for name in hidden if not is_harmless(posixpath.basename(name))),
            tuple(name for name in shown if not name.endswith(_ENDING)),
        )


def _is_hidden(path: str) -> bool:
    return any(piece.startswith((".", "_")) for piece in path.split("/"))


def _read_footer(open_file: Callable[[str], Any], place: str, name: str, size: int, version: str) -> ParquetFile:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open_file(place) as file:
            metadata = parquet.read_metadata(file)
    except (OSError, pa.ArrowException) as problem:
        return ParquetFile(name, size, version, problem=first_line(problem))
    old = [one.path for n in range(metadata.num_columns) if (one := metadata.schema.column(n)).physical_type == "INT96"]
    if old:
        return ParquetFile(name, size, version, problem=f"{', '.join(old)} is INT96, which readers take differently")
    schema = metadata.schema.to_arrow_schema()
    keys = [found[0] for piece in name.split("/")[:-1] if (found := split_folder(piece))]
    return ParquetFile(
        name,
        size,
        version,
        metadata.num_rows,
        to_columns(metadata.schema),
        any(_FIELD_ID in (one.metadata or {}) for one in schema),
        _read_bounds(metadata, [key for key in keys if key in schema.names]),
    )


def _read_bounds(metadata: Any, columns: Sequence[str]) -> Mapping[str, tuple[str, str] | None]:
    """The least and the greatest value of some columns; None if a row group does not say, or has NULL."""
    found: dict[str, tuple[str, str] | None] = {}
    for name in columns:
        at = next(n for n in range(metadata.num_columns) if metadata.schema.column(n).path == name)
        stats = [metadata.row_group(n).column(at).statistics for n in range(metadata.num_row_groups)]
        if any(one is None or not one.has_min_max or one.null_count for one in stats):
            found[name] = None
        elif stats:
            found[name] = (str(min(one.min for one in stats)), str(max(one.max for one in stats)))
    return found


_conforms: type[DatasetReader] = ParquetDatasets
