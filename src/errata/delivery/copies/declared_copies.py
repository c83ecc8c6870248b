"""A copy as the product file declares it now, and the tables on both sides of it."""

from __future__ import annotations

from errata.errors import MissingCredentials, NotFound, UsageError
from errata.model.copy.declaration import Copy
from errata.model.copy.resolution import LakeTable, Resolution, resolve_copy
from errata.model.copy.table import CopyTable
from errata.model.product import Product
from errata.workspace import Workspace


def find_copy(workspace: Workspace, product: str, name: str, item_id: int) -> tuple[Product, Copy]:
    """The declaration of a copy that something is owed to."""
    found = workspace.project.products.get(product)
    copies = {copy.name: copy for copy in found.target.copies} if found else {}
    if found is None or name not in copies:
        raise UsageError(
            f"{name} is not a copy of {product} any more; waive the item, or declare it again",
            hint=f'errata outbox waive {item_id} --reason "…"',
        )
    return found, copies[name]


def require_credentials(workspace: Workspace, declared: Copy) -> None:
    """Raise ``MissingCredentials`` if the warehouse cannot be reached from here."""
    warehouse = workspace.project.warehouses.get(declared.warehouse)
    if warehouse is None:
        raise NotFound(f"there is no warehouse {declared.warehouse} in errata.yaml", hint="errata check")
    if missing := workspace.project.find_unset_variable(warehouse):
        raise MissingCredentials(
            f"{declared.name} needs the variable {missing}, which is not set here",
            state="nothing was changed",
            hint="type the command where the variable is set",
        )


def look_at_copy(workspace: Workspace, product: Product, declared: Copy) -> Resolution:
    """Compare the declaration with the target and with the table in the warehouse, as both are now."""
    require_credentials(workspace, declared)
    target = product.target
    lake = workspace.engines.tables.describe(target.table)
    columns = {column.name: column.type for column in lake.columns}
    table = workspace.engines.copies(declared.warehouse).describe(declared.warehouse, declared.table)
    if table is None:
        raise NotFound(
            f"there is no table {declared.table} in {declared.warehouse}; expected one with the columns of "
            f"{target.table}",
            state="nothing was changed",
            hint="create it, or correct target.copies of the product",
        )
    kind = workspace.project.warehouses[declared.warehouse].type
    return resolve_copy(declared, LakeTable(target.column, target.grain, columns), table, kind)


def open_copy(workspace: Workspace, product: Product, declared: Copy) -> CopyTable:
    """The copy with its columns; raises ``UsageError`` with the first problem if it cannot be delivered to."""
    found = look_at_copy(workspace, product, declared)
    if found.copy is None:
        more = f" (and {len(found.errors) - 1} more)" if len(found.errors) > 1 else ""
        raise UsageError(
            f"{declared.name} does not fit {product.target.table}: {found.errors[0]}{more}",
            state="nothing was changed",
            hint="errata check",
        )
    return found.copy
