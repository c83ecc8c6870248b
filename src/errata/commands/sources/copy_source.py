"""A copy of a product in a warehouse as a source: `errata record WAREHOUSE:TABLE`."""

from __future__ import annotations

from errata.delivery.copies.declared_copies import open_copy
from errata.errors import UsageError
from errata.model.copy.declaration import Copy
from errata.model.copy.row_text import Dialect
from errata.model.product import Product, Project
from errata.model.recording.copy_query import build_copy_query, find_copy_flaw, name_copy_source
from errata.model.recording.declaration import Source, SqlSource
from errata.workspace import Workspace


def find_declared_copy(project: Project, name: str) -> tuple[Product, Copy] | None:
    """The product and its copy of this name; None if no product has one."""
    return next(
        (
            (product, copy)
            for product in project.products.values()
            for copy in product.target.copies
            if copy.name == name
        ),
        None,
    )


def find_copy_source(workspace: Workspace, name: str) -> Source | None:
    """A copy as a source, whose newest rows of a window replace those that were recorded before."""
    found = find_declared_copy(workspace.project, name)
    if found is None:
        return None
    table = open_copy(workspace, *found)
    if flaw := find_copy_flaw(table):
        raise UsageError(f"{name} was not recorded; {flaw}", state="nothing was changed", hint="errata copies check")
    kind = workspace.project.warehouses[table.warehouse].type
    dialect = Dialect.POSTGRES if kind == "postgres" else Dialect.SNOWFLAKE
    query = build_copy_query(table, dialect)
    return Source(name_copy_source(name), "parquet", duplicates="correction", sql=SqlSource(table.warehouse, query))
