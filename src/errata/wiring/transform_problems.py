"""Check a product's transform as `errata check` does: its file, names and query. Reads code and table metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from errata.errors import ErrataError
from errata.model.product import LINEAGE_COLUMNS, Input, Product, Project
from errata.model.sql_parameters import list_config_parameters
from errata.ports.tables import Column, TableReader
from errata.project.check import open_report
from errata.project.problems import ProjectProblem, refuse_problems
from errata.project.transform_check import check_transform, read_query


def refuse_broken_transform(
    project: Project, product: Product, tables: TableReader, *, may_leave_out: bool = False
) -> None:
    """Raise a ``ProjectFileError`` with every problem of the transform, before anything is computed or a JVM starts.

    ``may_leave_out`` allows columns that the transform leaves out to be written as NULL.
    """
    report = open_report(project, product.path)
    check_transform(Path(project.root), product, report)
    found = (*report.problems, *find_query_problems(project, product, tables))
    refuse_problems([one for one in found if not may_leave_out or one.level != "warning"])


def find_query_problems(project: Project, product: Product, tables: TableReader) -> Iterator[ProjectProblem]:
    """Problems of a SQL transform's query, with their lines; another check reports a file that cannot be read."""
    text = read_query(Path(project.root), product) if product.transform.is_sql else None
    if text is None:
        return
    # imported late: the SQL parser takes half a second to import, and most products may not need it
    from errata.planning.sql.check import find_sql_flaws
    from errata.planning.sql.flaw import SqlSurroundings

    target = product.target
    described = _describe_columns(target.table, tables)
    columns = None if described is None else tuple(column.name for column in described)
    needed = dict.fromkeys((target.column, *target.key, *(one.name for one in described or () if one.required)))
    merge = product.publish.merge
    is_open = columns is None or (
        merge is not None and merge.delete is not None
    )  # a condition may need further columns
    around = SqlSurroundings(
        inputs={
            source.name: _list_input_columns(source, product, tables)
            for source in product.inputs
            if source.transactions_of is None
        },
        config=list_config_parameters(product.transform.config),
        has_interval=target.grain.is_time,
        outputs=None if is_open else (*(columns or ()), *target.add_columns),
        needed=[name for name in needed if name not in LINEAGE_COLUMNS],
        nullable=[
            name
            for name in dict.fromkeys((*(columns or ()), *target.add_columns))
            if name not in needed and name not in LINEAGE_COLUMNS
        ],
        target=target.table,
        ignored=LINEAGE_COLUMNS,
    )
    for flaw in find_sql_flaws(text, around):
        said = project.redact(flaw.message)
        yield ProjectProblem(product.transform.call, flaw.line, None, said, level=flaw.level)


def _list_input_columns(source: Input, product: Product, tables: TableReader) -> Collection[str] | None:
    """Columns that the query sees of an input; None if only Spark can tell."""
    if source.columns:
        return tuple(source.columns)
    if source.table is None or source.version is not None or (source.own and product.target.add_columns):
        return None
    described = _describe_columns(source.table, tables)
    return None if described is None else tuple(column.name for column in described)


def _describe_columns(table: str, tables: TableReader) -> tuple[Column, ...] | None:
    try:
        return tuple(tables.describe(table).columns)
    except ErrataError:  # another check reports tables that cannot be read
        return None
