"""`errata outbox`: what is owed, and what people decide about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from errata.approval.permissions import require_person, require_role
from errata.delivery.copies.copy_delivery import CODE
from errata.errors import NotFound, UsageError
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import NEXT, ItemState
from errata.model.product import Role
from errata.publishing.readers.ready_table import owe_ready
from errata.text.escape import require_reason
from errata.views.outbox import OutboxDecisionView, OutboxItemView, OutboxView
from errata.workspace import Workspace

_SHOWN = (ItemState.OWED, ItemState.PAID, ItemState.FAILED, ItemState.WAIVED)
_RETRIERS = (Role.OPERATOR, Role.PUBLISHER)
_WAIVERS = (Role.PUBLISHER, Role.APPROVER)


def show_outbox(workspace: Workspace, run_id: str | None, *, all_items: bool) -> OutboxView:
    """Items that are owed or failed, of a run or of all; with ``all_items`` also those that are paid or waived."""
    return workspace.ledger.read_together(lambda: _show_outbox(workspace, run_id, all_items=all_items))


def _show_outbox(workspace: Workspace, run_id: str | None, *, all_items: bool) -> OutboxView:
    run = workspace.ledger.runs.get(run_id).run_id if run_id else None
    states = _SHOWN if all_items else (ItemState.OWED, ItemState.FAILED)
    items = workspace.ledger.outbox.list(run_id=run, states=states)
    return OutboxView(item_views(workspace, items), run, all_items, next=suggest_payment(items, run or ""))


def retry_items(
    workspace: Workspace, actor: Actor, item_ids: Iterable[str | int], *, failed: bool = False
) -> OutboxDecisionView:
    """Let these items, or all that failed, be tried at once, with all attempts again."""
    require_role(workspace, actor, _RETRIERS, "outbox retry")
    ids = {_parse_id(one) for one in item_ids}
    if bool(ids) == failed:
        raise UsageError(
            "outbox retry was refused; expected ids of items, or --failed for all that failed",
            state="nothing was changed",
            hint="errata outbox",
        )
    if failed:
        ids = {item.item_id for item in workspace.ledger.outbox.list(states=[ItemState.FAILED])}
    items = workspace.ledger.outbox.retry(ids, actor) if ids else ()
    return OutboxDecisionView("retry", item_views(workspace, items), next=suggest_payment(items))


def waive_item(
    workspace: Workspace, actor: Actor, item_id: str | int, reason: str, *, ready: bool = False
) -> OutboxDecisionView:
    """Give up paying an item; what it would have brought about stays undone, and the record says who decided that."""
    number = _parse_id(item_id)
    require_reason("outbox waive", reason, f"errata outbox waive {number}")
    item = workspace.ledger.outbox.get(number)
    require_role(workspace, actor, _WAIVERS, "outbox waive", item.run_id, persons=True)
    require_person(workspace, actor, _WAIVERS, "outbox waive", item.run_id)
    # the ready table has to say so
    owes = owe_ready(workspace.project, "waived") if ready else ()
    items, already = workspace.ledger.outbox.waive(number, reason, actor, ready=ready, owes=owes)
    steps = (f"errata deliver {item.run_id}",) if owes and not already else (f"errata status {item.run_id}",)
    return OutboxDecisionView("waive", item_views(workspace, items), already, steps)


def item_views(workspace: Workspace, items: Collection[OutboxItem]) -> tuple[OutboxItemView, ...]:
    """Items as they are shown."""
    now_ms = workspace.ledger.now_ms() if items else 0
    return tuple(_item_view(item, now_ms) for item in items)


def list_decisive(items: Iterable[OutboxItem]) -> list[OutboxItem]:
    """Items that decide what to do next about a run."""
    return [item for item in items if item.effect.concerns_data]


def suggest_payment(items: Iterable[OutboxItem], run_id: str = "") -> tuple[str, ...]:
    """Commands that pay what is owed, that let failed items be tried again, and that decide what only a person can."""
    found = list(items)
    failed = [item for item in found if item.state is ItemState.FAILED]
    steps = list(dict.fromkeys(str(item.progress[NEXT]) for item in failed if NEXT in item.progress))
    ids = [str(item.item_id) for item in failed if NEXT not in item.progress]
    if ids:
        steps.append(f"errata outbox retry {' '.join(ids)}" if len(ids) <= 3 else "errata outbox retry --failed")
    owed = any(item.state is ItemState.OWED and item.effect.is_debt for item in found)
    return (*steps, *([f"errata deliver {run_id}".strip()] if owed else []))


def _item_view(item: OutboxItem, now_ms: int) -> OutboxItemView:
    since = datetime.fromisoformat(item.owed_at or item.at)
    waits = item.state is ItemState.OWED and item.not_before > now_ms
    return OutboxItemView(
        id=str(item.item_id),
        kind=item.effect.value,
        consumer=item.consumer,
        run_id=item.run_id,
        state=item.state.value,
        attempts=item.attempts,
        last_error=item.last_error,
        event=item.event,
        key=item.key,
        table=item.table,
        partitions=item.partitions,
        owed_at=item.owed_at or item.at,
        age_seconds=max(0, int(now_ms / 1000 - since.timestamp())),
        next_at=datetime.fromtimestamp(item.not_before / 1000, UTC).isoformat(timespec="seconds") if waits else None,
        ended_at=item.ended_at,
        waived_by=item.waived_by,
        waived_why=item.waived_why,
        waived_ready=item.waived_ready,
        waits=item.waits or None,
        code=item.progress.get(CODE) if item.is_open else None,
    )


def _parse_id(text: str | int) -> int:
    if not str(text).isdecimal():
        raise NotFound(
            f"there is no item {text} in the outbox; expected a number", state="nothing was changed",
            hint="errata outbox --all",
        )  # fmt: skip
    return int(text)
