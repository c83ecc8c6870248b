"""`errata run` of a repair of copies: what is replaced is owed when the run starts, and paid as every delivery is.

Nothing is computed, and the lake gets no commit. A process that dies leaves the items owed, with a marker in the
warehouse for each attempt; repeating the command, or `errata deliver`, continues.
"""

from __future__ import annotations

from errata.approval.quorum import require_approvals
from errata.delivery.copies.copy_delivery import CODE, PARTITIONS, REPAIR
from errata.delivery.copies.run_copies import list_copy_items
from errata.delivery.payment import pay
from errata.errors import CopyChanged
from errata.failpoints import failpoint
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState, Owed
from errata.model.run import RunState
from errata.planning.plan_command import format_plan_command
from errata.planning.request import Request
from errata.workspace import RunContext, Workspace

REPAIRED = "repaired"
S = RunState


def repair_copies(context: RunContext) -> RunContext:
    """Start the run if it is approved, pay what it owes, and end it when all copies hold what is accepted."""
    if context.run.state not in (S.RUNNING, S.PUBLISHED):
        if context.run.state is S.APPROVED:
            require_approvals(context, "run")
        owes = [
            Owed(Effect.COPY, REPAIRED, one.copy, one.partitions, {REPAIR: one.contents})
            for one in context.manifest.repairs
        ]
        context.ledger.runs.move(context.run_id, S.RUNNING, actor=context.actor, expect={S.APPROVED}, owes=owes)
        failpoint("run.after_start")
    for warning in pay(context.workspace, context.actor, run_id=context.run_id, settle=False).warnings:
        context.workspace.narrate(f"WARNING: {warning}")
    context = context.reload()
    items = list_copy_items(context.workspace, context.run_id)
    if context.run.state is S.RUNNING and items and all(one.state is ItemState.PAID for one in items):
        # readers of the copies see it; the lake has no commit of this run, and no partition becomes its own
        told = {"copies": [one.copy for one in context.manifest.repairs]}
        for state in (S.PUBLISHING, S.PUBLISHED):
            context.ledger.runs.move(context.run_id, state, actor=context.actor, body=told)
        context = context.reload()
    refuse_changed_copies(context, items)
    return context


def refuse_changed_copies(context: RunContext, items: tuple[OutboxItem, ...]) -> None:
    """Raise a conflict if what was planned is not what a copy holds, or not what is accepted."""
    failed = [one for one in items if one.state is ItemState.FAILED and one.progress.get(CODE) == CopyChanged.code]
    if not failed:
        return
    manifest = context.manifest
    asked = Request(
        manifest.product, manifest.reason, "", partitions=manifest.partitions, kind=manifest.kind, copies=(),
        supersede=context.run_id,
    )  # fmt: skip
    raise CopyChanged(
        f"the repair {context.run_id} was refused: {failed[0].last_error}",
        state="nothing was written",
        hint=f"errata cancel {context.run_id}; then {format_plan_command(asked)}",
        partitions=list(failed[0].progress.get(PARTITIONS, [])),
    )


def end_repairs(workspace: Workspace, actor: Actor, run_id: str, why: str) -> None:
    """Give up what a cancelled repair of copies still owes, and nothing that a publication owes them."""
    for item in list_copy_items(workspace, run_id):
        if item.is_open and REPAIR in item.payload:
            workspace.ledger.outbox.waive(item.item_id, why, actor, alone=True)
