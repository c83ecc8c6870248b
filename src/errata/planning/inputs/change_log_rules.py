"""Guardrail on change logs: refuse a position that their messages do not answer exactly. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from errata.model.change_log.log_contents import SpanFacts
from errata.model.change_log.log_pin import find_log_refusals
from errata.model.change_log.log_positions import format_position
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.plan_context import PlanContext
from errata.text.numbers import plural

RULE = "change-log"


def check_change_logs(world: PlanContext) -> Iterator[GuardrailResult]:
    """Refuse logs that are not complete up to the position, and name transactions that are left out."""
    for source in world.product.inputs:
        facts = world.inputs.get(source.name)
        if source.cdc is None or facts is None or facts.log is None:
            continue
        refusals = find_log_refusals(source.cdc, facts.log)
        look = (f"inputs.{source.name}.cdc.at can name another position; a new snapshot is a new beginning",)
        for text in refusals:
            yield GuardrailResult(RULE, "refuse", f"{source.name}: {text}", final=True, look=look)
        span = facts.log.span
        if refusals or span is None:
            continue
        held = facts.log.held or SpanFacts()
        text = (
            f"{source.name}: {source.cdc.reading} at {format_position(span.position)}, "
            f"{plural(held.changes, 'message')} after {format_position(span.base)}"
        )
        if held.open.count:
            named = ", ".join(held.open_names) + (", …" if held.open.count > len(held.open_names) else "")
            text += f"; {plural(held.open.count, 'transaction')} without an END left out: {named}"
        yield GuardrailResult(RULE, "warn" if held.open.count else "ok", text)
