"""What a publication or rollback owes to topics, and what of it is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from errata.gate.row_accounts import list_adopted_attempts
from errata.ledger import OutboxItem, RunRecord
from errata.model.consumer.outbox import Effect, ItemState, Owed
from errata.model.manifest import Manifest
from errata.model.partition import format_ranges
from errata.model.product.sinks import SEND
from errata.ports.compute import ROWS_EMITTED
from errata.text.numbers import plural
from errata.workspace import Workspace

ATTEMPTS = "attempts"
"""Key of the payload: the adopted attempts whose rows are sent, in this order."""
CORRECTIONS = "publish.corrections"
"""The receiver of correction events; no sink can have this name."""
RECORDS, LEFT_OUT, TOPIC = "records", "left_out", "topic"
"""Keys of progress and result: records that were confirmed, and partitions that were not sent."""


def owe_rows(
    workspace: Workspace, run: RunRecord, manifest: Manifest, event: str, partitions: Sequence[str]
) -> Iterator[Owed]:
    """Rows that the transform emitted for these partitions; a sink without any owes nothing."""
    sinks = [name for name, sink in manifest.sinks.items() if sink.decision == SEND]
    if not sinks or event != "published":
        return
    wanted = set(partitions)
    adopted = [one for one in list_adopted_attempts(workspace, run.run_id) if wanted.intersection(one.partitions)]
    for name in sinks:
        found = [one.attempt_id for one in adopted if int(one.cost.get(f"{ROWS_EMITTED}:{name}", 0))]
        if found:
            yield Owed(Effect.TOPIC, event, name, tuple(partitions), {ATTEMPTS: found})


def list_topic_items(workspace: Workspace, pub_id: str) -> tuple[OutboxItem, ...]:
    """What a publication owes, or has paid, to topics."""
    return tuple(one for one in workspace.ledger.outbox.list(pub_id=pub_id) if one.effect is Effect.TOPIC)


def list_sent(workspace: Workspace, manifest: Manifest, pub_ids: Sequence[str], scope: Sequence[str]) -> list[str]:
    """A line for each sink whose topic has rows of these partitions, which stay there after a rollback."""
    lines = []
    for item in (one for pub_id in pub_ids for one in list_topic_items(workspace, pub_id)):
        known = item.result if item.state is ItemState.PAID else item.progress
        names = [name for name in scope if name in item.partitions and name not in known.get(LEFT_OUT, ())]
        if item.consumer == CORRECTIONS or not names or not known.get(RECORDS):
            continue
        shown, place = format_ranges(manifest.target.grain, names), manifest.sinks[item.consumer].place
        lines.append(
            f"{place} has {plural(int(known[RECORDS]), 'record')} of {item.pub_id}, with rows of {shown}; they stay "
            "there after the rollback, so tell the consumers of the topic"
        )
    return lines
