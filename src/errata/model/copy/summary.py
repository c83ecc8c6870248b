"""What a run brought to each of its copies, in one row: for reports and evidence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from errata.model.consumer.outbox import Effect, ItemState
from errata.model.consumer.recovery_state import RecoveryItem
from errata.model.copy.delivered_state import DeliveredState, derive_delivered
from errata.model.copy.receipt import is_same_everywhere


@dataclass(frozen=True, slots=True)
class CopyItem:
    """An item for a copy, as the ledger or a bundle has it."""

    seq: int
    copy: str
    partitions: tuple[str, ...]
    state: ItemState
    result: Mapping[str, Any] = field(default_factory=dict)
    ended_at: str | None = None
    last_error: str | None = None
    waived_by: str | None = None
    waived_why: str | None = None


@dataclass(frozen=True, slots=True)
class CopySummary:
    """One copy of a run."""

    copy: str  # warehouse:table
    state: DeliveredState
    partitions: int  # that the run has published or rolled back
    delivered: int  # of them that the copy holds
    missing: tuple[str, ...] = ()
    rows: int | None = None  # by the receipts; None: there is none with rows
    is_same: bool | None = None  # lake and copy, by their checksums; None: nothing was compared
    delivered_at: str | None = None  # the last payment
    seconds: float | None = None  # from the lake's commit until readers of the copy saw it; the longest
    error: str | None = None
    waived_by: str | None = None
    waived_why: str | None = None


def summarize_copies(
    items: Sequence[CopyItem], read_contents: Callable[[str], Mapping[str, Any]]
) -> tuple[CopySummary, ...]:
    """One row for each copy; ``read_contents`` returns the list of partitions of a receipt by its digest."""
    mine = [one for one in items if one.state is not ItemState.VOID]
    names = dict.fromkeys(one.copy for one in mine)
    return tuple(_summarize(name, [one for one in mine if one.copy == name], read_contents) for name in names)


def _summarize(name: str, items: Sequence[CopyItem], read_contents: Callable[[str], Mapping[str, Any]]) -> CopySummary:
    newest: dict[str, CopyItem] = {}
    found: dict[str, tuple[int, bool]] = {}
    for item in sorted(items, key=lambda one: one.seq):
        newest |= dict.fromkeys(item.partitions, item)
        for partition, told in (read_contents(item.result["contents"]) if "contents" in item.result else {}).items():
            found[partition] = told["rows"], is_same_everywhere(told, item.result.get("tolerance"))
    paid = [one for one in items if one.state is ItemState.PAID]
    waits = [one.result["seconds_since_commit"] for one in paid if "seconds_since_commit" in one.result]
    missing = [name for name, one in sorted(newest.items()) if one.state is not ItemState.PAID]
    state = derive_delivered([_to_state_item(one) for one in items]) or DeliveredState.YES
    waived = [one for one in items if one.state is ItemState.WAIVED] if state is DeliveredState.WAIVED else []
    errors = [one.last_error for one in items if one.last_error and one.state in (ItemState.OWED, ItemState.FAILED)]
    return CopySummary(
        copy=name,
        state=state,
        partitions=len(newest),
        delivered=len(newest) - len(missing),
        missing=tuple(missing),
        rows=sum(rows for rows, _ in found.values()) if found else None,
        is_same=all(same for _, same in found.values()) if found else None,
        delivered_at=max((one.ended_at for one in paid if one.ended_at), default=None),
        seconds=max(waits, default=None),
        error=errors[-1] if errors else None,
        waived_by=waived[-1].waived_by if waived else None,
        waived_why=waived[-1].waived_why if waived else None,
    )


def _to_state_item(item: CopyItem) -> RecoveryItem:
    return RecoveryItem(item.seq, Effect.COPY, item.copy, frozenset(item.partitions), item.state)
