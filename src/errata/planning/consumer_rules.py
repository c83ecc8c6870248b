"""Guardrails on consumers: what the publication does to them, found before anybody approves it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from errata.model.consumer.effect import (
    STREAM,
    ConsumerEffect,
    StreamState,
    find_operation,
    judge_consumer,
)
from errata.model.consumer.stream import APPEND
from errata.model.side_tables import is_side_table_mode
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext

STREAMS = "streaming-readers"
CONSUMERS = "consumers"


def check_streaming_readers(world: PlanContext) -> Iterator[GuardrailResult]:
    """What the publication does to streams; refused where waves would reach them in different ways."""
    streams = [one for one in world.consumers if one.kind == STREAM]
    if not streams:
        yield GuardrailResult(STREAMS, "ok", "no consumer is declared as streaming")
        return
    operations = list_operations(world)
    if len(set(operations)) > 1:
        yield _refuse_mixture(world, operations)
        return
    operation = next(iter(operations), "")
    for consumer in streams:
        state = world.streams.get(consumer.name, StreamState())
        found = judge_consumer(consumer, world.target.table, operation, "", state)
        look = (f"errata consumers check {world.product.name}",) if found.level == "refuse" else ()
        yield GuardrailResult(STREAMS, found.level, describe_effect(found), look=look)


def check_consumers(world: PlanContext) -> Iterator[GuardrailResult]:
    """What the publication does to all other consumers."""
    operation = next(iter(list_operations(world)), "")
    for consumer in world.consumers:
        if consumer.kind != STREAM:
            scope = world.folded(world.partitions)
            found = judge_consumer(consumer, world.target.table, operation, scope, None)
            yield GuardrailResult(CONSUMERS, found.level, describe_effect(found))


def describe_effect(found: ConsumerEffect) -> str:
    """One line about a consumer."""
    return f"{found.name}: {found.why}" + (f"; {found.repair}" if found.repair else "")


def list_operations(world: PlanContext) -> tuple[str, ...]:
    """The operation that Iceberg will record for each wave, as far as the plan knows; empty if main is not changed.

    A wave whose partitions all come out empty is a delete, which shows only once it is computed.
    """
    if not world.kind.changes_table or is_side_table_mode(world.product.publish):
        return ()
    return tuple(
        find_operation(removes=_has_files(world, wave), adds=_may_have_rows(world, wave))
        for wave in world.waves or (world.partitions,)
    )


def _has_files(world: PlanContext, partitions: Sequence[str]) -> bool:
    return bool(world.target.shared_files) or any(world.target.expected.get(name) for name in partitions)


def _may_have_rows(world: PlanContext, partitions: Sequence[str]) -> bool:
    return world.held is None or any(name in world.held.partitions for name in partitions)


def _refuse_mixture(world: PlanContext, operations: Sequence[str]) -> GuardrailResult:
    by_operation: dict[str, list[str]] = {}
    for wave, operation in zip(world.waves, operations, strict=True):
        by_operation.setdefault(operation, []).extend(wave)
    listed = "; ".join(f"{operation}: {world.folded(names)}" for operation, names in sorted(by_operation.items()))
    text = f"the waves would reach streams in different ways ({listed}): they would read some of them and not others"
    apart = frozenset(by_operation.get(APPEND) or next(iter(by_operation.values())))
    return GuardrailResult(STREAMS, "refuse", text, look=("plan them in runs of their own",), leave_out=apart)
