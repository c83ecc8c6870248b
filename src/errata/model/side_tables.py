"""Side tables of a target: corrections by key, and versions. Pure.

Each is created by one statement that the plan shows and the manifest holds. Its columns are selected from the target,
so their types always match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.model.manifest import Manifest, TargetPin
from errata.model.partition_sql import quote_table, quoted
from errata.model.product import Publish, Target

SIDE_TABLE_MODES = frozenset({"corrections", "version", "swap_view"})
"""Modes whose publication is a commit on a side table and leaves the target untouched."""

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
CORRECTION_COLUMNS = {
    "kind": "STRING",
    "partition": "STRING",
    "old": "STRING",
    "new": "STRING",
    "reason": "STRING",
    "run_id": "STRING",
    "publication_id": "STRING",
    "at": "TIMESTAMP",
}
"""Columns of a correction besides its key. Values are JSON: decimals stay exact, and new target columns fit in."""

RUN, VERSION = "errata_run_id", "errata_version"
VERSION_COLUMNS = {RUN: "STRING", VERSION: "INT"}
"""Columns of a version row besides the target's columns."""

_PROPERTIES = "TBLPROPERTIES ('format-version'='2', 'commit.retry.num-retries'='30')"
_TRANSFORMS = {"hour": "hours", "day": "days", "month": "months", "year": "years"}


def is_side_table_mode(publish: Publish) -> bool:
    """Whether a publication leaves the target untouched."""
    return publish.mode in SIDE_TABLE_MODES


def find_side_table(manifest: Manifest) -> str | None:
    """The side table that receives a publication's rows, in the modes that leave the target untouched, or None."""
    publish = manifest.publish
    if not is_side_table_mode(publish):
        return None
    return publish.corrections if publish.mode == "corrections" else publish.versions


def find_landing_pin(manifest: Manifest) -> TargetPin:
    """The table on which this run's publication commits, and which holds its tag and its fence."""
    table = find_side_table(manifest)
    return replace(manifest.target, table=table) if table else manifest.target


def list_side_table_columns(publish: Publish, target: Target, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Columns that each side table of this target must have."""
    wanted = {}
    if publish.corrections:
        wanted[publish.corrections] = (*target.key, *CORRECTION_COLUMNS)
    if publish.versions:
        wanted[publish.versions] = (*columns, *VERSION_COLUMNS)
    return wanted


def build_create_statements(
    publish: Publish, target: Target, transform: str, missing: Sequence[str]
) -> tuple[str, ...]:
    """SQL that creates the missing side tables.

    >>> from errata.model.partition import Grain
    >>> target = Target("lake.fin.daily", "day", Grain.DAY, ("day", "account"))
    >>> print(build_create_statements(Publish("version", versions="lake.fin.v"), target, "identity", ["lake.fin.v"])[0])
    CREATE TABLE IF NOT EXISTS `lake`.`fin`.`v` USING iceberg PARTITIONED BY (`day`, `errata_version`) \
TBLPROPERTIES ('format-version'='2', 'commit.retry.num-retries'='30') AS SELECT *, \
CAST(NULL AS STRING) AS `errata_run_id`, CAST(NULL AS INT) AS `errata_version` FROM `lake`.`fin`.`daily` WHERE false
    """
    made = []
    if publish.corrections in missing:
        key = ", ".join(map(quoted, target.key))
        made.append(
            _build_create_statement(
                publish.corrections or "", "", f"{key}, {_build_null_columns(CORRECTION_COLUMNS)}", target.table
            )
        )
    if publish.versions in missing:
        field = f"{_TRANSFORMS[transform]}({quoted(target.column)})" if transform in _TRANSFORMS else ""
        spec = f"PARTITIONED BY ({field or quoted(target.column)}, {quoted(VERSION)}) "
        made.append(
            _build_create_statement(
                publish.versions or "", spec, f"*, {_build_null_columns(VERSION_COLUMNS)}", target.table
            )
        )
    return tuple(made)


def _build_create_statement(table: str, spec: str, columns: str, target: str) -> str:
    selected = f"SELECT {columns} FROM {quote_table(target)} WHERE false"  # noqa: S608 - quoted names and our own words
    return f"CREATE TABLE IF NOT EXISTS {quote_table(table)} USING iceberg {spec}{_PROPERTIES} AS {selected}"


def _build_null_columns(columns: dict[str, str]) -> str:
    return ", ".join(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns.items())
