"""SQL that shows old and new rows side by side, paired by key. Pure.

Both sides are united and grouped by key, so that a reader's filter on key columns reaches both scans. A key that occurs
more than once is paired copy by copy, in the order of its values. Values are compared exactly. Lineage columns are left
out, and masked columns show only whether there is a value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from errata.model.manifest import TargetPin
from errata.model.partition_sql import build_partition_filter, quote_table, quoted
from errata.model.types import normalize_type, to_spark_type

CHANGES = ("added", "removed", "changed", "same")


@dataclass(frozen=True, slots=True)
class ComparisonSides:
    """The tags under which both sides are read; ``before`` is None if the table had no snapshot."""

    before: str | None
    dark: str


def build_read_statements(table: str, name: str, snapshot_id: str) -> dict[str, str]:
    """Statements that read a preview name, by reader.

    >>> build_read_statements("lake.fin.t", "preview", "42")["Spark"]
    "SELECT * FROM `lake`.`fin`.`t` VERSION AS OF 'preview'"
    """
    in_trino = ".".join(f'"{part}"' for part in table.split("."))
    return {
        "Spark": f"SELECT * FROM {quote_table(table)} VERSION AS OF '{name}'",  # noqa: S608 - names of our own making
        "Spark, as a table": f"SELECT * FROM {quote_table(table)}.{quoted(f'tag_{name}')}",  # noqa: S608
        "Trino": f"SELECT * FROM {in_trino} FOR VERSION AS OF '{name}'",  # noqa: S608
        "PyIceberg": f'table.scan(snapshot_id=table.snapshot_by_name("{name}").snapshot_id)',
        "others": f"by snapshot id {snapshot_id}, until the candidate is built again",
    }


def build_comparison_sql(
    target: TargetPin,
    sides: ComparisonSides,
    columns: Sequence[str],
    partitions: Sequence[str],
    *,
    masked: Collection[str] = (),
    mask: str = "•••",
) -> str:
    """``SELECT`` of the key, ``change``, and ``old_…`` and ``new_…`` of every other column, for these partitions."""
    values = [name for name in columns if name not in target.key]
    keys = [_mask_cell(quoted(name), name in masked, mask) + f" AS {quoted(name)}" for name in target.key]
    taken = {name.casefold() for name in target.key}
    told = []
    for n, name in enumerate(values):
        for side in ("old", "new"):
            shown = _mask_cell(f"errata_{side}.c{n}", name in masked, mask)
            told.append(f"{shown} AS {quoted(_find_free_name(f'{side}_{name}', taken))}")
    same = " AND ".join(
        _build_equality(f"errata_old.c{n}", f"errata_new.c{n}", target.columns[name]) for n, name in enumerate(values)
    )
    change = (
        "CASE WHEN errata_before = 0 THEN 'added' WHEN errata_after = 0 THEN 'removed' "
        f"WHEN {same or 'true'} THEN 'same' ELSE 'changed' END AS {quoted(_find_free_name('change', taken))}"
    )
    group = ", ".join([*map(quoted, target.key), "errata_copy"])
    both = " UNION ALL ".join(_build_side(target, sides, values, partitions, side) for side in (0, 1))
    paired = (
        f"SELECT {group}, count_if(errata_side = 0) AS errata_before, count_if(errata_side = 1) AS errata_after, "  # noqa: S608
        "first(IF(errata_side = 0, errata_row, NULL), true) AS errata_old, "
        f"first(IF(errata_side = 1, errata_row, NULL), true) AS errata_new FROM ({both}) GROUP BY {group}"
    )
    return f"SELECT {', '.join([*keys, change, *told])} FROM ({paired})"  # noqa: S608


def _build_side(
    target: TargetPin, sides: ComparisonSides, values: Sequence[str], partitions: Sequence[str], side: int
) -> str:
    """Rows of one side: key, number of the copy, and the values as one struct. NULLs of new columns are typed."""
    new = {column.name for column in target.new_columns}
    is_before = side == 0 and sides.before is not None
    table, name = (target.table, sides.before) if is_before else (target.staging.table, sides.dark)
    cells = [
        f"CAST(NULL AS {to_spark_type(target.columns[one])})" if is_before and one in new else quoted(one)
        for one in values
    ]
    row = ", ".join(["0 AS r", *(f"{cell} AS c{n}" for n, cell in enumerate(cells))])
    key = ", ".join(map(quoted, target.key))
    ranked = [cell for cell, one in zip(cells, values, strict=True) if _is_ordered(target.columns[one])]
    number = f"row_number() OVER (PARTITION BY {key} ORDER BY {', '.join(ranked or [key])})"
    condition = (
        build_partition_filter(target.column, target.column_type, target.grain, partitions)
        if side == 1 or is_before
        else "false"
    )
    return (
        f"SELECT {key}, {number} AS errata_copy, {side} AS errata_side, struct({row}) AS errata_row "  # noqa: S608
        f"FROM {quote_table(table)} VERSION AS OF '{name}' WHERE {condition}"
    )


def _build_equality(old: str, new: str, kind: str) -> str:
    """Null-safe equality; maps are compared by their entries, because Spark cannot compare maps."""
    if kind.startswith("map<") and "map<" not in kind[4:]:
        old, new = (f"array_sort(map_entries({side}))" for side in (old, new))
    elif "map<" in kind:
        old, new = (f"to_json(struct({side} AS v), map('ignoreNullFields', 'false'))" for side in (old, new))
    return f"{old} <=> {new}"


def _is_ordered(kind: str) -> bool:
    return "map<" not in (normalize_type(kind) or kind)


def _mask_cell(cell: str, is_masked: bool, mask: str) -> str:
    return f"CASE WHEN {cell} IS NOT NULL THEN '{mask}' END" if is_masked else cell


def _find_free_name(name: str, taken: Collection[str]) -> str:
    while name.casefold() in taken:
        name = f"errata_{name}"
    return name
