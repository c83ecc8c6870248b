"""Put the rows of recorded files into partitions, so that each has exactly one and none is lost. Runs no Spark action.

A row belongs to the partition that its column says. A line that is no row, a row whose partition cannot be read, and a
row of another time than its file is about belong to the first partition of the file, where they are quarantined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.engines.spark.columns import in_partitions, is_partition_text, partition_text, typed_partition
from errata.engines.spark.inputs.row_rules import CAST
from errata.errors import ManifestTampered
from errata.model.manifest import InputPin, SourceFile
from errata.model.partition import Grain
from errata.model.partition_sql import quoted
from errata.model.recording.row_columns import LINE, PROBLEM, ROWS_ENDING, TEXT

FIRST, LAST = "__errata_first", "__errata_last"
"""The partitions that the file of a row is about."""
OUTSIDE = "line of another time than its file"
_FILE_ID = r"/([0-9a-f]{32})/[^/]+$"


def find_origin(pin: InputPin, schema: Mapping[str, str]) -> Column:
    """Where a row comes from: the file, and of a recorded file of text its line."""
    path = F.col("_metadata.file_path")
    if pin.recording is None or LINE not in schema:
        return path
    return F.concat(F.regexp_replace(path, f"{ROWS_ENDING}$".replace(".", r"\."), ""), F.lit(":"), F.col(LINE))


def add_spans(rows: DataFrame, pin: InputPin, files: Sequence[SourceFile], schema: Mapping[str, str], kind: str,
              grain: Grain) -> DataFrame:  # fmt: skip
    """Add the partitions that each row's file is about, and the partition column if the files lack it."""
    spans = {}
    for file in files:
        piece = file.path.rsplit("/", 2)[1]
        if file.span is None:
            raise ManifestTampered(f"input {pin.name}: {file.path} is pinned without the time that it is about")
        spans[piece] = file.span
    found = F.regexp_extract(F.col("_metadata.file_path"), _FILE_ID, 1)
    ends = [
        F.create_map(*(F.lit(text) for piece, span in spans.items() for text in (piece, span[n])))[found]
        for n in (0, 1)
    ]
    rows = rows.withColumns({FIRST: ends[0], LAST: ends[1]})
    known = {name.lower() for name in schema}
    renamed = {old.lower() for era in pin.eras for old, new in era.rename.items() if new == pin.partition}
    if str(pin.partition).lower() in known or renamed & known:
        return rows
    return rows.withColumn(str(pin.partition), typed_partition(F.col(FIRST), kind, grain))


def place_rows(rows: DataFrame, pin: InputPin, kind: str, grain: Grain) -> DataFrame:
    """Give every row its partition, and a problem to rows of another time than their file; drops the spans."""
    column = str(pin.partition)
    text = partition_text(column, kind, grain)
    strays = ~(is_partition_text(text, grain) & text.between(F.col(FIRST), F.col(LAST)))
    strays = F.coalesce(strays, F.lit(True))  # noqa: FBT003 - a literal
    problem = F.col(PROBLEM) if PROBLEM in rows.columns else F.lit(None).cast("string")
    is_good = problem.isNull() & F.col(CAST).isNull()
    told = F.when(is_good & strays, F.lit(OUTSIDE)).otherwise(problem)
    value = F.when(strays, typed_partition(F.col(FIRST), kind, grain)).otherwise(F.col(quoted(column)))
    return rows.withColumns({PROBLEM: told, column: value}).drop(FIRST, LAST)


def cut_rows(rows: DataFrame, pin: InputPin, kind: str, grain: Grain, partitions: Sequence[str]) -> DataFrame:
    """Only the rows of these partitions; a recorded file may have those of others."""
    return rows.where(in_partitions(str(pin.partition), kind, grain, partitions))


LINE_COLUMNS = (LINE, PROBLEM, TEXT)
