"""`errata consumers check`: what a publication of a product does to its consumers. Starts no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from errata.errors import ErrataError
from errata.ledger import OutboxItem
from errata.model.consumer.declaration import Consumer
from errata.model.consumer.effect import (
    STREAM,
    ConsumerEffect,
    describe_repair,
    find_operation,
    judge_consumer,
    judge_watermark,
)
from errata.model.consumer.outbox import Effect
from errata.model.consumer.stream import OVERWRITE
from errata.model.consumer.watermark import has_read
from errata.model.partition import Grain, format_ranges
from errata.model.product import Product
from errata.model.side_tables import is_side_table_mode
from errata.planning.request import resolve_scope
from errata.publishing.streams.positions import find_location, read_stream
from errata.views.consumers import ConsumerEffectView, ConsumersView
from errata.workspace import Workspace

_SHOWN = 6
"""Maximum number of partition ranges in a sentence."""


def check_consumers(
    workspace: Workspace, name: str, start: str | None, end: str | None, partitions: str | Sequence[str] | None
) -> ConsumersView:
    """What a publication of these partitions, or of any that have rows, does to each consumer of the product."""
    product = workspace.product(name)
    scope = resolve_scope(product.target.grain, start, end, partitions)
    operation = _find_operation(workspace, product, scope)
    told = format_ranges(product.target.grain, scope, _SHOWN) if scope else "the corrected partitions"
    consumers = workspace.project.list_consumers(name)
    return ConsumersView(
        product=name,
        table=product.target.table,
        grain=product.target.grain.value,
        operation=operation,
        partitions=scope or (),
        consumers=tuple(_check_consumer(workspace, one, product, operation, scope or (), told) for one in consumers),
    )


def _find_operation(workspace: Workspace, product: Product, scope: Sequence[str] | None) -> str:
    if is_side_table_mode(product.publish):
        return ""
    if scope is None and product.publish.mode != "append":
        return OVERWRITE
    target = product.target
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, scope or ())
    return find_operation(removes=bool(state.shared_files) or any(state.expected.values()), adds=True)


def _check_consumer(
    workspace: Workspace,
    consumer: Consumer,
    product: Product,
    operation: str,
    partitions: Sequence[str],
    scope: str,
) -> ConsumerEffectView:
    table = product.target.table
    stream = read_stream(workspace, consumer, table) if consumer.kind == STREAM else None
    found = judge_consumer(consumer, table, operation, scope, stream)
    if found.effect == "misses":
        found = _look_at_watermark(workspace, consumer, product.target.grain, partitions) or found
    item = find_open_repair(workspace, consumer.name, table) if stream else None
    return ConsumerEffectView(
        name=consumer.name,
        kind=consumer.kind,
        owner=consumer.owner,
        effect=found.effect,
        why=found.why,
        repair=found.repair,
        checkpoint=find_location(workspace, consumer) if stream else None,
        **(_describe_open_repair(found, item) if item else {}),
    )


def _look_at_watermark(
    workspace: Workspace, consumer: Consumer, grain: Grain, partitions: Sequence[str]
) -> ConsumerEffect | None:
    """What its watermark tells about these partitions; None if nothing."""
    if consumer.state is None or not partitions:
        return None
    try:
        mark = workspace.engines.watermarks.read(consumer.state)
        missed = [name for name in partitions if has_read(grain, mark.type, mark.value, [name])]
    except ErrataError as error:
        return ConsumerEffect(consumer.name, "unknown", error.message)
    if not missed:
        return ConsumerEffect(consumer.name, "reads", f"has not come so far: its watermark is {mark.value or 'empty'}")
    return judge_watermark(consumer, format_ranges(grain, missed, _SHOWN), mark.value)


def find_open_repair(workspace: Workspace, consumer: str, table: str) -> OutboxItem | None:
    """The oldest repair of a stream that is still owed; the others wait for it."""
    items = workspace.ledger.outbox.list_open(table=table) if workspace.ledger.exists() else ()
    return next((one for one in items if one.effect is Effect.CHECKPOINT and one.consumer == consumer), None)


def _describe_open_repair(found: ConsumerEffect, item: OutboxItem) -> dict[str, Any]:
    """The step of a repair that a person does next, or what it waits for."""
    if step := item.progress.get("step"):
        return {"run_id": item.run_id, "steps": describe_repair(found.name, item.run_id, step)}
    return {
        "run_id": item.run_id,
        "steps": (f"errata deliver {item.run_id}",),
        "waits": item.waits or item.last_error or "",
    }
