"""Which partitions of an input still wait for rows, from markers, announced row counts or a watermark. Pure.

A partition waits until its input says that it is complete; how, is the product's key ``complete``. What is read here
comes from listings and table metadata alone. A watermark value later than now and an hour is wrong and would make every
partition complete for ever, so it is ignored and named. A marker that is older than a data file beside it was
written for an earlier state of the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from errata.model.duration import to_seconds
from errata.model.graph.read_rule import rule_of_input
from errata.model.partition import NULL, Grain, end_of
from errata.model.product import Completeness, Input, Product
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.ports.tables import Arrival, InputState
from errata.text.numbers import format_moment, plural

_LATEST = timedelta(hours=1)
"""How far clocks may differ."""
_SHOWN = 3


def with_latest(source: Input, now: datetime) -> Input:
    """The input with the latest time that a watermark can show."""
    if source.complete is None or source.complete.watermark is None:
        return source
    latest_ms = int((now + _LATEST).timestamp() * 1000)
    return replace(source, complete=replace(source.complete, latest_ms=latest_ms))


def find_waiting(source: Input, facts: InputState, grain: Grain, partitions: Sequence[str]) -> dict[str, str]:
    """Of these partitions of an input, those that are not complete, each with the reason."""
    rule, arrival = source.complete, facts.arrival
    if rule is None or arrival is None:
        return {}
    found = {}
    for name in partitions:
        if rule.marker is not None:
            why = _judge_marker(rule.marker, arrival, name)
        elif rule.rows_from is not None:
            why = _judge_rows(rule, arrival, facts, name)
        else:
            why = _judge_watermark(rule, arrival, grain, name)
        if why:
            found[name] = why
    return found


def list_waiting(
    product: Product, inputs: Mapping[str, InputState], partitions: Sequence[str]
) -> dict[str, dict[str, dict[str, str]]]:
    """Product partition → input → the partitions of the input that it reads and that wait, each with the reason."""
    grain = product.target.grain
    found: dict[str, dict[str, dict[str, str]]] = {}
    for source in product.inputs:
        if source.complete is None or source.name not in inputs:
            continue
        unit = rule_of_input(source, grain).input_grain
        waiting = find_waiting(source, inputs[source.name], unit, list_read_partitions(source, grain, partitions))
        for name in partitions if waiting else ():
            read = {one: waiting[one] for one in list_read_partitions(source, grain, [name]) if one in waiting}
            if read:
                found.setdefault(name, {})[source.name] = read
    return found


def list_read_partitions(source: Input, grain: Grain, partitions: Sequence[str]) -> tuple[str, ...]:
    """Partitions of an input that these need; an input that is read whole has to reach the end of each of them."""
    return rule_of_input(source, grain).list_reads(partitions) if source.partition else tuple(partitions)


def check_waiting(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse partitions that read an input before it is complete; name what a watermark ignores."""
    waiting = list_waiting(world.product, world.inputs, world.partitions)
    for source in world.product.inputs:
        facts = world.inputs.get(source.name)
        if source.complete is None or facts is None or facts.arrival is None:
            continue
        held = {name: read[source.name] for name, read in waiting.items() if source.name in read}
        ignored = _describe_ignored(source, facts.arrival)
        if held:
            yield _refuse_waiting(world, source, facts, held, ignored)
        elif ignored:
            yield GuardrailResult("waiting", "warn", f"{source.name}: {ignored}")
        else:
            yield GuardrailResult("waiting", "ok", f"{source.name} is complete by {_describe_way(source.complete)}")


def _refuse_waiting(
    world: PlanContext, source: Input, facts: InputState, held: Mapping[str, Mapping[str, str]], ignored: str
) -> GuardrailResult:
    by_reason: dict[str, list[str]] = {}
    for name, why in sorted({item for read in held.values() for item in read.items()}):
        by_reason.setdefault(why, []).append(name)
    told = [f"{world.folded(names)}: {why}" for why, names in list(by_reason.items())[:_SHOWN]]
    more = f"; {plural(len(by_reason) - _SHOWN, 'other reason')}" if len(by_reason) > _SHOWN else ""
    count = f"{len(held):,} of {plural(len(world.partitions), 'partition')}"
    text = f"{source.name} is not complete for {count}: {'; '.join(told)}{more}{f'; {ignored}' if ignored else ''}"
    look = (f"wait for {facts.location}, or ask who writes it",)
    return GuardrailResult("waiting", "refuse", text, look=look, leave_out=frozenset(held))


def _judge_marker(marker: str, arrival: Arrival, name: str) -> str:
    times = arrival.marked.get(name)
    if times is None or times.marker_ns is None:
        return f"no {marker} beside its files"
    if times.newest_ns is not None and times.marker_ns < times.newest_ns:
        return f"{marker} is older than the newest file beside it"
    return ""


def _judge_rows(rule: Completeness, arrival: Arrival, facts: InputState, name: str) -> str:
    announced = arrival.announced.get(name)
    if announced is None:
        return f"{rule.announcing_table[0]} has no row for it"
    if name in arrival.uncounted:
        return "its rows cannot be counted from metadata"
    size = facts.partitions.get(name)
    rows = size.rows if size else 0
    return "" if rows == announced else f"{rows:,} rows, {announced:,} were announced"


def _judge_watermark(rule: Completeness, arrival: Arrival, grain: Grain, name: str) -> str:
    if name == NULL:
        return "the partition of NULL has no end in time"
    if arrival.watermark_ms is None:
        return f"{rule.watermark} has no value"
    needed = end_of(grain, name) + timedelta(seconds=to_seconds(rule.after))
    reached = datetime.fromtimestamp(arrival.watermark_ms / 1000, UTC)
    if reached >= needed:
        return ""
    return f"{rule.watermark} has reached {_format(reached)} UTC, {_format(needed)} UTC is needed"


def _describe_way(rule: Completeness) -> str:
    if rule.watermark is not None:
        return f"the watermark of {rule.watermark}"
    return rule.marker or f"the row counts of {rule.rows_from}"


def _describe_ignored(source: Input, arrival: Arrival) -> str:
    if not arrival.ignored or source.complete is None:
        return ""
    more = f" and {len(arrival.ignored) - _SHOWN:,} more" if len(arrival.ignored) > _SHOWN else ""
    listed = ", ".join(arrival.ignored[:_SHOWN])
    return f"values of {source.complete.watermark} that lie in the future are ignored: {listed}{more}"


def _format(moment: datetime) -> str:
    return format_moment(moment.isoformat())
