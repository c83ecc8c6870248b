"""The clock of ``recover_within``: it starts with the snapshot, and a breach is on record once."""

from __future__ import annotations

from datetime import datetime

from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.recovery_state import RecoveryClock
from errata.model.manifest import Manifest
from errata.model.side_tables import find_landing_pin
from errata.workspace import Workspace

LATE = "recovery.late"
"""Audit action: a consumer did not show in time what was published."""


def find_clock(workspace: Workspace, item: OutboxItem, manifest: Manifest, within_seconds: int) -> RecoveryClock:
    """The clock of an item; where the snapshot has expired, it starts when its publication was settled."""
    publication = workspace.ledger.publications.get(item.pub_id or "")
    snapshot = publication.result_snapshot_id
    table = find_landing_pin(manifest).table
    commits = workspace.engines.history.find_commits(table, [snapshot]) if snapshot else {}
    if snapshot and snapshot in commits:
        return RecoveryClock(commits[snapshot].at_ms, within_seconds)
    settled = datetime.fromisoformat(publication.settled_at or item.at)
    return RecoveryClock(int(settled.timestamp() * 1000), within_seconds)


def note_breach(workspace: Workspace, actor: Actor, item: OutboxItem, consumer: Consumer, manifest: Manifest) -> bool:
    """Put it on record, once, that the consumer's time is over; returns whether it is over."""
    if consumer.recover_within_seconds is None or item.pub_id is None:
        return False
    clock = find_clock(workspace, item, manifest, consumer.recover_within_seconds)
    if clock.seconds_left(workspace.ledger.now_ms()) >= 0:
        return False
    known = workspace.ledger.audit.readable_entries(item.run_id, actions=(LATE,))
    if not any(entry.body["key"] == item.key for entry in known):
        body = {"key": item.key, "consumer": consumer.name, "within_seconds": consumer.recover_within_seconds}
        workspace.ledger.audit.note(item.run_id, actor, LATE, body)
    return True
