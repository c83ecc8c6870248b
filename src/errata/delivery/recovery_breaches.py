"""Breaches of ``recover_within``: on record once, with a message."""

from __future__ import annotations

from errata.delivery.recovery_clock import find_clock
from errata.delivery.recovery_messages import owe_failure
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.declaration import Consumer
from errata.model.manifest import Manifest
from errata.text.numbers import format_duration
from errata.workspace import Workspace

LATE = "recovery.late"
"""Audit action: a consumer did not show in time what was published."""


def note_breach(workspace: Workspace, actor: Actor, item: OutboxItem, consumer: Consumer, manifest: Manifest) -> None:
    """Put it on record, once, that a consumer does not show in time what was published."""
    within = consumer.recover_within_seconds
    if within is None or item.pub_id is None:
        return
    clock = find_clock(workspace, item, manifest, within)
    if clock.seconds_left(workspace.ledger.now_ms()) >= 0:
        return
    known = workspace.ledger.audit.readable_entries(item.run_id, actions=(LATE,))
    if any(entry.body["key"] == item.key for entry in known):
        return
    problem = f"{consumer.name} does not show it {format_duration(within)} after the publication"
    # the message first: it has a key of its own and is owed only once, also if this process dies before the entry
    workspace.ledger.outbox.owe(
        item.run_id, f"{item.key}/late", owe_failure(workspace, item, {"problem": problem}), actor
    )
    body = {"key": item.key, "consumer": consumer.name, "within_seconds": within, "due_ms": clock.until_ms}
    workspace.ledger.audit.note(item.run_id, actor, LATE, body)


def note_breaches(workspace: Workspace, actor: Actor, *, table: str | None = None, run_id: str | None = None) -> None:
    """Put breaches of everything that is owed or failed on record."""
    consumers = workspace.project.consumers
    if all(one.recover_within_seconds is None for one in consumers.values()):
        return
    for item in workspace.ledger.outbox.list_open(table=table, run_id=run_id):
        if item.effect.reaches_consumer and item.consumer in consumers:
            manifest = workspace.ledger.runs.manifest(item.run_id, actor)
            note_breach(workspace, actor, item, consumers[item.consumer], manifest)
