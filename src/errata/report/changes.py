"""What changed: calendar, metrics, columns, movements, distributions and rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from errata.model.human import exact, moved, percent, plural, signed_percent, value
from errata.report.charts import box_chart, line_chart
from errata.report.decision import headline
from errata.report.grid import calendar_of, cells_of, legend
from errata.report.markup import Child, Markup, dated, el
from errata.report.tables import details, section, sentence, share_bar, table
from errata.report.view import ReportView
from errata.validator.diff import MASK, ColumnChange, Diff, Distribution, PartitionDiff, Profile, SampleRow
from errata.validator.diffview import DiffView
from errata.validator.findings import decimal_of
from errata.validator.movements import MetricMoves, Movement, move

__all__ = ["calendar", "columns", "distributions", "metrics", "movements", "rows"]

FOLDED = 12
"""Longer lists of partitions are folded away, one click below."""
TOP_SHOWN = 6


def calendar(view: ReportView, found: DiffView) -> Markup:
    """Partitions by how much of them changed."""
    parts, metric = found.diff.partitions, headline(view)
    same = sum(part.method == "same" for part in parts)
    differ = sum(bool(part.added or part.removed or part.changed) for part in parts)
    lead = f"{exact(differ)} of {plural(len(parts), 'partition')} changed"
    lead += f"; {exact(same)} proven unchanged by checksum." if same else "."
    cells = cells_of(parts, metric)
    shown = [calendar_of(found.grain, cells), legend(found.grain, cells, metric)]
    return section("Calendar", shown, name="calendar", lead=lead)


def metrics(found: DiffView) -> Markup | None:
    """The declared metrics, before and after, over the partitions."""
    if not found.metrics:
        return None
    return section("Declared metrics", [_metric(one) for one in found.metrics], name="metrics")


def _metric(metric: MetricMoves) -> Markup:
    names = [one.partition for one in metric.partitions]
    words = (metric.before_means, metric.after_means)
    sides = [[_float(getattr(one, side)) for one in metric.partitions] for side in ("before", "after")]
    legend_ = el(
        "p",
        el("span", el("span", class_="swatch before", aria_hidden="true"), f" {words[0]}", class_="pair"),
        el("span", el("span", class_="swatch after", aria_hidden="true"), f" {words[1]}", class_="pair"),
        class_="legend",
    )
    rows = [[one.partition, *_movement(one)] for one in metric.partitions]
    sides_ = ["Before", "After"] if metric.kind != "reconcile" else list(words)
    head = ["Partition", *sides_, "Change", "%"]
    numbers = table(head, rows, caption=f"{metric.name} by partition", numbers=range(1, 5))
    chart: list[Child] = []
    if len(names) > 1:
        drawn = line_chart(names, sides[0], sides[1], metric.name, words)
        chart = [
            el("div", drawn, class_="scroll", role="region", aria_label=f"chart of {metric.name}", tabindex=0),
            legend_,
        ]
    head_ = el("figcaption", el("h3", metric.name), el("p", dated(_summary(metric))))
    if sides[0] == sides[1]:
        return el("figure", head_, details(f"Chart and numbers of {plural(len(rows), 'partition')}", chart, numbers))
    folded = numbers if len(rows) <= FOLDED else details(f"The numbers of {plural(len(rows), 'partition')}", numbers)
    return el("figure", head_, chart, folded)


def _summary(metric: MetricMoves) -> str:
    moves = {one.partition: one for one in metric.partitions}
    if metric.kind == "reconcile":
        off = [one for one in metric.partitions if one.change is None or Decimal(one.change)]
        if not off:
            return f"Source and output agree in all {plural(len(moves), 'partition')}."
        return f"Source and output differ in {exact(len(off))} of {plural(len(moves), 'partition')}."
    told = []
    if metric.before is not None and metric.after is not None:
        whole = move("", metric.before, metric.after)
        old, new = moved(metric.before, metric.after)
        told.append(f"{old} → {new}" + (f" ({signed_percent(whole.percent)})" if whole.percent else ""))
    for word, names in (("largest", metric.largest), ("smallest", metric.smallest)):
        if names:
            told.append(f"{word} movement {names[0]} ({signed_percent(moves[names[0]].percent or '0')})")
    return "; ".join(told)


def _movement(one: Movement) -> list[Child]:
    change = value(one.change) if one.change is not None else "–"
    return [value(one.before), value(one.after), change, signed_percent(one.percent) if one.percent else "–"]


def movements(found: DiffView) -> Markup | None:
    """The partitions that moved most and least, by every declared comparison."""
    tables = []
    for metric in (one for one in found.metrics if one.kind != "reconcile" and one.largest):
        by_name = {one.partition: one for one in metric.partitions}
        few = len(by_name) <= len(metric.largest)
        ranked = [("largest", name) for name in metric.largest]
        ranked += [] if few else [("smallest", name) for name in metric.smallest]
        rows = [[name, word, *_movement(by_name[name])] for word, name in ranked]
        head = ["Partition", "Movement", "Before", "After", "Change", "%"]
        tables.append(table(head, rows, caption=f"{metric.name}", numbers=range(2, 6)))
    return section("Top movements", tables, name="movements") if tables else None


def columns(found: DiffView) -> Markup:
    """Which columns changed, by how much, together with which, and in which partitions."""
    diff = found.diff
    common = sum(part.changed + part.unchanged for part in diff.partitions)
    ordered = sorted(diff.columns.items(), key=lambda item: (-item[1].changed, item[0]))
    rows = [_column(name, change, common, diff) for name, change in ordered]
    head = ["Column", "Rows changed", "Share", "Median", "Sum before", "Sum after", "Movement"]
    if diff.tolerance:
        head.append("Within tolerance")
    body: list[Child] = [_schema(diff)]
    if rows:
        told = "Changes in rows that are on both sides; sums over all rows of the partitions that differ"
        body.append(table(head, rows, caption=told, numbers=range(1, len(head))))
    body += [_together(diff), _matrix(diff)]
    body += [el("p", sentence(note), class_="note") for note in diff.notes]
    return section("Columns", body, name="columns")


def _schema(diff: Diff) -> Markup:
    told = [f"new column {name} ({kind})" for name, kind in diff.schema.added.items()]
    told += [f"column {name} ({kind}) is gone" for name, kind in diff.schema.removed.items()]
    told += [f"{name} was {old}, is {new}" for name, (old, new) in diff.schema.changed.items()]
    return el("p", "Schema: " + ("; ".join(told) if told else "unchanged") + ".", class_="lead")


def _column(name: str, change: ColumnChange, common: int, diff: Diff) -> list[Child]:
    hidden = name in diff.masked
    sums: list[Child] = ["–", "–", "–"]
    if hidden:
        sums = ["classified", "classified", "–"]
    elif change.sum_before is not None and change.sum_after is not None:
        whole = move("", change.sum_before, change.sum_after)
        moved_by = signed_percent(whole.percent) if whole.percent and Decimal(whole.percent) else "–"
        sums = [value(change.sum_before), value(change.sum_after), moved_by]
    share = [percent(change.changed, common), " ", share_bar(change.changed / common if common else 0)]
    median = signed_percent(change.median_percent) if change.median_percent is not None else "–"
    row: list[Child] = [name, exact(change.changed), share, median, *sums]
    return [*row, exact(change.within)] if diff.tolerance else row


def _together(diff: Diff) -> Markup | None:
    if not diff.together:
        return None
    names = list(dict.fromkeys(name for one in diff.together for name in one.columns))
    rows = [
        [exact(one.rows), *(el("span", "changed", class_="hit") if name in one.columns else "–" for name in names)]
        for one in diff.together[:FOLDED]
    ]
    more = len(diff.together) - FOLDED
    caption = "Columns that change in the same rows" + (f" (the {FOLDED} most frequent patterns)" if more > 0 else "")
    return el("div", el("h3", "Changed together"), table(["Rows", *names], rows, caption=caption, classes="together"))


def _matrix(diff: Diff) -> Markup | None:
    """Partitions × columns: how many rows changed there."""
    names = [name for name, change in diff.columns.items() if change.changed]
    parts = [part for part in diff.partitions if part.columns]
    if not names or not parts:
        return None
    names.sort(key=lambda name: -diff.columns[name].changed)
    rows = [
        [part.partition, *(_hits(part, name) for name in names), exact(part.added), exact(part.removed)]
        for part in parts
    ]
    head = ["Partition", *names, "rows added", "rows removed"]
    matrix = table(
        head, rows, caption="Rows changed, by partition and column", numbers=range(1, len(head)), classes="matrix"
    )
    if len(rows) > FOLDED:
        matrix = details(f"{plural(len(rows), 'partition')} by {plural(len(names), 'column')}", matrix)
    return el("div", el("h3", "Change matrix"), matrix)


def _hits(part: PartitionDiff, name: str) -> Markup:
    changed = part.columns[name].changed if name in part.columns else 0
    size = part.changed + part.unchanged
    level = 0 if not changed else min(4, 1 + int(changed * 4 / size - 1e-9)) if size else 4
    return el("span", exact(changed), class_=f"heat l{level}")


def distributions(found: DiffView) -> Markup | None:
    """How values are spread, before and after."""
    spreads = found.diff.distributions
    shown = [_distribution(name, one, name in found.diff.masked) for name, one in spreads.items() if _moved(one)]
    if not shown:
        return None
    lead = "Over the partitions that differ. Quantiles are approximate, to a tenth of a percent of the rows."
    return section("Distribution", el("div", shown, class_="spreads"), name="distribution", lead=lead)


def _moved(one: Distribution) -> bool:
    return one.before != one.after


def _distribution(name: str, one: Distribution, hidden: bool) -> Markup:
    sides = (one.before, one.after)
    rows: list[list[Child]] = [["rows", *(exact(side.rows) for side in sides)]]
    rows.append(["empty (NULL)", *(f"{exact(side.nulls)} ({percent(side.nulls, side.rows)})" for side in sides)])
    body: list[Child] = []
    if hidden:
        body.append(el("p", "Classified: values are not shown.", class_="note"))
    if one.kind in ("number", "time"):
        rows.append(["smallest", *(value(side.minimum) for side in sides)])
        words = {
            "0.05": "5 % are below",
            "0.25": "25 % are below",
            "0.5": "median",
            "0.75": "75 % are below",
            "0.95": "95 % are below",
        }
        points = one.after.quantiles or one.before.quantiles
        rows += [[words.get(point, point), *(value(side.quantiles.get(point)) for side in sides)] for point in points]
        rows.append(["largest", *(value(side.maximum) for side in sides)])
    if one.kind == "number":
        rows.append(["mean", *(_rounded(side.mean) for side in sides)])
        body.append(box_chart(name, *sides))
    if one.kind == "text":
        rows.append(["different values", *(_about(side.distinct, one.exact) for side in sides)])
    body.append(table(["", "Before", "After"], rows, caption=f"{name}, before and after", numbers=(1, 2)))
    if one.before.top or one.after.top:
        body.append(_top(name, one))
    return el("div", el("h3", name), body, class_="spread")


def _about(distinct: int | None, is_exact: bool) -> str:
    return (
        "–"
        if distinct is None
        else exact(distinct)
        if is_exact and distinct <= TOP_SHOWN
        else f"about {exact(distinct)}"
    )


def _rounded(mean: str | None) -> str:
    number = decimal_of(mean)
    return value(mean) if number is None else value(format(round(number, 6), "f").rstrip("0").rstrip("."))


def _top(name: str, one: Distribution) -> Markup:
    counts = [{top.value: top.rows for top in side.top} for side in (one.before, one.after)]
    ranked = sorted({*counts[0], *counts[1]}, key=lambda item: -max(side.get(item, 0) for side in counts))
    sides = list(zip(counts, (one.before, one.after), strict=True))
    rows = [[value(item), *(_times(listed, item, side) for listed, side in sides)] for item in ranked[:TOP_SHOWN]]
    return table(["Value", "Before", "After"], rows, caption=f"Most frequent values of {name}", numbers=(1, 2))


def _times(counts: Mapping[Any, int], item: Any, side: Profile) -> str:
    if item in counts:
        return f"{exact(counts[item])} ({percent(counts[item], side.rows)})"
    # a full list that lacks a value does not say that it never occurs
    return "0" if len(counts) >= (side.distinct or 0) else f"fewer than {exact(min(counts.values(), default=0))}"


def rows(found: DiffView) -> Markup | None:
    """Sampled rows, old and new side by side."""
    sample = found.diff.sample
    if not sample:
        return None
    keys = list(dict.fromkeys(name for row in sample for name in row.key))
    names = list(dict.fromkeys(name for row in sample for name in (*row.before, *row.after) if name not in keys))
    lead = f"{plural(len(sample), 'row')} of those that differ, in the order of their key."
    if found.diff.masked:
        lead += f" {MASK} stands for a value of a classified column ({', '.join(found.diff.masked)})."
    body = [_sample(row, keys, names) for row in sample]
    top = el("tr", el("th", "Change", scope="col", rowspan=2), [el("th", key, scope="col", rowspan=2) for key in keys],
             [el("th", name, scope="colgroup", colspan=2, class_="pairhead") for name in names])  # fmt: skip
    sides = [
        el("th", word, scope="col", class_=f"n {kind}")
        for _ in names
        for word, kind in (("old", "old"), ("new", "new"))
    ]
    head = el("thead", top, el("tr", sides))
    inner = el("table", el("caption", "Sampled rows"), head, el("tbody", body), class_="sample")
    scroll = el("div", inner, class_="scroll", role="region", aria_label="Sampled rows", tabindex=0)
    return section("Sampled rows", scroll, name="rows", lead=lead)


def _sample(row: SampleRow, keys: Sequence[str], names: Sequence[str]) -> Markup:
    sign = {"added": "+ added", "removed": "− removed", "changed": "~ changed"}.get(row.change, row.change)
    cells = [el("td", value(row.key[key]) if key in row.key else "") for key in keys]
    pairs = []
    for name in names:
        if name not in row.before and name not in row.after:
            pairs.append(el("td", "same", colspan=2, class_="old dim same"))
            continue
        moved_ = " moved" if row.change == "changed" else ""
        for side, kind in ((row.before, "old"), (row.after, "new")):
            pairs.append(el("td", value(side[name]) if name in side else "–", class_=f"n {kind}{moved_}"))
    return el("tr", el("th", sign, scope="row", class_=row.change), cells, pairs)


def _float(text: str | None) -> float | None:
    number = decimal_of(text)
    return None if number is None else float(number)
