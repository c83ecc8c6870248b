"""Pay ``ready``: let the ready table say what the ledger says, as long as that changes by itself."""

from __future__ import annotations

from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Later, Paid, Payment
from errata.model.consumer.readiness import ReadyState
from errata.publishing.readers.ready_table import write_ready_table
from errata.workspace import Workspace

_FIRST_SECONDS, _LONGEST_SECONDS = 2.0, 30.0


def show_ready_partitions(workspace: Workspace, _actor: Actor, item: OutboxItem) -> Payment:
    """Write the rows about the item's table; put off while readers wait for something that passes by itself.

    What people decide owes an item of its own: a member of a campaign that is published or given up, a waiver.
    """
    tables = write_ready_table(workspace, (item.table,))
    states = workspace.ledger.readiness.list_passing(tables)
    if not states:
        return Paid()
    if states == {ReadyState.HELD}:
        # a hold that ends earlier has its rows written, or owed, at its end
        ends = [one.until for table in tables for one in workspace.ledger.holds.list_active(table)]
        return Later(max(1.0, (min(ends, default=0) - workspace.ledger.now_ms()) / 1000), {})
    tries = int(item.progress.get("tries", 0))
    return Later(min(_FIRST_SECONDS * 2**tries, _LONGEST_SECONDS), {"tries": tries + 1})
