"""Whether a declared copy fits the tables in lake and warehouse, and which columns are copied. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from errata.model.copy.column_types import find_column_problem
from errata.model.copy.declaration import REFRESH, Copy
from errata.model.copy.delivery import WarehouseTable
from errata.model.copy.row_text import is_approximate
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain

Key = tuple[str | int, ...]
"""Where in the declaration of the copy; empty: the copy as a whole."""
_VALUE_TYPES = ("string", "int", "long", "date")
NOT_A_TABLE = "views"
"""The obstacle of what is not a table at all."""


@dataclass(frozen=True, slots=True)
class CopyProblem:
    """Something that does not fit."""

    key: Key
    text: str
    is_warning: bool = False  # deliveries work all the same
    is_about_rights: bool = False  # the tables fit and can be compared, but a delivery would be refused


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of a declaration: the copy, unless the tables do not fit."""

    copy: CopyTable | None
    problems: tuple[CopyProblem, ...] = ()
    left_out: tuple[str, ...] = ()  # columns of the target that the copy does not have

    @property
    def errors(self) -> tuple[str, ...]:
        """Why nothing can be delivered."""
        return tuple(one.text for one in self.problems if not one.is_warning)


@dataclass(frozen=True, slots=True)
class LakeTable:
    """The target of a copy."""

    column: str  # the partition column
    grain: Grain
    columns: Mapping[str, str] = field(default_factory=dict)  # name → Iceberg type text


def resolve_copy(declared: Copy, lake: LakeTable, table: WarehouseTable, warehouse_type: str) -> Resolution:
    """Match columns, check their types, and find everything else that is in the way, in one pass."""
    if views := table.obstacles.get(NOT_A_TABLE):
        return Resolution(None, (CopyProblem(("table",), f"{views[0]} is a view; expected a table"),))
    names, problems = _match_columns(declared, lake, table)
    columns = tuple(CopyColumn(source, name, lake.columns[source]) for source, name in names.items())
    # a table that reads the lake's own metadata has its columns, and nothing is written to them
    if declared.mode != REFRESH:
        problems += _check_types(declared, columns, table, warehouse_type)
        problems += _check_rest(declared, set(names.values()), table)
    partition = next((one for one in columns if one.source == lake.column), None)
    if partition is None:
        problems.append(CopyProblem(("partition",), f"no column of the copy has the partitions of {lake.column}"))
    elif not lake.grain.is_time and partition.type not in _VALUE_TYPES:
        said = f"partitions by value of a {partition.type} column cannot be found in a warehouse"
        problems.append(CopyProblem(("partition",), said))
    left_out = tuple(name for name in lake.columns if name not in names)
    if partition is not None:
        problems += _find_warnings(partition.name, table)
    if table.grants and declared.mode != REFRESH:
        said = f"the role lacks rights that every delivery needs: {'; '.join(table.grants)}"
        problems.append(CopyProblem(("table",), said, is_about_rights=True))
    if partition is None or any(not (one.is_warning or one.is_about_rights) for one in problems):
        return Resolution(None, tuple(problems), left_out)
    copy = CopyTable(
        declared.warehouse,
        declared.table,
        columns,
        partition,
        lake.grain,
        float(declared.lock_seconds),
        declared.tolerance,
    )
    return Resolution(copy, tuple(problems), left_out)


def _match_columns(declared: Copy, lake: LakeTable, table: WarehouseTable) -> tuple[dict[str, str], list[CopyProblem]]:
    """Columns of the lake and their names in the copy; a name that is not declared fits in any letter case."""
    there = {column.name for column in table.columns}
    wanted = dict(declared.columns) | ({lake.column: declared.partition} if declared.partition else {})
    problems: list[CopyProblem] = []
    for source, name in wanted.items():
        is_partition = source == lake.column and declared.partition is not None
        key: Key = ("partition",) if is_partition else ("columns", source)
        if source not in lake.columns:
            problems.append(CopyProblem(key, f"the target has no column {source}"))
        elif name not in there:
            problems.append(CopyProblem(key, f"the copy has no column {name}"))
    free = there - set(wanted.values()) - set(declared.default)
    found: dict[str, str] = {}
    for source in lake.columns:
        if source in wanted:
            if wanted[source] in there:
                found[source] = wanted[source]
            continue
        alike = [name for name in free if name.casefold() == source.casefold()]
        if source in alike or len(alike) == 1:
            found[source] = source if source in alike else alike[0]
        elif alike:
            said = f"{source} may be {' or '.join(sorted(alike))}; name one under columns"
            problems.append(CopyProblem(("columns",), said))
    return found, problems


def _check_types(
    declared: Copy, columns: tuple[CopyColumn, ...], table: WarehouseTable, warehouse_type: str
) -> Iterator[CopyProblem]:
    there = {column.name: column for column in table.columns}
    for column in columns:
        if there[column.name].is_generated:
            yield CopyProblem(("columns",), f"column {column.name} is computed by the warehouse and cannot be written")
        elif problem := find_column_problem(warehouse_type, column.type, there[column.name].type):
            said = f"column {column.name} cannot hold {column.source} ({column.type}) exactly: {problem}"
            yield CopyProblem(("columns",), said)
    doubles = [column.source for column in columns if is_approximate(column.type)]
    if doubles and declared.tolerance is None:
        said = f"{', '.join(doubles)} can only be compared by sums; expected the largest difference that is none"
        yield CopyProblem(("tolerance",), said)


def _check_rest(declared: Copy, used: set[str], table: WarehouseTable) -> Iterator[CopyProblem]:
    """Columns of the warehouse that get no value from the lake."""
    there = {column.name: column for column in table.columns}
    for n, name in enumerate(declared.default):
        if name not in there:
            yield CopyProblem(("default", n), f"the copy has no column {name}")
        elif there[name].is_required and not there[name].has_default:
            yield CopyProblem(("default", n), f"column {name} may not be NULL and has no default")
    for column in table.columns:
        if column.name not in used and column.name not in declared.default and not column.is_generated:
            said = f"column {column.name} of the copy gets no value; name it under columns, or under default"
            yield CopyProblem(("columns",), said)


def _find_warnings(partition: str, table: WarehouseTable) -> Iterator[CopyProblem]:
    if table.has_indexes and partition not in table.indexed:
        said = f"there is no index on {partition}, so that every delivery reads the whole copy"
        yield CopyProblem(("partition",), said, is_warning=True)
    for kind, names in table.obstacles.items():
        if kind != NOT_A_TABLE:
            said = f"{kind} of the copy meet every row that a delivery replaces: {', '.join(names)}"
            yield CopyProblem(("table",), said, is_warning=True)
