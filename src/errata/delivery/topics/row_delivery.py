"""Send the rows that a transform emitted for a backfill topic, as far as their partitions still hold this publication.

Whether they do is read before every few thousand records: after a rollback, rows that were not sent stay here. So do
the rows of partitions that hold rows of a subject who was erased since.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from errata.delivery.topics.topic_items import ATTEMPTS, LEFT_OUT, RECORDS, TOPIC
from errata.errors import EngineError, NotFound
from errata.failpoints import failpoint
from errata.ledger import OutboxItem
from errata.model.consumer.outbox import Failed, Later, Paid, Payment, TryAgain
from errata.model.kafka.declaration import TopicPlace
from errata.model.kafka.outgoing import OutgoingRecord, build_headers
from errata.model.kind import find_kind
from errata.model.manifest import Manifest
from errata.model.refs import emitted_table
from errata.model.side_tables import find_landing_pin
from errata.workspace import Workspace

_DONE = "attempts_sent"
_STEP_SECONDS = 15.0
"""How long a payment lasts until it records how far it has come and lets others have their turn."""
_LOOK_EVERY = 5_000
_UNSETTLED = "a publication or rollback of these partitions that is not settled"
_UNSETTLED_SECONDS = 5.0


def send_rows(workspace: Workspace, manifest: Manifest, item: OutboxItem) -> Payment:
    """Send the rows of one attempt after the other."""
    sink = manifest.sinks[item.consumer]
    place = TopicPlace(str(sink.cluster), str(sink.topic))
    attempts, done = list(item.payload[ATTEMPTS]), int(item.progress.get(_DONE, 0))
    records, left_out = int(item.progress.get(RECORDS, 0)), set(item.progress.get(LEFT_OUT, ()))
    erased = _find_erased(workspace, manifest, item)
    until = time.monotonic() + _STEP_SECONDS
    for attempt in attempts[done:]:
        progress = {_DONE: done, RECORDS: records, LEFT_OUT: sorted(left_out)}
        rows = _SentRows(workspace, manifest, item, attempt, erased)
        try:
            records += workspace.engines.topic_writer.send(place, rows.iterate())
        except _UnsettledError:
            return Later(_UNSETTLED_SECONDS, progress, _UNSETTLED)
        except NotFound as gone:
            return Failed(f"the rows that were emitted are gone: {gone.message}", progress)
        except EngineError as error:
            return TryAgain(error.message, progress)
        done, left_out = done + 1, left_out | rows.left_out
        failpoint("topic.after_chunk")
        if time.monotonic() > until and done < len(attempts):
            return Later(0, {_DONE: done, RECORDS: records, LEFT_OUT: sorted(left_out)})
    return Paid({TOPIC: place.location, RECORDS: records, LEFT_OUT: sorted(left_out)})


def _find_erased(workspace: Workspace, manifest: Manifest, item: OutboxItem) -> frozenset[str]:
    """Partitions of the publication that hold rows of a subject on today's list."""
    suppressions, publication = workspace.engines.suppressions, workspace.ledger.publications.get(str(item.pub_id))
    if not suppressions.watermark(item.table) or publication.result_snapshot_id is None:
        return frozenset()
    held = {publication.result_snapshot_id: item.partitions}
    return frozenset(suppressions.held(item.table, find_landing_pin(manifest), held))


class _UnsettledError(Exception):
    """Nobody knows yet which publication the partitions hold."""


@dataclass
class _SentRows:
    """Rows of one attempt whose partitions hold the publication of the item."""

    workspace: Workspace
    manifest: Manifest
    item: OutboxItem
    attempt: str
    erased: frozenset[str]
    left_out: set[str] = field(default_factory=set)  # partitions with rows that were not sent

    def iterate(self) -> Iterator[OutgoingRecord]:
        """Records to send; raises :class:`_UnsettledError`, and ``NotFound`` if the rows are gone."""
        item, manifest = self.item, self.manifest
        table, mode = emitted_table(manifest.target.table, item.run_id), find_kind(manifest.kind).mode.value
        headers: dict[str, dict[str, str]] = {}
        for batch in self.workspace.engines.emitted.iterate(table, [self.attempt], item.consumer):
            for start in range(0, len(batch), _LOOK_EVERY):
                current = self._find_current()
                for row in batch[start : start + _LOOK_EVERY]:
                    if row.partition not in current:
                        self.left_out |= {row.partition} & set(item.partitions)
                        continue
                    read = row.input_snapshot
                    if read not in headers:
                        headers[read] = build_headers(item.run_id, str(item.pub_id), manifest, mode, read)
                    yield OutgoingRecord(row.key, row.value, headers[read])

    def _find_current(self) -> set[str]:
        """Partitions of the item whose content comes from its publication."""
        ledger, wanted = self.workspace.ledger, set(self.item.partitions)
        if any(wanted.intersection(one.partitions) for one in ledger.publications.list_open(table=self.item.table)):
            raise _UnsettledError
        accepted = ledger.partitions.accepted(self.item.table, self.item.partitions)
        return {name for name, one in accepted.items() if one.origin_pub_id == self.item.pub_id} - self.erased
