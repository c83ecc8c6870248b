"""Pinned Parquet files as frames: read by path and never listed, with the partition taken from the path. Reads.

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

from errata.canonical import from_plain
from errata.engines.failures import find_corrupt_file
from errata.engines.s3 import to_s3a
from errata.engines.spark.columns import typed_partition
from errata.errors import ChunkError, EngineError, SourceChanged
from errata.model.manifest import InputPin, SourceFile
from errata.model.partition import NULL, Grain, value_from_text

FilesPart = Mapping[str, tuple[SourceFile, ...]]
"""The pinned files of an input, by partition; the key does not matter for an input that is read whole."""

_READ_OPTIONS = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # where writers left checksums in their pages, a flipped bit is an error and not another number
    "parquet.page.verify-checksum.enabled": "true",
}
_GLOB = re.compile(r"([][*?{}\\])")


def load_files_part(pin: InputPin, parts: Mapping[str, bytes]) -> FilesPart:
    """The pinned files of an input, from the part that its pin names."""
    return from_plain(Mapping[str, tuple[SourceFile, ...]], json.loads(parts[str(pin.files_part)]))  # type: ignore[type-abstract]


def select_files(pin: InputPin, part: FilesPart, partitions: Sequence[str]) -> dict[str, tuple[SourceFile, ...]]:
    """The files of these partitions, or all of an input that is read whole."""
    keys = list(part) if pin.partition is None else [name for name in partitions if name in part]
    return {key: part[key] for key in keys}


def read_files(session: SparkSession, pin: InputPin, paths: Sequence[str], schema: str | None = None) -> DataFrame:
    """Exactly these files; with a schema they are read by it, without one by what all of them have together."""
    # above the threshold Spark starts a job to list what needs no listing
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", str(2**31 - 1))
    # a pinned path is a path, also with [ or * in it; Spark's own switch for that reads such files twice
    literal = [_GLOB.sub(r"\\\1", to_s3a(path)) for path in paths]
    # files of different ages may differ in columns; which file comes first must not decide
    reader = (
        session.read.options(**_READ_OPTIONS, mergeSchema="true")
        if schema is None
        else session.read.options(**_READ_OPTIONS)
    )
    try:
        return (reader if schema is None else reader.schema(schema)).parquet(*literal)
    except (Py4JError, PySparkException) as error:
        if isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND":
            raise SourceChanged(
                f"input {pin.name}: {first_line(error)}", state="nothing was written", input=pin.name
            ) from error
        if broken := find_corrupt_file(error, f"input {pin.name}"):
            raise broken from error
        raise EngineError(f"input {pin.name} cannot be read: {first_line(error)}", input=pin.name) from error


def first_line(error: Exception) -> str:
    """What an error says, without its stack."""
    return str(error).strip().partition("\n")[0]


def add_partition_column(files: DataFrame, pin: InputPin, part: FilesPart, grain: Grain, column_type: str) -> DataFrame:
    """The frame with its partition column: the files' own, or what their paths say."""
    if pin.partition is None or pin.partition.lower() in (name.lower() for name in files.columns):
        return files
    reading = _PathReader(pin)
    escaped = reading.is_escaped(grain, part)
    text = reading.column(escaped=escaped)
    return files.withColumn(pin.partition, typed_partition(text, column_type, grain))


class _PathReader:
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
        self.pattern = "/" + _regex_from_glob(segment) + "([^/]+?)" + _regex_from_glob(rest) + "$"

    def is_escaped(self, grain: Grain, files: FilesPart) -> bool:
        """Whether directory names write special characters as %XX (Hive style); raises when a file is elsewhere."""
        escaped = False
        for partition, pinned in files.items():
            expected = partition if grain.is_time or partition == NULL else value_from_text(partition)
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
        path = _decode_url(F.col("_metadata.file_path"))
        text = F.regexp_extract(path, self.pattern, 1)
        return F.nullif(_decode_url(text) if escaped else text, F.lit(NULL))


def _regex_from_glob(glob: str) -> str:
    pieces = re.split(r"(\*\*|\*|\?)", glob)
    wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(piece) or re.escape(piece) for piece in pieces)


def _decode_url(text: Column) -> Column:
    # url_decode also turns + into a space, which a path does not mean
    return F.url_decode(F.replace(text, F.lit("+"), F.lit("%2B")))
