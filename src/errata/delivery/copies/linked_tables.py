"""Pay ``copy`` for a table that reads the lake's own metadata: let it read that again, and see that it did."""

from __future__ import annotations

from collections.abc import Sequence

from errata.delivery.copies.declared_copies import require_credentials
from errata.ledger import OutboxItem
from errata.model.consumer.outbox import Paid, Payment, TryAgain
from errata.model.copy.declaration import Copy
from errata.workspace import Workspace


def refresh_linked_table(workspace: Workspace, item: OutboxItem, declared: Copy) -> Payment:
    """Refresh the table; paid when it reads what is current now, or something newer."""
    require_credentials(workspace, declared)
    lake = workspace.engines.lake_rows
    # before the refresh: whatever is accepted is in this metadata
    current = lake.list_metadata(item.table)[-1]
    found = workspace.engines.linked_tables(declared.warehouse).refresh(declared.warehouse, declared.table)
    told = {"warehouse": declared.warehouse, "table": declared.table, "metadata": find_name(found)}
    if not is_current(found, current, lake.list_metadata(item.table)):
        return TryAgain(
            f"{declared.name} reads {find_name(found)} after a refresh; expected {find_name(current)}", told
        )
    return Paid(told)


def is_current(found: str, wanted: str, known: Sequence[str]) -> bool:
    """Whether a metadata file is the wanted one or a newer one, of those that are known, oldest first.

    >>> is_current("s3://b/m/3.json", "s3a://b/m/2.json", ["m/1.json", "m/2.json", "m/3.json"])
    True
    >>> is_current("s3://b/m/1.json", "s3a://b/m/2.json", ["m/1.json", "m/2.json", "m/3.json"])
    False
    """
    # names of metadata files are unique; their addresses are spelt in several ways
    names = [find_name(one) for one in known]
    start = names.index(find_name(wanted)) if find_name(wanted) in names else len(names)
    return find_name(found) in {find_name(wanted), *names[start:]}


def find_name(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]
