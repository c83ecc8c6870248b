"""Sections on values: distributions before and after, and sampled rows side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from errata.gate.verdict.findings import parse_decimal
from errata.model.diff import MASK, Distribution, Profile, SampleRow
from errata.report.charts import draw_box_chart
from errata.report.html import let_scroll, render_section, render_table
from errata.text.markup import Child, Markup, el
from errata.text.numbers import format_exact, format_percent, format_value, plural
from errata.views.diff import DiffView

TOP_SHOWN = 6


def render_distributions(found: DiffView) -> Markup | None:
    """Distributions of values, before and after."""
    spreads = found.diff.distributions
    shown = [
        _render_distribution(name, one, name in found.diff.masked) for name, one in spreads.items() if _has_moved(one)
    ]
    if not shown:
        return None
    lead = "Over the partitions that differ. Quantiles are approximate, to a tenth of a percent of the rows."
    return render_section("Distribution", el("div", shown, class_="spreads"), name="distribution", lead=lead)


def _has_moved(one: Distribution) -> bool:
    return one.before != one.after


def _render_distribution(name: str, one: Distribution, hidden: bool) -> Markup:
    sides = (one.before, one.after)
    rows: list[list[Child]] = [["rows", *(format_exact(side.rows) for side in sides)]]
    rows.append(
        ["empty (NULL)", *(f"{format_exact(side.nulls)} ({format_percent(side.nulls, side.rows)})" for side in sides)]
    )
    body: list[Child] = []
    if hidden:
        body.append(el("p", "Classified: values are not shown.", class_="note"))
    if one.kind in ("number", "time"):
        rows.append(["smallest", *(_value_or_dash(side.minimum) for side in sides)])
        words = {
            "0.05": "5 % are below",
            "0.25": "25 % are below",
            "0.5": "median",
            "0.75": "75 % are below",
            "0.95": "95 % are below",
        }
        points = one.after.quantiles or one.before.quantiles
        rows += [
            [words.get(point, point), *(_value_or_dash(side.quantiles.get(point)) for side in sides)]
            for point in points
        ]
        rows.append(["largest", *(_value_or_dash(side.maximum) for side in sides)])
    if one.kind == "number":
        rows.append(["mean", *(_format_mean(side.mean) for side in sides)])
        body.append(draw_box_chart(name, *sides))
    if one.kind == "text":
        rows.append(["different values", *(_format_distinct(side.distinct, one.exact) for side in sides)])
    body.append(render_table(["", "Before", "After"], rows, caption=f"{name}, before and after", numbers=(1, 2)))
    if one.before.top or one.after.top:
        body.append(_render_top_values(name, one))
    return el("div", el("h3", name), body, class_="spread")


def _format_distinct(distinct: int | None, is_exact: bool) -> str:
    return (
        "–"
        if distinct is None
        else format_exact(distinct)
        if is_exact and distinct <= TOP_SHOWN
        else f"about {format_exact(distinct)}"
    )


def _value_or_dash(found: Any) -> str:
    """The value, or a dash for a side without values."""
    return "–" if found is None else format_value(found)


def _format_mean(mean: str | None) -> str:
    number = parse_decimal(mean)
    return (
        _value_or_dash(mean) if number is None else format_value(format(round(number, 6), "f").rstrip("0").rstrip("."))
    )


def _render_top_values(name: str, one: Distribution) -> Markup:
    counts = [{top.value: top.rows for top in side.top} for side in (one.before, one.after)]
    ranked = sorted({*counts[0], *counts[1]}, key=lambda item: -max(side.get(item, 0) for side in counts))
    sides = list(zip(counts, (one.before, one.after), strict=True))
    rows = [
        [format_value(item), *(_format_frequency(listed, item, side) for listed, side in sides)]
        for item in ranked[:TOP_SHOWN]
    ]
    return render_table(["Value", "Before", "After"], rows, caption=f"Most frequent values of {name}", numbers=(1, 2))


def _format_frequency(counts: Mapping[Any, int], item: Any, side: Profile) -> str:
    if item in counts:
        return f"{format_exact(counts[item])} ({format_percent(counts[item], side.rows)})"
    # a truncated list that lacks a value does not prove that the value never occurs
    return "0" if len(counts) >= (side.distinct or 0) else f"fewer than {format_exact(min(counts.values(), default=0))}"


def render_rows(found: DiffView) -> Markup | None:
    """Sampled rows, old and new side by side."""
    sample = found.diff.sample
    if not sample:
        return None
    keys = list(dict.fromkeys(name for row in sample for name in row.key))
    names = list(dict.fromkeys(name for row in sample for name in (*row.before, *row.after) if name not in keys))
    lead = f"{plural(len(sample), 'row')} of those that differ, in the order of their key."
    if found.diff.masked:
        lead += f" {MASK} replaces a value of a classified column ({', '.join(found.diff.masked)})."
    body = [_render_sample(row, keys, names) for row in sample]
    top = el("tr", el("th", "Change", scope="col", rowspan=2), [el("th", key, scope="col", rowspan=2) for key in keys],
             [el("th", name, scope="colgroup", colspan=2, class_="pairhead") for name in names])  # fmt: skip
    sides = [
        el("th", word, scope="col", class_=f"n {kind}")
        for _ in names
        for word, kind in (("old", "old"), ("new", "new"))
    ]
    head = el("thead", top, el("tr", sides))
    inner = el("table", el("caption", "Sampled rows"), head, el("tbody", body), class_="sample")
    return render_section("Sampled rows", let_scroll(inner, "Sampled rows"), name="rows", lead=lead)


def _render_sample(row: SampleRow, keys: Sequence[str], names: Sequence[str]) -> Markup:
    sign = {"added": "+ added", "removed": "− removed", "changed": "~ changed"}.get(row.change, row.change)
    cells = [el("td", format_value(row.key[key]) if key in row.key else "") for key in keys]
    pairs = []
    for name in names:
        if name not in row.before and name not in row.after:
            pairs.append(el("td", "same", colspan=2, class_="old dim same"))
            continue
        moved_ = " moved" if row.change == "changed" else ""
        for side, kind in ((row.before, "old"), (row.after, "new")):
            pairs.append(el("td", format_value(side[name]) if name in side else "–", class_=f"n {kind}{moved_}"))
    return el("tr", el("th", sign, scope="row", class_=row.change), cells, pairs)
