"""Messages about recovery: a consumer failed, is late, or all consumers of a publication show what was published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.delivery.consumer_messages import owe_messages
from errata.delivery.recovery_clock import find_commit_time
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Owed
from errata.workspace import Workspace

RECOVERED, FAILED = "recovered", "failed"


def owe_failure(workspace: Workspace, item: OutboxItem, told: Mapping[str, Any]) -> tuple[Owed, ...]:
    """The message to a consumer that is not served, if it wants one; ``told`` is what went wrong."""
    if not item.effect.reaches_consumer:
        return ()
    product = workspace.ledger.runs.get(item.run_id).product
    payload = {"item": item.item_id, **told}
    return owe_messages(workspace.project, product, FAILED, item.partitions, consumer=item.consumer, payload=payload)


def owe_recovery(workspace: Workspace, actor: Actor, item: OutboxItem) -> tuple[Owed, ...]:
    """Messages to all consumers that want to know when the publication of this item has reached everybody."""
    if not item.effect.reaches_consumer or item.pub_id is None:
        return ()
    run, publication = workspace.ledger.runs.get(item.run_id), workspace.ledger.publications.get(item.pub_id)
    owed = owe_messages(workspace.project, run.product, RECOVERED, publication.partitions)
    if not owed:
        return ()
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    seconds = max(0, (workspace.ledger.now_ms() - find_commit_time(workspace, publication, manifest)) // 1000)
    return owe_messages(workspace.project, run.product, RECOVERED, publication.partitions, payload={"seconds": seconds})
