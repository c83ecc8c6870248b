"""Guardrails on what the sources have: partitions that are missing, older than the source, or empty. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from errata.model.duration import to_seconds
from errata.model.graph.read_rule import ReadRule, rule_of_input
from errata.model.partition import NULL
from errata.model.waves import split_into_waves
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.inputs.topic_rules import check_topics
from errata.planning.plan_context import PlanContext
from errata.planning.request import resolve_order
from errata.ports.tables import InputState
from errata.text.numbers import format_duration, plural


@dataclass(frozen=True, slots=True)
class _Missing:
    """Partitions that a source lacks."""

    rule: ReadRule
    inside: list[str]  # the source has nothing of a partition of the scope
    partly: list[str]  # it has other parts of that partition, such as other hours of the day
    around: list[str]  # needed only for look-back or look-ahead
    asked: int  # partitions of the source in the scope itself

    @property
    def concerned(self) -> frozenset[str]:
        """Partitions of the product that have nothing to be computed from."""
        return frozenset(self.rule.without_look.list_touched(self.inside))

    def count(self, names: Sequence[str]) -> str:
        """A number of missing partitions, of all that are asked for."""
        unit = "partitions" if self.rule.input_grain is self.rule.grain else f"{self.rule.input_grain}s"
        return f"{len(names):,} of {self.asked:,} {unit} missing"


def _describe_source(facts: InputState) -> str:
    """What to look at when a source lacks partitions: where it was searched, and what is there."""
    if facts.near_miss is not None:
        return f"look at the source first: {facts.near_miss.describe()}"
    begins = f"; it begins at {facts.oldest}" if facts.oldest else ""
    return f"look at the source first: {facts.location} has no rows of them{begins}"


def _find_missing(world: PlanContext, facts: InputState) -> _Missing:
    source = next(item for item in world.product.inputs if item.name == facts.name)
    rule = rule_of_input(source, world.product.target.grain)
    within = set(rule.without_look.list_reads(world.partitions))
    asked = () if facts.whole else rule.list_reads(world.partitions)
    if source.own:
        asked = tuple(name for name in asked if name not in within)  # the run computes the others itself
    missing = {name for name in asked if name not in facts.partitions}
    inside, partly = list[str](), list[str]()
    for name in world.partitions if missing & within else ():
        reads = rule.without_look.list_reads([name])
        lacks = [read for read in reads if read in missing]
        (inside if len(lacks) == len(reads) else partly).extend(lacks)
    around = [name for name in asked if name in missing and name not in within]
    return _Missing(rule, list(dict.fromkeys(inside)), list(dict.fromkeys(partly)), around, len(within))


def check_source_missing(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse partitions that a source does not have; warn about a look-back that is short."""
    complete = True
    for facts in world.inputs.values():
        found = _find_missing(world, facts)
        grain = found.rule.input_grain
        if found.inside:
            searched = facts.near_miss.pattern if facts.near_miss else facts.location
            text = (
                f"{facts.name}: {found.count(found.inside)}: {world.folded(found.inside, grain)}; searched {searched}"
            )
            look = (_describe_source(facts),)
            yield GuardrailResult("source-missing", "refuse", text, look=look, leave_out=found.concerned)
        if found.around:
            text = f"{facts.name}: look-back lacks {world.folded(found.around, grain)}"
            yield GuardrailResult("source-missing", "warn", text)
        if found.partly:
            text = f"{facts.name}: {found.count(found.partly)}: {world.folded(found.partly, grain)}"
            yield GuardrailResult("source-missing", "warn", text)
        complete = complete and not (found.inside or found.partly or found.around)
    if complete:
        total = len(world.partitions)
        yield GuardrailResult(
            "source-missing", "ok", f"{total:,} of {plural(total, 'partition')} present in every partitioned source"
        )


def check_source_retention(world: PlanContext) -> Iterator[GuardrailResult]:
    """Warn about missing partitions that are older than anything the source still has."""
    passed = False
    for facts in world.inputs.values():
        found = _find_missing(world, facts)
        oldest = facts.oldest
        gone = [
            name
            for name in (*found.around, *found.partly, *found.inside)
            if oldest is not None and name != NULL and name < oldest
        ]
        if gone:
            passed = True
            folded = world.folded(gone, found.rule.input_grain)
            text = f"{facts.name} begins at {oldest}; {folded} are older: retention has probably passed"
            yield GuardrailResult("source-retention", "warn", text)
    refused = list(check_topics(world))
    yield from refused
    if not passed and not refused:
        yield GuardrailResult("source-retention", "ok", "every source reaches back far enough")
    yield from _check_schedule(world)


def _check_schedule(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse waves that end after the pinned versions of target and inputs may expire."""
    settings = world.product.publish.waves
    if settings is None or not world.kind.changes_table:
        return
    order = resolve_order(world.request, world.product)
    waves = split_into_waves(settings, order, world.product.target.grain, world.partitions)
    pauses = (len(waves) - 1) * to_seconds(settings.pause)
    most = world.kept_days * 86_400
    if pauses + world.estimate.seconds_high <= most:
        return
    computing = format_duration(world.estimate.seconds_high)
    text = (
        f"{len(waves):,} waves with {settings.pause} between them and up to {computing} of computing end after more "
        f"than {world.kept_days} days, for which the run keeps what it reads"
    )
    look = ("larger waves, a shorter pause, or fewer partitions in one plan",)
    yield GuardrailResult("source-retention", "refuse", text, final=True, look=look)


def check_empty(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse partitions whose source is there and has no rows."""
    found = False
    for facts in world.inputs.values():
        source = next(item for item in world.product.inputs if item.name == facts.name)
        rule = rule_of_input(source, world.product.target.grain).without_look
        hit = [name for name in world.partitions if _is_empty(facts, rule.list_reads([name]))]
        if hit:
            found = True
            result = "emptied" if len(world.inputs) == 1 else "computed without it"
            then = f"; they would be {result}" if world.kind.changes_table else ""
            text = f"{facts.name}: no rows in {world.folded(hit)}{then}"
            look = (f"look at the source first: {facts.location}",)
            yield GuardrailResult("empty", "refuse", text, look=look, leave_out=frozenset(hit))
    if not found:
        yield GuardrailResult("empty", "ok", "no source partition is empty")


def _is_empty(facts: InputState, reads: Sequence[str]) -> bool:
    """Whether some of these partitions of a source exist, and none of those has rows."""
    sizes = [facts.partitions[name] for name in reads if name in facts.partitions]
    return bool(sizes) and all(size.bytes == 0 or (facts.rows_known and size.rows == 0) for size in sizes)
