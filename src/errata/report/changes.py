"""Sections on what changed: calendar, metrics, movements and columns. Pure."""

from __future__ import annotations

from decimal import Decimal

from errata.gate.diff.movements import build_movement
from errata.gate.verdict.findings import parse_decimal
from errata.model.diff import ColumnChange, Diff, MetricMoves, Movement, PartitionDiff
from errata.report.calendar import build_cells, draw_calendar, render_legend
from errata.report.charts import draw_line_chart
from errata.report.decision import find_headline_metric
from errata.report.html import let_scroll, render_details, render_section, render_share_bar, render_table, to_sentence
from errata.text.markup import Child, Markup, el, nowrap_dates
from errata.text.numbers import (
    format_change,
    format_exact,
    format_percent,
    format_signed_percent,
    format_totals,
    format_value,
    plural,
)
from errata.views.diff import DiffView
from errata.views.report import ReportView

FOLDED = 12
"""Longer lists of partitions are folded."""


def render_calendar(view: ReportView, found: DiffView) -> Markup:
    """Calendar of partitions by how much of them changed."""
    parts, metric = found.diff.partitions, find_headline_metric(view)
    same = sum(part.method == "same" for part in parts)
    differ = sum(bool(part.touched) for part in parts)
    lead = f"{format_exact(differ)} of {plural(len(parts), 'partition')} changed"
    lead += f"; {format_exact(same)} proven unchanged by checksum." if same else "."
    cells = build_cells(parts, metric)
    shown = [draw_calendar(found.grain, cells), render_legend(found.grain, cells, metric)]
    return render_section("Calendar", shown, name="calendar", lead=lead)


def render_metrics(found: DiffView) -> Markup | None:
    """The declared metrics, before and after, over the partitions."""
    if not found.metrics:
        return None
    return render_section("Declared metrics", [render_metric(one) for one in found.metrics], name="metrics")


def render_metric(moves: MetricMoves) -> Markup:
    """One metric: a chart, its totals, and a table of its numbers."""
    names = [one.partition for one in moves.partitions]
    words = (moves.before_means, moves.after_means)
    sides = [[_parse_float(getattr(one, side)) for one in moves.partitions] for side in ("before", "after")]
    legend_ = el(
        "p",
        el("span", el("span", class_="swatch before", aria_hidden="true"), f" {words[0]}", class_="pair"),
        el("span", el("span", class_="swatch after", aria_hidden="true"), f" {words[1]}", class_="pair"),
        class_="legend",
    )
    rows = [[one.partition, *_movement_cells(one)] for one in moves.partitions]
    sides_ = ["Before", "After"] if moves.kind != "reconcile" else list(words)
    head = ["Partition", *sides_, "Change", "%"]
    numbers = render_table(head, rows, caption=f"{moves.name} by partition", numbers=range(1, 5))
    chart: list[Child] = []
    if len(names) > 1:
        drawn = draw_line_chart(names, sides[0], sides[1], moves.name, words)
        chart = [let_scroll(drawn, f"chart of {moves.name}"), legend_]
    head_ = el("figcaption", el("h3", moves.name), el("p", nowrap_dates(_summarize_metric(moves))))
    if sides[0] == sides[1]:
        return el(
            "figure", head_, render_details(f"Chart and numbers of {plural(len(rows), 'partition')}", chart, numbers)
        )
    folded = (
        numbers if len(rows) <= FOLDED else render_details(f"The numbers of {plural(len(rows), 'partition')}", numbers)
    )
    return el("figure", head_, chart, folded)


def _summarize_metric(metric: MetricMoves) -> str:
    moves = {one.partition: one for one in metric.partitions}
    if metric.kind == "reconcile":
        off = [one for one in metric.partitions if one.change is None or Decimal(one.change)]
        if not off:
            return f"Source and output agree in all {plural(len(moves), 'partition')}."
        return f"Source and output differ in {format_exact(len(off))} of {plural(len(moves), 'partition')}."
    told = []
    if metric.before is not None and metric.after is not None:
        by = format_change(metric.before, metric.after)
        old, new = format_totals(metric.before, metric.after)
        told.append(f"{old} → {new}" + (f" ({by})" if by != "–" else ""))
    for word, names in (("largest", metric.largest), ("smallest", metric.smallest)):
        if names:
            told.append(f"{word} movement {names[0]} ({_format_move(moves[names[0]])})")
    return "; ".join(told)


def _format_move(one: Movement) -> str:
    return format_change(one.before, one.after)


def _movement_cells(one: Movement) -> list[Child]:
    change = format_value(one.change) if one.change is not None else "–"
    return [
        format_value(one.before),
        format_value(one.after),
        change,
        _format_move(one),
    ]


