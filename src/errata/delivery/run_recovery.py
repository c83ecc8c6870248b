"""The state of recovery of a run: what its items say about each consumer. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from errata.delivery.recovery_breaches import LATE
from errata.delivery.recovery_clock import find_clock
from errata.ledger import OutboxItem, RunRecord
from errata.model.consumer.outbox import ItemState
from errata.model.consumer.recovery_state import RecoveryClock, RecoveryItem, RecoveryState, derive_recovery
from errata.model.manifest import Manifest
from errata.views.recovery_line import RecoveryLine
from errata.workspace import Workspace

_PENDING = (ItemState.CONDITIONAL, ItemState.OWED, ItemState.FAILED)


def list_recovery_items(workspace: Workspace, run_id: str) -> tuple[OutboxItem, ...]:
    """Items of a run that reach its consumers, oldest first; void ones left out."""
    items = workspace.ledger.outbox.list(run_id=run_id)
    return tuple(one for one in items if one.effect.reaches_consumer and one.state is not ItemState.VOID)


def derive_run_recovery(items: Iterable[OutboxItem]) -> RecoveryState | None:
    """The state of recovery by these items."""
    return derive_recovery([_to_recovery_item(one) for one in items])


def recovery_lines(
    workspace: Workspace, run: RunRecord, manifest: Manifest, items: Sequence[OutboxItem]
) -> tuple[RecoveryLine, ...]:
    """One line for each consumer, in the order in which they were first owed something."""
    if not items:
        return ()
    entries = workspace.ledger.audit.readable_entries(run.run_id, actions=(LATE,))
    late = {str(entry.body["consumer"]) for entry in entries}
    names = dict.fromkeys(one.consumer for one in items)
    return tuple(
        _build_line(workspace, manifest, name, [one for one in items if one.consumer == name], is_late=name in late)
        for name in names
    )


def _build_line(
    workspace: Workspace, manifest: Manifest, name: str, items: Sequence[OutboxItem], *, is_late: bool
) -> RecoveryLine:
    state = derive_run_recovery(items) or RecoveryState.RECOVERED
    clock = _find_first_clock(workspace, manifest, items)
    left = int(clock.seconds_left(workspace.ledger.now_ms())) if clock else None
    waived = [one for one in items if one.state is ItemState.WAIVED] if state is RecoveryState.WAIVED else []
    errors = [one.last_error for one in items if one.state in _PENDING and one.last_error]
    waits = [one.waits for one in items if one.waits]
    return RecoveryLine(
        consumer=name,
        state=state.value,
        due=_to_instant(clock.until_ms) if clock else None,
        seconds_left=left,
        is_late=is_late or (left is not None and left < 0),
        error=errors[-1] if errors else None,
        waits=waits[-1] if waits and not errors else None,
        waived_by=waived[-1].waived_by if waived else None,
        waived_why=waived[-1].waived_why if waived else None,
    )


def _find_first_clock(workspace: Workspace, manifest: Manifest, items: Sequence[OutboxItem]) -> RecoveryClock | None:
    """The clock that ends first, of what is not paid."""
    consumer = workspace.project.consumers.get(items[0].consumer)
    if consumer is None or consumer.recover_within_seconds is None:
        return None
    waiting = [one for one in items if one.state in _PENDING and one.pub_id is not None]
    clocks = (find_clock(workspace, one, manifest, consumer.recover_within_seconds) for one in waiting)
    return min(clocks, key=lambda clock: clock.until_ms, default=None)


def _to_recovery_item(item: OutboxItem) -> RecoveryItem:
    return RecoveryItem(item.seq or 0, item.effect, item.consumer, frozenset(item.partitions), item.state)


def _to_instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
