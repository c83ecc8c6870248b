"""Guardrails on topics of Kafka: what retention took, what it will take, and what compaction took. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from errata.model.graph.read_rule import rule_of_input
from errata.model.kafka.topic_range import LostRange, TopicState, find_lost_ranges
from errata.model.partition import EPOCH, NULL, Grain, end_of, start_of
from errata.model.product import Input, Product
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.ports.tables import InputState
from errata.text.numbers import format_duration, format_moment

_RULE = "source-retention"
_SHOWN = 3


def check_topics(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse a range that a topic no longer has as a whole, or will not have until the run ends."""
    for source in world.product.inputs:
        facts = world.inputs.get(source.name)
        if source.kafka is None or facts is None or facts.topic is None:
            continue
        if facts.topic.is_compacted and not source.kafka.compacted:
            text = (
                f"{source.name}: topic {source.kafka.topic} is compacted (cleanup.policy {facts.topic.cleanup}), so "
                "that older values of a key may be gone"
            )
            look = (f"if the newest value of each key is enough: inputs.{source.name}.kafka.compacted: true",)
            yield GuardrailResult(_RULE, "refuse", text, final=True, look=look)
            continue
        lost = [] if source.is_message_log else list(_find_lost_partitions(world, source, facts))
        if lost:
            yield _refuse_lost(world, source, facts.topic, lost)
        else:
            yield from _check_horizon(world, source, facts.topic)


def list_open_windows(
    product: Product, partitions: Sequence[str], now: datetime
) -> dict[str, dict[str, dict[str, str]]]:
    """Product partition → input → partitions of a topic whose records may still arrive, each with until when."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for source in product.inputs:
        if source.kafka is None or source.is_message_log or source.partition is None:
            continue
        rule, late = rule_of_input(source, product.target.grain), timedelta(seconds=source.kafka.lateness_seconds)
        for name in partitions:
            ends = {one: end_of(rule.input_grain, one) + late for one in rule.list_reads([name]) if one != NULL}
            told = {
                one: f"records of it may arrive until {format_moment(end.isoformat())} UTC"
                for one, end in ends.items()
                if end > now
            }
            if told:
                found.setdefault(name, {})[source.name] = told
    return found


def _find_lost_partitions(world: PlanContext, source: Input, facts: InputState) -> Iterator[tuple[str, LostRange]]:
    """Partitions of the input with a loss, and the first topic partition that has it."""
    assert facts.topic is not None  # noqa: S101 - the caller has looked
    rule = rule_of_input(source, world.product.target.grain)
    for name in rule.list_reads(world.partitions):
        if lost := find_lost_ranges(facts.topic, _read_from_ms(source, rule.input_grain, name), _to_ms(world.now)):
            yield name, lost[0]


def _refuse_lost(
    world: PlanContext, source: Input, topic: TopicState, lost: list[tuple[str, LostRange]]
) -> GuardrailResult:
    assert source.kafka is not None  # noqa: S101 - the caller has looked
    rule = rule_of_input(source, world.product.target.grain)
    names = [name for name, _ in lost]
    first = min((one for _, one in lost), key=lambda one: one.from_ms)
    until = "the end of what it had" if first.to_ms is None else _to_text(first.to_ms)
    kept = "for ever" if topic.retention_ms < 0 else format_duration(topic.retention_ms // 1000)
    told = world.folded(names, rule.input_grain)
    text = (
        f"{source.name}: topic {source.kafka.topic} no longer has all records of {told}: "
        f"partition {first.partition} begins at offset {first.earliest}, so that records from "
        f"{_to_text(first.from_ms)} to {until} are gone (retention.ms keeps them {kept})"
    )
    touched = frozenset(rule.list_touched(names)) & set(world.partitions)
    look = ("read what is gone from another place: a table or files that were written from the topic",)
    return GuardrailResult(_RULE, "refuse", text, final=True, look=look, leave_out=touched)


def _check_horizon(world: PlanContext, source: Input, topic: TopicState) -> Iterator[GuardrailResult]:
    """Refuse a run that may still be reading when retention has reached its oldest records."""
    assert source.kafka is not None  # noqa: S101 - the caller has looked
    rule = rule_of_input(source, world.product.target.grain)
    reads = () if source.is_message_log else rule.list_reads(world.partitions)
    if topic.retention_ms < 0 or not (reads or source.is_message_log):
        return
    # of a change log every record is read, from the oldest on
    oldest = min((_read_from_ms(source, rule.input_grain, name) for name in reads), default=0)
    held = [log.first_ms for log in topic.logs if log.first_ms is not None]
    gone_at = max(oldest, min(held, default=oldest)) + topic.retention_ms
    ends = world.now + timedelta(seconds=world.estimate.seconds_high)
    if _to_ms(ends) < gone_at:
        return
    text = (
        f"{source.name}: the run may take until {_to_text(_to_ms(ends))}, and topic {source.kafka.topic} keeps its "
        f"oldest records until {_to_text(gone_at)} (retention.ms {topic.retention_ms})"
    )
    look = (
        *_suggest_recording(world, source, reads),
        "or plan fewer partitions at a time, the oldest first, or raise retention.ms of the topic first",
    )
    yield GuardrailResult(_RULE, "refuse", text, final=True, look=look)


def _suggest_recording(world: PlanContext, source: Input, reads: Sequence[str]) -> Iterator[str]:
    """The command that copies what the run reads, and what to change so that it reads the copy."""
    assert source.kafka is not None  # noqa: S101 - the caller has looked
    grain = rule_of_input(source, world.product.target.grain).input_grain
    topic = source.kafka
    known = next((one for one in world.sources if one.kafka and one.kafka.location == topic.location), None)
    name = known.name if known else f"{source.name}_topic"
    if known is None:
        late = f", lateness: {topic.lateness_seconds}s" if topic.lateness_seconds else ""
        told = f"{{cluster: {topic.cluster}, topic: {topic.topic}{late}}}"
        yield f"declare in errata.yaml: sources: {{{name}: {{format: parquet, kafka: {told}}}}}"
    first, last = (_to_text(_to_ms(one)) for one in (start_of(grain, min(reads)), end_of(grain, max(reads))))
    yield f"errata record {name} --from {first} --to {last}"
    yield f"then read the copy: inputs.{source.name}: {{recording: {name}, value: (that of kafka), partition: …}}"


def _read_from_ms(source: Input, grain: Grain, partition: str) -> int:
    late = source.kafka.lateness_seconds if source.kafka else 0
    return _to_ms(start_of(grain, partition) - timedelta(seconds=late))


def _to_ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _to_text(milliseconds: int) -> str:
    return (EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="seconds").replace("+00:00", "Z")