def render_movements(found: DiffView) -> Markup | None:
    """Partitions that moved most and least, by every declared comparison."""
    tables = []
    for metric in (one for one in found.metrics if one.kind != "reconcile" and one.largest):
        by_name = {one.partition: one for one in metric.partitions}
        few = len(by_name) <= len(metric.largest)
        ranked = [("largest", name) for name in metric.largest]
        ranked += [] if few else [("smallest", name) for name in metric.smallest]
        rows = [[name, word, *_movement_cells(by_name[name])] for word, name in ranked]
        head = ["Partition", "Movement", "Before", "After", "Change", "%"]
        tables.append(render_table(head, rows, caption=f"{metric.name}", numbers=range(2, 6)))
    return render_section("Top movements", tables, name="movements") if tables else None


def render_columns(found: DiffView) -> Markup:
    """Which columns changed, by how much, together with which others, and in which partitions."""
    diff = found.diff
    common = sum(part.on_both_sides for part in diff.partitions)
    ordered = sorted(diff.columns.items(), key=lambda item: (-item[1].changed, item[0]))
    rows = [_column_cells(name, change, common, diff) for name, change in ordered]
    head = ["Column", "Rows changed", "Share", "Median", "Sum before", "Sum after", "Movement"]
    if diff.tolerance:
        head.append("Within tolerance")
    body: list[Child] = [_render_schema(diff)]
    if rows:
        told = "Changes in rows that are on both sides; sums over all rows of the partitions that differ"
        body.append(render_table(head, rows, caption=told, numbers=range(1, len(head))))
    body += [_render_together(diff), _render_matrix(diff)]
    body += [el("p", to_sentence(note), class_="note") for note in diff.notes]
    return render_section("Columns", body, name="columns")


def _render_schema(diff: Diff) -> Markup:
    told = [f"new column {name} ({kind})" for name, kind in diff.schema.added.items()]
    told += [f"column {name} ({kind}) is gone" for name, kind in diff.schema.removed.items()]
    told += [f"{name} was {old}, is {new}" for name, (old, new) in diff.schema.changed.items()]
    return el("p", "Schema: " + ("; ".join(told) if told else "unchanged") + ".", class_="lead")


def _column_cells(name: str, change: ColumnChange, common: int, diff: Diff) -> list[Child]:
    hidden = name in diff.masked
    sums: list[Child] = ["–", "–", "–"]
    if hidden:
        sums = ["classified", "classified", "–"]
    elif change.sum_before is not None and change.sum_after is not None:
        moved_by = "–"
        if Decimal(build_movement("", change.sum_before, change.sum_after).percent or 0):
            moved_by = format_change(change.sum_before, change.sum_after)
        sums = [format_value(change.sum_before), format_value(change.sum_after), moved_by]
    share = [format_percent(change.changed, common), " ", render_share_bar(change.changed / common if common else 0)]
    median = "–" if hidden or change.median_percent is None else format_signed_percent(change.median_percent)
    row: list[Child] = [name, format_exact(change.changed), share, median, *sums]
    return [*row, format_exact(change.within)] if diff.tolerance else row


def _render_together(diff: Diff) -> Markup | None:
    if not diff.together:
        return None
    names = list(dict.fromkeys(name for one in diff.together for name in one.columns))
    rows = [
        [
            format_exact(one.rows),
            *(el("span", "changed", class_="hit") if name in one.columns else "–" for name in names),
        ]
        for one in diff.together[:FOLDED]
    ]
    more = len(diff.together) - FOLDED
    caption = "Columns that change in the same rows" + (f" (the {FOLDED} most frequent patterns)" if more > 0 else "")
    return el(
        "div", el("h3", "Changed together"), render_table(["Rows", *names], rows, caption=caption, classes="together")
    )


def _render_matrix(diff: Diff) -> Markup | None:
    """Matrix of partitions × columns with the number of changed rows."""
    names = [name for name, change in diff.columns.items() if change.changed]
    parts = [part for part in diff.partitions if part.columns]
    if not names or not parts:
        return None
    names.sort(key=lambda name: -diff.columns[name].changed)
    rows = [
        [
            part.partition,
            *(_render_hits(part, name) for name in names),
            format_exact(part.added),
            format_exact(part.removed),
        ]
        for part in parts
    ]
    head = ["Partition", *names, "rows added", "rows removed"]
    matrix = render_table(
        head, rows, caption="Rows changed, by partition and column", numbers=range(1, len(head)), classes="matrix"
    )
    if len(rows) > FOLDED:
        matrix = render_details(f"{plural(len(rows), 'partition')} by {plural(len(names), 'column')}", matrix)
    return el("div", el("h3", "Change matrix"), matrix)


def _render_hits(part: PartitionDiff, name: str) -> Markup:
    changed = part.columns[name].changed if name in part.columns else 0
    size = part.on_both_sides
    level = 0 if not changed else min(4, 1 + int(changed * 4 / size - 1e-9)) if size else 4
    return el("span", format_exact(changed), class_=f"heat l{level}")


def _parse_float(text: str | None) -> float | None:
    number = parse_decimal(text)
    return None if number is None else float(number)
