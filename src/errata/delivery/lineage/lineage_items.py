"""Which audit entries owe lineage, and which stretch of a run's entries an item is about.

An item has no events in it: they are written from the record when it is paid. It names the last entry that it is about;
the first is the one behind the last entry of the item before. So every moment is in exactly one item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from errata.ledger import OutboxItem
from errata.model.audit import AuditEntry
from errata.model.consumer.outbox import Effect, Owed
from errata.model.lineage.moments import Moment, has_moment, is_chunk_end, list_moments
from errata.workspace import Workspace

UNTIL = "until"
"""Key of the payload: number of the last audit entry that the item is about."""
_CHUNKS_EVERY_SECONDS = 60.0


@dataclass(slots=True)
class LineageRule:
    """Owes one item for each transaction that has a moment in it.

    Chunks end by the thousand, so their events are owed together: with the first one that ends a minute after the last
    item of this process, or with the next change of the run.
    """

    _last: dict[str, datetime] = field(default_factory=dict)

    def choose(self, entries: Sequence[AuditEntry]) -> Iterator[tuple[AuditEntry, Owed]]:
        """The items that the entries of a transaction owe, at most one for each run."""
        by_run: dict[str, list[AuditEntry]] = {}
        for entry in entries:
            if entry.run_id is not None and has_moment(entry):
                by_run.setdefault(entry.run_id, []).append(entry)
        for run_id, found in by_run.items():
            if self._is_due(run_id, found):
                yield found[-1], Owed(Effect.LINEAGE, _name_event(found[-1]), payload={UNTIL: found[-1].seq})

    def _is_due(self, run_id: str, found: Sequence[AuditEntry]) -> bool:
        at = datetime.fromisoformat(found[-1].at)
        if all(is_chunk_end(entry) for entry in found):
            last = self._last.setdefault(run_id, at)
            if (at - last).total_seconds() < _CHUNKS_EVERY_SECONDS:
                return False
        self._last[run_id] = at
        return True


def _name_event(entry: AuditEntry) -> str:
    """What the item is called on screens.

    >>> from errata.model.audit import Actor
    >>> _name_event(AuditEntry(1, "", "", "", Actor("", "", ""), "publish.committed", "bf-1", {}))
    'publish_committed'
    """
    return entry.action.replace(".", "_")


def list_item_moments(workspace: Workspace, item: OutboxItem) -> tuple[Moment, ...]:
    """The moments that an item is about."""
    until, ledger = int(item.payload[UNTIL]), workspace.ledger
    ends = [int(one.payload[UNTIL]) for one in ledger.outbox.list(run_id=item.run_id) if one.effect is Effect.LINEAGE]
    after = max((seq for seq in ends if seq < until), default=0)
    return list_moments(ledger.audit.entries(item.run_id), after, until)
