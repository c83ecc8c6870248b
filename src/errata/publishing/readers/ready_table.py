"""The ready table: not ready is promised there before anything is committed, ready is written when it is so.

Its rows are always those that follow from the ledger at the time of writing. A publication or rollback therefore holds
the readers of the ready table first, in the ledger; then the table says so; only then may its intent be recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from errata.errors import EngineError, ErrataError
from errata.failpoints import failpoint
from errata.model.audit import Actor
from errata.model.consumer.hold import READERS, READERS_TERMS, WHOLE_RUN, HoldRequest
from errata.model.consumer.outbox import HOLDING, Effect, Owed
from errata.model.consumer.readiness import (
    PartitionReadiness,
    ReadyRow,
    list_ready_rows,
    without_snapshots,
)
from errata.model.partition import Grain
from errata.model.product import Project
from errata.model.side_tables import is_side_table_mode
from errata.workspace import Workspace


def read_readiness(workspace: Workspace, table: str) -> dict[str, PartitionReadiness]:
    """The state of every partition of a table about which the ledger knows something; all others are ready."""
    found = workspace.ledger.readiness.judge(table)
    product = workspace.project.find_product(table)
    # readers of such a product see a view; the snapshots are of another table
    return without_snapshots(found) if product and is_side_table_mode(product.publish) else found


def owe_ready(project: Project, event: str) -> tuple[Owed, ...]:
    """What an event owes that changes the readiness of partitions; nothing without a ready table."""
    return (Owed(Effect.READY, event),) if project.ready else ()


def write_ready_table(workspace: Workspace, tables: Collection[str]) -> tuple[str, ...]:
    """Let the ready table say about these tables what the ledger says; returns all tables whose rows were written.

    Tables that a campaign corrects together are written together, in one commit, from one view of the ledger.
    """
    ready, ledger = workspace.project.ready, workspace.ledger
    if ready is None:
        return ()
    names = ledger.readiness.list_joined(tables)

    def read_rows() -> Sequence[ReadyRow]:
        found = {name: read_readiness(workspace, name) for name in names}
        return [row for name, each in found.items() for row in list_ready_rows(name, _grain(workspace, name), each)]

    workspace.engines.ready.replace(ready.table, names, lambda: ledger.read_together(read_rows))
    return names


def hold_readers(
    workspace: Workspace, actor: Actor, run_id: str, kind: str, partitions: Sequence[str], snapshot_id: str | None
) -> tuple[str, ...]:
    """Say in the ready table that these partitions are not ready; returns the consumers that are held thereby.

    The first publication or rollback of a campaign says so of all its tables. Raises if the table could not be
    written: then nothing may be published.
    """
    ready, ledger = workspace.project.ready, workspace.ledger
    if ready is None:
        return ()
    requests = _list_requests(workspace, run_id, kind, partitions, snapshot_id)
    own = ledger.runs.get(run_id).table
    held = ledger.holds.open(
        run_id, requests, wave=WHOLE_RUN, actor=actor,
        owes=lambda one: owe_ready(workspace.project, HOLDING) if one.table == own else (),
    )  # fmt: skip
    failpoint("ready.before_commit")
    try:
        write_ready_table(workspace, [one.table for one in held])
    except ErrataError as error:
        for one in held:
            ledger.holds.end_one(one.hold_id, actor, "the ready table was not written")
        raise EngineError(
            f"{kind} of {run_id} was refused; the ready table could not say that partitions are not ready: "
            f"{error.message}",
            state="main is unchanged",
            hint=f"errata doctor; then errata {kind} {run_id}; or without ready in errata.yaml",
            table=ready.table,
        ) from error
    failpoint("ready.after_commit")
    for one in held:
        ledger.holds.acknowledge(one.hold_id, actor)
    return (READERS,)


def _list_requests(
    workspace: Workspace, run_id: str, kind: str, partitions: Sequence[str], snapshot_id: str | None
) -> list[HoldRequest]:
    """The holds that readers need: of the run's own table, and of the other tables of a campaign that begins."""
    own, found = workspace.ledger.runs.get(run_id).table, workspace.ledger.readiness.find_set(run_id, kind)
    tables = {own: tuple(partitions)} if found is None else {**found.partitions}
    tables[own] = tuple(dict.fromkeys((*tables.get(own, ()), *partitions)))
    return [
        HoldRequest(
            READERS,
            READERS_TERMS,
            names,
            snapshot_id if table == own else workspace.engines.pins.refs(table).get("main"),
            table,
        )
        for table, names in sorted(tables.items())
    ]


def _grain(workspace: Workspace, table: str) -> Grain:
    product = workspace.project.find_product(table)
    return product.target.grain if product else Grain.VALUE
