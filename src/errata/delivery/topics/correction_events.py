"""Send correction rows as events, after they are in the table of corrections.

What goes out is decided once, before the first event, and recorded: the corrections of a partition that was rolled back
before any of them was sent stay here, and so does their reverse. Everything else is sent in the order of the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from errata.canonical import digest_of
from errata.delivery.topics.topic_items import CORRECTIONS, LEFT_OUT, RECORDS, TOPIC, list_topic_items
from errata.errors import EngineError
from errata.failpoints import failpoint
from errata.ledger import OutboxItem, PartitionState
from errata.model.consumer.outbox import Effect, ItemState, Later, Paid, Payment, TryAgain
from errata.model.kafka.outgoing import OutgoingRecord, build_headers, describe_inputs
from errata.model.kind import find_kind
from errata.model.manifest import Manifest
from errata.model.side_tables import is_side_table_mode
from errata.ports.outgoing_rows import NOTHING_SENT
from errata.workspace import Workspace

_WAIT_SECONDS = 10.0


def send_corrections(workspace: Workspace, manifest: Manifest, item: OutboxItem) -> Payment:
    """Send one event for each correction row of the publication."""
    place, table = manifest.publish.corrections_topic, str(manifest.publish.corrections)
    assert place is not None  # noqa: S101 - such a manifest owes no such item
    if LEFT_OUT not in item.progress:
        if (lost := _find_missing_rows(workspace, manifest, item)) is not None:
            return lost
        return Later(0, {LEFT_OUT: sorted(_choose_left_out(workspace, item))})
    left_out = set(item.progress[LEFT_OUT])
    try:
        records = workspace.engines.topic_writer.send(place, _iterate_events(workspace, manifest, item, left_out))
    except EngineError as error:
        # as long as nothing went out, the next attempt decides again
        return TryAgain(error.message, {} if error.fields.get(NOTHING_SENT) else item.progress)
    failpoint("topic.after_chunk")
    return Paid({TOPIC: place.location, RECORDS: records, LEFT_OUT: sorted(left_out), "table": table})


def _find_missing_rows(workspace: Workspace, manifest: Manifest, item: OutboxItem) -> Payment | None:
    """What to do while the table has no rows of this publication; None if it has them."""
    if is_side_table_mode(manifest.publish):
        return None  # the publication itself wrote them
    items = workspace.ledger.outbox.list(pub_id=item.pub_id)
    rows = next((one for one in items if one.effect is Effect.CORRECTIONS), None)
    if rows is None or rows.state is ItemState.WAIVED or "lost" in rows.result:
        why = "its correction rows were waived" if rows else "no correction rows were owed"
        told = str(rows.result.get("lost", why)) if rows else why
        return Paid({RECORDS: 0, LEFT_OUT: sorted(item.partitions), "lost": told})
    if rows.state is not ItemState.PAID:
        return Later(_WAIT_SECONDS, item.progress, f"the rows in {manifest.publish.corrections}")
    return None


def _choose_left_out(workspace: Workspace, item: OutboxItem) -> set[str]:
    if item.event == "published":
        states = workspace.ledger.partitions.states(item.run_id)
        return {name for name in item.partitions if states.get(name) is PartitionState.ROLLED_BACK}
    left: set[str] = set()
    for pub_id, partitions in item.payload["reverses"].items():
        known = next((one for one in list_topic_items(workspace, pub_id) if one.consumer == CORRECTIONS), None)
        told = {} if known is None else known.result if known.state is ItemState.PAID else known.progress
        # without a decision on record no event went out, so there is none to reverse
        left |= set(partitions) & set(told.get(LEFT_OUT, partitions))
    return left


def _iterate_events(
    workspace: Workspace, manifest: Manifest, item: OutboxItem, left_out: set[str]
) -> Iterator[OutgoingRecord]:
    mode, read = find_kind(manifest.kind).mode.value, describe_inputs(manifest.inputs)
    headers = build_headers(item.run_id, str(item.pub_id), manifest, mode, read)
    for row in workspace.engines.rows.iterate_corrections(str(manifest.publish.corrections), str(item.pub_id)):
        if row["partition"] not in left_out:
            yield _build_event(row, headers)


def _build_event(row: Mapping[str, Any], headers: Mapping[str, str]) -> OutgoingRecord:
    told = {**row, "old": _parse(row["old"]), "new": _parse(row["new"])}
    told["id"] = digest_of([row["publication_id"], row["key"], row["kind"], row["old"], row["new"]])
    return OutgoingRecord(_write(row["key"]), _write(told), headers)


def _parse(text: str | None) -> Any:
    return None if text is None else json.loads(text, parse_float=str)


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
