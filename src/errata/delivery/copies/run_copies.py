"""What a run owes its copies, and what became of it. Reads only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from errata.delivery.copies.copy_delivery import CODE, REPAIR
from errata.ledger import OutboxItem, RunRecord
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.consumer.recovery_state import RecoveryItem
from errata.model.copy.delivered_state import DeliveredState, derive_delivered
from errata.model.copy.summary import CopyItem, CopySummary, summarize_copies
from errata.model.partition import Grain, sort_oldest_first
from errata.views.copies import CopyLine, PartitionCopy
from errata.workspace import Workspace

_WORDS = {DeliveredState.YES: "delivered"}
_ITEM_WORDS = {
    ItemState.PAID: "delivered",
    ItemState.FAILED: DeliveredState.FAILED.value,
    ItemState.WAIVED: DeliveredState.WAIVED.value,
}
_MISSING = (ItemState.CONDITIONAL, ItemState.OWED, ItemState.FAILED, ItemState.WAIVED)


def list_copy_items(workspace: Workspace, run_id: str) -> tuple[OutboxItem, ...]:
    """Items of a run for copies, oldest first; void ones left out."""
    items = workspace.ledger.outbox.list(run_id=run_id)
    return tuple(one for one in items if one.effect is Effect.COPY and one.state is not ItemState.VOID)


def derive_run_delivered(items: Iterable[OutboxItem]) -> DeliveredState | None:
    """Whether all copies of the run have what it published."""
    return derive_delivered([_to_state_item(one) for one in items])


def run_copy_lines(workspace: Workspace, run: RunRecord) -> tuple[CopyLine, ...]:
    """One line for each copy that the run owes something."""
    return copy_lines(workspace, run.product, list_copy_items(workspace, run.run_id))


def copy_lines(workspace: Workspace, product: str, items: Sequence[OutboxItem]) -> tuple[CopyLine, ...]:
    """One line for each copy, in the order in which they were first owed something."""
    declared = workspace.project.products.get(product)
    required = {copy.name for copy in declared.target.copies if copy.required} if declared else set()
    grain = declared.target.grain if declared else Grain.VALUE
    names = dict.fromkeys(one.consumer for one in items)
    return tuple(
        _build_line(name, grain, [one for one in items if one.consumer == name], is_required=name in required)
        for name in names
    )


def summarize_run_copies(workspace: Workspace, run_id: str) -> tuple[CopySummary, ...]:
    """One row for each copy, with what its receipts say."""

    def read_contents(digest: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(workspace.ledger.parts.get(digest))
        return found

    items = [
        CopyItem(
            one.seq or 0, one.consumer, one.partitions, one.state, one.result, one.ended_at, one.last_error,
            one.waived_by, one.waived_why,
        )
        for one in list_copy_items(workspace, run_id)
    ]  # fmt: skip
    return summarize_copies(items, read_contents)


def list_partition_copies(workspace: Workspace, table: str, partition: str) -> tuple[PartitionCopy, ...]:
    """Whether each copy got what is accepted for a partition: by the newest item that is about it."""
    newest: dict[str, OutboxItem] = {}
    for item in workspace.ledger.outbox.list(table=table):
        # a planned repair that was given up says nothing about what was delivered before
        is_over = item.state is ItemState.VOID or (item.state is ItemState.WAIVED and REPAIR in item.payload)
        if item.effect is Effect.COPY and not is_over and partition in item.partitions:
            newest[item.consumer] = max(newest.get(item.consumer, item), item, key=lambda one: one.seq or 0)
    return tuple(_describe_partition(item) for item in newest.values())


def _describe_partition(item: OutboxItem) -> PartitionCopy:
    warehouse, _, table = item.consumer.partition(":")
    state = _ITEM_WORDS.get(item.state, DeliveredState.PENDING.value)
    error = item.last_error if item.is_open else None
    return PartitionCopy(
        warehouse, table, state, item.run_id, item.ended_at, error, item.waived_by, item.waived_why
    )  # fmt: skip


def _build_line(name: str, grain: Grain, items: Sequence[OutboxItem], *, is_required: bool) -> CopyLine:
    warehouse, _, table = name.partition(":")
    state = derive_run_delivered(items) or DeliveredState.YES
    paid = [one.ended_at for one in items if one.state is ItemState.PAID and one.ended_at]
    waived = [one for one in items if one.state is ItemState.WAIVED] if state is DeliveredState.WAIVED else []
    troubled = [one for one in items if one.is_open and one.last_error]
    return CopyLine(
        warehouse=warehouse,
        table=table,
        state=_WORDS.get(state, state.value),
        partitions=sort_oldest_first(grain, {part for one in items for part in one.partitions}),
        delivered_at=max(paid, default=None) if state is DeliveredState.YES else None,
        required=is_required,
        missing=() if state is DeliveredState.YES else _list_missing(grain, items),
        error=troubled[-1].last_error if troubled else None,
        code=troubled[-1].progress.get(CODE) if troubled else None,
        waived_by=waived[-1].waived_by if waived else None,
        waived_why=waived[-1].waived_why if waived else None,
    )


def _list_missing(grain: Grain, items: Sequence[OutboxItem]) -> tuple[str, ...]:
    """Partitions whose newest item is not paid."""
    newest: dict[str, OutboxItem] = {}
    for one in sorted(items, key=lambda item: item.seq or 0):
        newest |= dict.fromkeys(one.partitions, one)
    return sort_oldest_first(grain, [name for name, one in newest.items() if one.state in _MISSING])


def _to_state_item(item: OutboxItem) -> RecoveryItem:
    return RecoveryItem(item.seq or 0, item.effect, item.consumer, frozenset(item.partitions), item.state)
