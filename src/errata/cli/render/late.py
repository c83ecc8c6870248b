"""Render stale partitions, a look for late data, and standing approvals. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_columns, format_labelled, wrap
from errata.cli.render.throttle import format_partitions, format_units
from errata.text.numbers import format_moment, plural

if TYPE_CHECKING:
    from errata.views.late import LateProductView, LateView, StandingsView, StandingView
    from errata.views.stale import StalePartitionView, StaleProductView, StaleView

_USES = 5


def render_late(view: LateView, steps: Sequence[str], width: int) -> list[str]:
    """What is stale by product, what was done, and what is left for a person."""
    lines = [line for one in view.products for line in _render_product(one, width)]
    return [*lines, *(["", *(f"next: {step}" for step in steps)] if steps else [])]


def _render_product(one: LateProductView, width: int) -> Iterator[str]:
    is_done = one.state in ("published", "part_published")
    sign = "✓" if one.is_done else "!"
    count = format_units(len(one.stale), one.grain)
    stale = f"{count} {'was' if len(one.stale) == 1 else 'were'} stale" if is_done else f"{count} stale"
    stale = stale if one.stale else "nothing to do"
    yield from flow([f"{sign} {one.product}", f"act {one.act}", stale], width)
    if one.stale:
        yield from format_labelled("stale", [format_partitions(one.grain, one.stale)], width)
    if one.settling:
        left = "not quiet yet, left for a later look"
        yield from format_labelled("settling", [format_partitions(one.grain, one.settling), left], width)
    for run_id, names in one.claimed.items():
        yield from format_labelled("active", [format_partitions(one.grain, names), f"in {run_id}"], width)
    if one.run_id:
        under = f"under standing approval {one.standing[:12]}" if one.standing else ""
        told = [one.run_id, one.state or "", format_partitions(one.grain, one.taken), under]
        yield from format_labelled("run", told, width)
    if one.why:
        yield from wrap(one.why, width, "  ! ")


def render_standings(view: StandingsView, width: int) -> list[str]:
    """Every standing approval."""
    if not view.standing:
        return ["there is no standing approval"]
    return [line for one in view.standing for line in render_standing(one, width)]


def render_standing(view: StandingView, width: int) -> list[str]:
    """What a standing approval covers, whether it counts, and what used it."""
    return list(_render_standing(view, width))


def _render_standing(view: StandingView, width: int) -> Iterator[str]:
    word = "counts" if view.counts else "does not count"
    yield from flow([f"{'✓' if view.counts else '!'} standing approval of {view.product}", word], width)
    if view.why:
        yield from wrap(view.why, width, "  ! ")
    yield from format_labelled("digest", [view.digest], width)
    yield from format_labelled("product", [view.product_digest, "code, config, checks, inputs, dependencies"], width)
    yield from format_labelled(
        "covers",
        [f"partitions at most {view.oldest} old", f"{plural(view.partitions_per_run, 'partition')} per run",
         f"{plural(view.runs_per_day, 'run')} and {plural(view.partitions_per_day, 'partition')} per day"],
        width,
    )  # fmt: skip
    limits = [f"{metric} by at most {limit}" for metric, limit in view.changes.items()]
    yield from format_labelled("change", limits, width)
    yield from format_labelled("valid", [f"{view.valid} from each decision"], width)
    for one in view.decisions:
        told = [f"{one.decision} by {one.person}", f"{format_moment(one.at)} UTC", one.note]
        yield from format_labelled("decision", told, width)
    for use in view.uses[-_USES:]:
        told = [use.run_id, use.state, plural(use.partitions, "partition"), f"{format_moment(use.at)} UTC"]
        yield from format_labelled("used by", told, width)


def render_stale(view: StaleView, steps: Sequence[str], width: int) -> list[str]:
    """Products with what is stale or waits in them, and the commands that plan it."""
    if not view.products:
        return ["the project has no products"]
    lines = [line for one in view.products for line in _render_stale_product(view, one, width)]
    return [*lines, *(["", *(f"next: {step}" for step in steps)] if steps else [])]


def _render_stale_product(view: StaleView, one: StaleProductView, width: int) -> Iterator[str]:
    if one.problem:
        yield from wrap(f"{one.product} could not be looked at: {one.problem}", width, "✗ ")
        return
    total = format_units(one.partitions, one.grain)
    told = f"{one.stale:,} of {total} stale" if one.stale else f"no stale partition of {total}"
    wait = f"{plural(one.waiting, 'partition')} waiting" if one.waiting else ""
    yield from flow([f"{'✗' if one.stale else '✓'} {one.product}", one.table, told, wait], width, rest="    ")
    rows: list[Sequence[str]] = []
    for names, first, texts in _group(view, one):
        for n, text in enumerate(texts):
            where = format_partitions(one.grain, names) if n == 0 else ""
            rows.append((first.state if n == 0 else "", where, text))
    yield from format_columns(rows, width)


_Group = tuple[list[str], "StalePartitionView", list[str]]


def _group(view: StaleView, product: StaleProductView) -> list[_Group]:
    """Partitions with the same reasons, whichever partitions of the inputs these concern."""
    found: dict[tuple[object, ...], list[StalePartitionView]] = {}
    for one in view.partitions:
        if one.product == product.product and one.state != "current":
            key = (one.state, *((reason.input, reason.basis, reason.event) for reason in one.reasons))
            found.setdefault(key, []).append(one)
    return [([one.partition for one in same], same[0], _tell_reasons(same)) for same in found.values()]


def _tell_reasons(same: Sequence[StalePartitionView]) -> list[str]:
    """The reasons that partitions share, each with all partitions of the input that it is about."""
    texts = []
    for n, reason in enumerate(same[0].reasons):
        names = sorted({name for one in same for name in one.reasons[n].partitions if name != "*"})
        where = f"{format_partitions(reason.grain, names)} " if names else ""
        about = f"{reason.input}: " if reason.input else ""
        texts.append(f"{about}{where}{reason.event}  [{reason.basis}]")
    return texts
