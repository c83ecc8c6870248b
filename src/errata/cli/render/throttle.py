"""Render the pace of a plan: canary, determinism proof, throttle, deadline. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import format_labelled
from errata.model.partition import Grain, format_ranges
from errata.text.numbers import format_count, format_duration, format_moment, format_money, format_size, plural

if TYPE_CHECKING:
    from errata.views import DeadlineView, PlanView

MOST_RANGES = 24
ORDER_WORDS = {"newest": "newest first", "oldest": "oldest first", "sequential": "one after the other"}


def format_partitions(grain: str, partitions: Sequence[str]) -> str:
    """Partitions as ranges; a scattered list is cut short, ``--json`` has it whole."""
    return format_ranges(Grain(grain), partitions, MOST_RANGES)


def format_units(number: int, grain: str) -> str:
    """A number of days, hours, … or partitions."""
    return plural(number, "partition" if grain == Grain.VALUE else grain)


def render_first_steps(view: PlanView, width: int) -> Iterator[str]:
    """Steps before the long run."""
    canary = [name for chunk in view.chunks if chunk.wave == 0 for name in chunk.partitions]
    if canary:
        told = f"{format_units(len(canary), view.grain)} first; the rest waits until they have passed"
        yield from format_labelled("canary", [format_partitions(view.grain, canary), told], width)
    if view.prove_determinism:
        told = f"{plural(view.prove_determinism, 'sample chunk')} computed twice and compared before the rest"
        yield from format_labelled("proof", [told], width)


def render_limits(view: PlanView, width: int) -> Iterator[str]:
    """The limits in force, and whether the deadline can be met."""
    if view.throttle:
        yield from format_labelled("throttle", _describe_throttle(view), width)
    if view.deadline:
        has_canary = any(chunk.wave == 0 for chunk in view.chunks)
        for n, told in enumerate(_describe_deadline(view.deadline, has_canary=has_canary)):
            yield from format_labelled("" if n else "deadline", told, width)


def _describe_throttle(view: PlanView) -> list[str]:
    said = view.throttle
    pause = format_duration(said.get("pause_seconds", 0))
    worded = {
        "chunks": f"{plural(said.get('chunks', 0), 'chunk')} in flight",
        "cores": f"{plural(said.get('cores', 0), 'core')} per worker",
        "rows_per_minute": f"{format_count(said.get('rows_per_minute', 0))} rows/min",
        "bytes_per_minute": f"{format_size(said.get('bytes_per_minute', 0))}/min",
        "commits_per_hour": f"{plural(said.get('commits_per_hour', 0), 'commit')}/h",
        "burst": f"{pause} pause after every {plural(said.get('burst', 0), 'chunk')}",
        "hours": f"{', '.join(said.get('hours', ()))} {said.get('zone', 'UTC')}",
    }
    return [text for key, text in worded.items() if key in said]


def _describe_deadline(found: DeadlineView, *, has_canary: bool) -> list[list[str]]:
    by, cores = f"{format_moment(found.by)} UTC", plural(found.cores_configured, "core")
    verb, negated = ("meets", "does not meet") if found.cores_configured == 1 else ("meet", "do not meet")
    has, needs = format_duration(found.available_seconds), format_duration(found.seconds_configured)
    cost = [f"{found.core_hours} core-hours", format_money(found.usd)]
    if found.meets:
        spare = format_duration(found.available_seconds - found.seconds_configured)
        fewer = found.cores_needed is not None and found.cores_needed < found.cores_configured
        least = f"{plural(found.cores_needed or 1, 'core')} would do" if fewer else ""
        lines = [[f"{cores} {verb} {by}", f"at most {needs} of {has}", f"{spare} to spare"], [least, *cost]]
    elif found.cores_needed is None:
        lines = [[f"no number of cores meets {by}", f"up to {needs} with {cores}", f"{has} are there"], cost]
    else:
        told = f"{plural(found.cores_needed, 'core')} would do: at most {format_duration(found.seconds)}"
        lines = [
            [f"{cores} {negated} {by}", f"up to {needs}", f"{has} are there"],
            [told, *cost, f"about as much as with {cores}"],
        ]
    if found.measured:
        return [*lines, [f"(basis: {found.basis})"]]
    better = "the canary will tell" if has_canary else "with --canary 1 the run measures itself first"
    return [*lines, [f"a guess: {found.basis}; {better}"]]
