"""What Spark 4.0 with Iceberg 1.10 lacks or does differently, in one place. Pure.

Everything else in Errata is the same on both. Two differences need no version: ``ErrataFiles.java`` sets a sort order
and not its id, and ``errata.engines.iceberg.catalogs`` tells Iceberg that the tables of a SQLite catalog exist.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

_ROW_LINEAGE = ("_row_id", "_last_updated_sequence_number")
_FIRST_WITH_ROW_LINEAGE = 3


def build_read_options(name: str) -> dict[str, str]:
    """Options to read exactly the files that are staged under a name.

    With Iceberg 1.11 a name in ``SparkTableCache`` always means staged files, and it ignores the option. With 1.10 the
    name alone is the table, and a read would scan all of it. Both get the option, so that nothing depends on a version.
    """
    return {"scan-task-set-id": name}


def build_write_options(name: str) -> dict[str, str]:
    """Options to write files under a name, for Errata to commit; without them Iceberg 1.10 would commit to main."""
    return {"rewritten-file-scan-task-set-id": name}


def add_row_lineage(rows: DataFrame, format_version: int) -> DataFrame:
    """The rows as a table of this format takes them: Iceberg 1.10 asks for row ids; NULL lets it number new rows."""
    if not _is_spark_40(rows.sparkSession) or format_version < _FIRST_WITH_ROW_LINEAGE:
        return rows
    missing = {name: F.lit(None).cast("long") for name in _ROW_LINEAGE if name not in rows.columns}
    return rows.withColumns(missing) if missing else rows


def has_top_k(session: SparkSession) -> bool:
    """Whether Spark has ``approx_top_k``, which came with 4.1."""
    return not _is_spark_40(session)


def _is_spark_40(session: SparkSession) -> bool:
    return session.version.startswith("4.0.")
