"""Pay ``topic``: send what a publication owes to a topic, at least once, each record with the same key.

Which rows are sent was decided with the intent: those of the attempts that were adopted then. Every step that was
confirmed is on record before the next one, so a process that dies repeats one chunk at most.
"""

from __future__ import annotations

from errata.delivery.topics.correction_events import send_corrections
from errata.delivery.topics.row_delivery import send_rows
from errata.delivery.topics.topic_items import ATTEMPTS
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Payment
from errata.workspace import Workspace


def send_to_topic(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Send the rows that were emitted to a sink, or the events of corrections."""
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    return (send_rows if ATTEMPTS in item.payload else send_corrections)(workspace, manifest, item)
