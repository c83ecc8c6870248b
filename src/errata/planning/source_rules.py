"""Guardrails on what the sources have: partitions that are missing, older than the source, or empty. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from errata.model.partition import NULL
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.planning.request import list_input_partitions
from errata.ports.tables import InputState


def _describe_source(facts: InputState) -> str:
    """What to look at when a source lacks partitions: where it was searched, and what is there."""
    if facts.near_miss is not None:
        return f"look at the source first: {facts.near_miss.describe()}"
    begins = f"; it begins at {facts.oldest}" if facts.oldest else ""
    return f"look at the source first: {facts.location} has no rows of them{begins}"


def _find_missing(world: PlanContext, facts: InputState) -> tuple[list[str], list[str]]:
    """Missing partitions of an input: those in scope, and those needed only for look-back or look-ahead."""
    source = next(item for item in world.product.inputs if item.name == facts.name)
    asked = () if facts.whole else list_input_partitions(source, world.product.target.grain, world.partitions)
    scope = set(world.partitions)
    if source.own:
        asked = tuple(name for name in asked if name not in scope)  # the run computes the others itself
    missing = [name for name in asked if name not in facts.partitions]
    return [name for name in missing if name in scope], [name for name in missing if name not in scope]


def check_source_missing(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse partitions that a source does not have; warn about a look-back that is short."""
    complete = True
    for facts in world.inputs.values():
        inside, around = _find_missing(world, facts)
        if inside:
            count = f"{len(inside):,} of {len(world.partitions):,} partitions"
            searched = facts.near_miss.pattern if facts.near_miss else facts.location
            text = f"{facts.name}: {count} missing: {world.folded(inside)}; searched {searched}"
            look = (_describe_source(facts),)
            yield GuardrailResult("source-missing", "refuse", text, look=look, leave_out=frozenset(inside))
        if around:
            yield GuardrailResult("source-missing", "warn", f"{facts.name}: look-back lacks {world.folded(around)}")
        complete = complete and not inside and not around
    if complete:
        total = len(world.partitions)
        yield GuardrailResult(
            "source-missing", "ok", f"{total:,} of {total:,} partitions present in every partitioned source"
        )


def check_source_retention(world: PlanContext) -> Iterator[GuardrailResult]:
    """Warn about missing partitions that are older than anything the source still has."""
    passed = False
    for facts in world.inputs.values():
        inside, around = _find_missing(world, facts)
        oldest = facts.oldest
        gone = [name for name in (*around, *inside) if oldest is not None and name != NULL and name < oldest]
        if gone:
            passed = True
            text = f"{facts.name} begins at {oldest}; {world.folded(gone)} are older: retention has probably passed"
            yield GuardrailResult("source-retention", "warn", text)
    if not passed:
        yield GuardrailResult("source-retention", "ok", "every source reaches back far enough")


def check_empty(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse source partitions that are there and have no rows."""
    scope, found = set(world.partitions), False
    for facts in world.inputs.values():
        hit = [
            name
            for name, size in facts.partitions.items()
            if name in scope and (size.bytes == 0 or (facts.rows_known and size.rows == 0))
        ]
        if hit:
            found = True
            then = "; they would be emptied" if world.kind.changes_table else ""
            text = f"{facts.name}: no rows in {world.folded(hit)}{then}"
            look = (f"look at the source first: {facts.location}",)
            yield GuardrailResult("empty", "refuse", text, look=look, leave_out=frozenset(hit))
    if not found:
        yield GuardrailResult("empty", "ok", "no source partition is empty")
