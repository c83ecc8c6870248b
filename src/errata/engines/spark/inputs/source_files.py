"""Read pinned Parquet files as frames, by path and without listing.

If the partition column is not in the files, it is extracted from their paths with the file pattern, and the result is
checked against the partition that each file was pinned for.
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
from errata.text.exceptions import first_line

FilesPart = Mapping[str, tuple[SourceFile, ...]]
"""Pinned files of an input by partition; the key does not matter for an input that is read whole."""

_READ_OPTIONS = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # if writers stored page checksums, a flipped bit is an error instead of a wrong number
    "parquet.page.verify-checksum.enabled": "true",
}
_GLOB = re.compile(r"([][*?{}\\])")


def load_files_part(pin: InputPin, parts: Mapping[str, bytes]) -> FilesPart:
    """The pinned files of an input, from the manifest part named by its pin."""
    return from_plain(Mapping[str, tuple[SourceFile, ...]], json.loads(parts[str(pin.files_part)]))  # type: ignore[type-abstract]


def select_files(pin: InputPin, part: FilesPart, partitions: Sequence[str]) -> dict[str, tuple[SourceFile, ...]]:
    """The files of these partitions, or all files of an input that is read whole."""
    keys = list(part) if pin.partition is None else [name for name in partitions if name in part]
    return {key: part[key] for key in keys}


def read_files(session: SparkSession, pin: InputPin, paths: Sequence[str], schema: str | None = None) -> DataFrame:
    """Read exactly these files, with the given schema or, without one, with their merged schema."""
    # above the threshold Spark would start a job to list files that need no listing
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", str(2**31 - 1))
    # escape [ and * because a pinned path is literal; Spark's own option for that reads such files twice
    literal = [_GLOB.sub(r"\\\1", to_s3a(path)) for path in paths]
    # older and newer files may differ in columns, and the schema must not depend on which file comes first
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


def add_partition_column(files: DataFrame, pin: InputPin, part: FilesPart, grain: Grain, column_type: str) -> DataFrame:
    """The frame with its partition column: the files' own column, or the value in their paths."""
    if pin.partition is None or pin.partition.lower() in (name.lower() for name in files.columns):
        return files
    reading = _PathReader(pin)
    escaped = reading.is_escaped(grain, part)
    text = reading.column(escaped=escaped)
    return files.withColumn(pin.partition, typed_partition(text, column_type, grain))


class _PathReader:
    """Extracts the partition from a file's path, in Python and in Spark."""

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
        """Whether directory names escape special characters as %XX (Hive style).

        Raises ``SourceChanged`` if a file's path does not match the partition it was pinned for.
        """
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
        """The partition's text from the path; NULL for the partition of rows without a value."""
        path = _decode_url(F.col("_metadata.file_path"))
        text = F.regexp_extract(path, self.pattern, 1)
        return F.nullif(_decode_url(text) if escaped else text, F.lit(NULL))


def _regex_from_glob(glob: str) -> str:
    pieces = re.split(r"(\*\*|\*|\?)", glob)
    wild = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(piece) or re.escape(piece) for piece in pieces)


def _decode_url(text: Column) -> Column:
    # url_decode would turn + into a space, but in a path + is literal
    return F.url_decode(F.replace(text, F.lit("+"), F.lit("%2B")))
