"""Pinned inputs as frames: exactly the snapshot or the files the manifest names, cut to what is asked for. Reads.

Tables are read at their snapshot. Files are read by path and never listed; a file that is gone is an error by name.
Whether a file is still the one that was planned (size, version) is for the caller to check before a chunk runs.
When the partition column is not in the files it is taken from their paths through the file pattern, and that reading
is held against the partition each file was pinned for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.s3 import s3a
from errata.engines.spark.columns import in_partitions, table_name, typed_partition
from errata.errors import ChunkError, EngineError, ErrataError, RunExpired, SourceChanged
from errata.model.codec import typed
from errata.model.manifest import InputPin, Manifest, SourceFile
from errata.model.partition import NULL, Grain, value_of, widen

__all__ = ["frame", "frames", "own_frame", "pinned_files", "snapshot_frame"]

FilesPart = Mapping[str, tuple[SourceFile, ...]]
"""The pinned files of an input, by partition; the key does not matter for an input that is read whole."""

_READ = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # files of different ages may differ in columns; which file comes first must not decide
    "mergeSchema": "true",
}
_GLOB = re.compile(r"([][*?{}\\])")


def frames(
    session: SparkSession,
    manifest: Manifest,
    parts: Mapping[str, bytes],
    partitions: Sequence[str],
    earlier: Mapping[str, str] | None = None,
) -> dict[str, DataFrame]:
    """Every input for computing these product partitions: look-back and look-ahead included, reference data whole.

    ``parts`` has the manifest's parts by digest, among them the file lists (``InputPin.files_part``); ``earlier`` the
    snapshots in which this run staged its own partitions.
    """
    grain, kind = manifest.target.grain, manifest.target.column_type
    found = {}
    for pin in manifest.inputs:
        wanted = widen(grain, partitions, pin.lookback, pin.lookahead)
        if pin.own:
            before = [name for name in wanted if name not in set(partitions)]
            found[pin.name] = own_frame(session, manifest, pin, before, earlier or {})
        else:
            found[pin.name] = frame(session, pin, parts, wanted, grain, kind)
    return found


def own_frame(
    session: SparkSession, manifest: Manifest, pin: InputPin, partitions: Sequence[str], earlier: Mapping[str, str]
) -> DataFrame:
    """The product's own earlier partitions: what this run staged and the ledger adopted, before that its base.

    The run branch itself is never read: it may hold output of attempts that nobody adopted.
    """
    target, scope = manifest.target, set(manifest.partitions)
    if missing := [name for name in partitions if name in scope and name not in earlier]:
        raise EngineError(
            f"{pin.name}: {', '.join(missing)} is not staged yet; a product that reads itself runs in order"
        )
    base = [name for name in partitions if name not in scope]
    rows = snapshot_frame(session, target.table, target.base_snapshot_id)
    rows = rows.where(in_partitions(target.column, target.column_type, target.grain, base))
    for snapshot in dict.fromkeys(earlier[name] for name in partitions if name in scope):
        staged = _appended(session, target.table, snapshot)
        names = [name for name in partitions if earlier.get(name) == snapshot]
        staged = staged.where(in_partitions(target.column, target.column_type, target.grain, names))
        rows = rows.unionByName(staged)
    return rows


def _appended(session: SparkSession, table: str, snapshot_id: str) -> DataFrame:
    """Only what this snapshot added."""
    snapshots = session.read.format("iceberg").load(f"{table}.snapshots")
    parent = snapshots.where(F.col("snapshot_id") == F.lit(int(snapshot_id))).select("parent_id").first()
    if parent is None:
        raise _unreadable(table, snapshot_id, EngineError("Cannot find snapshot"))
    reader = session.read.format("iceberg").option("end-snapshot-id", snapshot_id)
    if parent.parent_id is not None:
        reader = reader.option("start-snapshot-id", str(parent.parent_id))
    return reader.load(table)


def pinned_files(manifest: Manifest, parts: Mapping[str, bytes], partitions: Sequence[str]) -> list[SourceFile]:
    """The files that :func:`frames` reads for these product partitions, each once, in path order."""
    found: dict[str, SourceFile] = {}
    for pin in manifest.inputs:
        if pin.kind == "files":
            wanted = widen(manifest.target.grain, partitions, pin.lookback, pin.lookahead)
            found |= {file.path: file for file in _chosen(pin, _files_part(pin, parts), wanted)}
    return [found[path] for path in sorted(found)]


def _files_part(pin: InputPin, parts: Mapping[str, bytes]) -> FilesPart:
    return typed(Mapping[str, tuple[SourceFile, ...]], json.loads(parts[str(pin.files_part)]))  # type: ignore[type-abstract]


def _chosen(pin: InputPin, part: FilesPart, partitions: Sequence[str]) -> list[SourceFile]:
    keys = list(part) if pin.partition is None else [p for p in partitions if p in part]
    return [file for key in keys for file in part[key]]


def frame(
    session: SparkSession,
    pin: InputPin,
    parts: Mapping[str, bytes],
    partitions: Sequence[str],
    grain: Grain,
    target_type: str,
) -> DataFrame:
    """One input cut to exactly these partitions; an input without a partition column is read whole."""
    if pin.kind == "table":
        table = snapshot_frame(session, pin.location, pin.snapshot_id)
        if pin.partition is None:
            return table
        return table.where(in_partitions(pin.partition, pin.column_type or target_type, grain, partitions))
    return _files(session, pin, _files_part(pin, parts), partitions, grain, pin.column_type or target_type)


def snapshot_frame(session: SparkSession, table: str, snapshot_id: str | None) -> DataFrame:
    """A table as of a snapshot; None is a table that had no snapshot, which reads as empty."""
    try:
        if snapshot_id is None:
            return session.read.table(table_name(table)).where(F.lit(False))  # noqa: FBT003 - a literal is a value
        return session.read.option("versionAsOf", snapshot_id).table(table_name(table))
    except (Py4JError, PySparkException) as error:
        raise _unreadable(table, snapshot_id, error) from error


def _unreadable(table: str, snapshot_id: str | None, error: Exception) -> ErrataError:
    if "Cannot find snapshot" in str(error):
        return RunExpired(
            f"{table}: snapshot {snapshot_id} was pinned but the table no longer has it",
            hint="plan again; the snapshot was expired although it was pinned, or could not be pinned",
            table=table,
            snapshot_id=snapshot_id,
        )
    return EngineError(f"{table} at snapshot {snapshot_id} cannot be read: {_first_line(error)}", table=table)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _files(
    session: SparkSession, pin: InputPin, part: FilesPart, partitions: Sequence[str], grain: Grain, column_type: str
) -> DataFrame:
    paths = sorted({file.path for file in _chosen(pin, part, partitions)})
    if paths:
        wanted = {p: part[p] for p in partitions if p in part}
        return _with_partition(_parquet(session, pin, paths), pin, wanted, grain, column_type)
    known = next((file.path for files in part.values() for file in files), None)
    if known is None:
        raise ChunkError(
            f"input {pin.name}: no file is pinned for {pin.location}, so its columns are not known",
            hint="an input needs at least one file somewhere in its range",
            input=pin.name,
        )
    other = _with_partition(_parquet(session, pin, [known]), pin, {}, grain, column_type)
    return session.createDataFrame([], other.schema)


def _parquet(session: SparkSession, pin: InputPin, paths: Sequence[str]) -> DataFrame:
    # above the threshold Spark starts a job to list what needs no listing
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", str(2**31 - 1))
    # a pinned path is a path, also with [ or * in it; Spark's own switch for that reads such files twice
    literal = [_GLOB.sub(r"\\\1", s3a(path)) for path in paths]
    try:
        return session.read.options(**_READ).parquet(*literal)
    except (Py4JError, PySparkException) as error:
        if isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND":
            raise SourceChanged(
                f"input {pin.name}: {_first_line(error)}", state="nothing was written", input=pin.name
            ) from error
        raise EngineError(f"input {pin.name} cannot be read: {_first_line(error)}", input=pin.name) from error


def _with_partition(files: DataFrame, pin: InputPin, part: FilesPart, grain: Grain, column_type: str) -> DataFrame:
    if pin.partition is None or pin.partition.lower() in (name.lower() for name in files.columns):
        return files
    reading = _PathReading(pin)
    escaped = reading.is_escaped(grain, part)
    text = reading.column(escaped=escaped)
    return files.withColumn(pin.partition, typed_partition(text, column_type, grain))


class _PathReading:
    """Takes the partition out of a file's path, in Python and in Spark alike."""

    def __init__(self, pin: InputPin) -> None:
        self.pin = pin
        placeholder = "{" + str(pin.partition) + "}"
        if placeholder not in pin.location:
            raise ChunkError(
                f"input {pin.name}: column {pin.partition} is neither in the files nor in the pattern {pin.location}",
                hint=f"put {placeholder} where the paths have it",
                input=pin.name,
            )
        # the pattern's directories above the placeholder are matched literally only from the last slash before it:
        # schemes and roots are written in several ways (file:/, file:///, none) that mean the same
        head, _, tail = pin.location.partition(placeholder)
        segment = head.rpartition("/")[2]
        rest = tail.replace(placeholder, "*")
        self.pattern = "/" + _literal(segment) + "([^/]+?)" + _literal(rest) + "$"

    def is_escaped(self, grain: Grain, files: FilesPart) -> bool:
        """Whether directory names write special characters as %XX (Hive style); raises when a file is elsewhere."""
        escaped = False
        for partition, pinned in files.items():
            expected = partition if grain.is_time or partition == NULL else value_of(partition)
            for file in pinned:
                match = re.search(self.pattern, file.path)
                found = match[1] if match else None
                if found == expected:
                    continue
                if found is None or unquote(found) != expected:
                    raise SourceChanged(
                        f"input {self.pin.name}: {file.path} is pinned for partition {partition}, "
                        f"but its path says {found or 'nothing'}",
                        input=self.pin.name,
                        path=file.path,
                    )
                escaped = True
        return escaped

    def column(self, *, escaped: bool) -> Column:
        """The text between the pattern's literals; NULL stands for the partition of rows without a value."""
        path = _unescaped(F.col("_metadata.file_path"))
        text = F.regexp_extract(path, self.pattern, 1)
        return F.nullif(_unescaped(text) if escaped else text, F.lit(NULL))


def _literal(glob: str) -> str:
    pieces = re.split(r"(\*\*|\*|\?)", glob)
    wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(piece) or re.escape(piece) for piece in pieces)


def _unescaped(text: Column) -> Column:
    # url_decode also turns + into a space, which a path does not mean
    return F.url_decode(F.replace(text, F.lit("+"), F.lit("%2B")))
