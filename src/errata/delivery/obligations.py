"""Obligations: what a plan, an approval, a publication or a rollback of partitions owes, as the project is now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from errata.delivery.consumer_effects import list_effects
from errata.delivery.consumer_messages import owe_messages
from errata.delivery.stream_checkpoints import owe_checkpoints
from errata.delivery.topics.topic_items import CORRECTIONS, owe_rows
from errata.ledger import RunRecord
from errata.model.consumer.outbox import Effect, Owed
from errata.model.manifest import Manifest
from errata.model.side_tables import is_side_table_mode
from errata.publishing.origins import find_origins
from errata.publishing.readers.ready_table import owe_ready
from errata.workspace import Workspace

PLANNED, APPROVED, PUBLISHED, ROLLED_BACK = "planned", "approved", "published", "rolled_back"
_SHOWN = frozenset({APPROVED, PUBLISHED, ROLLED_BACK})
"""Events that the ready table shows."""


def list_owed(
    workspace: Workspace, run: RunRecord | None, manifest: Manifest, event: str, partitions: Sequence[str]
) -> tuple[Owed, ...]:
    """What this event owes; the items are given to the transaction that records it. Empty for most products.

    There is no run yet when it is planned.
    """
    on_tables = _owed_on_tables(workspace, run, manifest, event, partitions) if run else ()
    return (
        *on_tables,
        *(owe_ready(workspace.project, event) if event in _SHOWN else ()),
        *_owed_to_copies(workspace, manifest, event, partitions),
        *owe_messages(workspace.project, manifest.product, event, partitions),
        *_owed_to_consumers(workspace, manifest, event, partitions),
        *_owed_to_watch(workspace, manifest, event, partitions),
        *owe_checkpoints(workspace, manifest, event),
    )


def list_owed_by_plan(workspace: Workspace, manifest: Manifest) -> tuple[Owed, ...]:
    """What a plan owes, and what its approval owes if it is approved in the same transaction."""
    owed = (list_owed(workspace, None, manifest, event, manifest.partitions) for event in (PLANNED, APPROVED))
    return tuple(one for owes in owed for one in owes)


def _owed_to_watch(workspace: Workspace, manifest: Manifest, event: str, partitions: Sequence[str]) -> Iterator[Owed]:
    """A look at the neighbours of a publication."""
    product = workspace.project.products.get(manifest.product)
    if event == PUBLISHED and product is not None and product.watch is not None:
        yield Owed(Effect.WATCH, event, partitions=tuple(partitions))


def _owed_on_tables(
    workspace: Workspace, run: RunRecord, manifest: Manifest, event: str, partitions: Sequence[str]
) -> Iterator[Owed]:
    """Correction rows, rows for topics, and the view of current output."""
    publish = manifest.publish
    if event not in (PUBLISHED, ROLLED_BACK):
        return
    if publish.corrections and not is_side_table_mode(publish):
        payload: dict[str, Any] = {"table": publish.corrections}
        if event == ROLLED_BACK:
            payload["reverses"] = find_origins(workspace, run, partitions)
        yield Owed(Effect.CORRECTIONS, event, partitions=tuple(partitions), payload=payload)
    if publish.corrections_topic is not None:
        reverses = {"reverses": find_origins(workspace, run, partitions)} if event == ROLLED_BACK else {}
        yield Owed(Effect.TOPIC, event, CORRECTIONS, tuple(partitions), reverses)
    yield from owe_rows(workspace, run, manifest, event, partitions)
    if publish.view:
        # the view shows the whole table
        yield Owed(Effect.VIEW, event, payload={"view": publish.view})


def _owed_to_copies(workspace: Workspace, manifest: Manifest, event: str, partitions: Sequence[str]) -> Iterator[Owed]:
    """Deliveries to the copies that the product file declares now."""
    product = workspace.project.products.get(manifest.product)
    if event not in (PUBLISHED, ROLLED_BACK) or product is None or is_side_table_mode(manifest.publish):
        return
    for copy in product.target.copies:
        yield Owed(Effect.COPY, event, copy.name, tuple(partitions))


def _owed_to_consumers(
    workspace: Workspace, manifest: Manifest, event: str, partitions: Sequence[str]
) -> Iterator[Owed]:
    """Refreshes and moves of watermarks, for the consumers that errata.yaml declares now."""
    if event not in (PUBLISHED, ROLLED_BACK):
        return
    for consumer in workspace.project.list_consumers(manifest.product):
        for effect in list_effects(consumer):
            yield Owed(effect, event, consumer.name, tuple(partitions))
