"""Render a diff as text: schema, rows, columns, partitions, samples, in that order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.cli.render.layout import flow, format_columns, format_labelled, render_next
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import (
    format_change,
    format_exact,
    format_percent,
    format_signed_percent,
    format_totals,
    format_value,
    format_verbatim,
    plural,
)

if TYPE_CHECKING:
    from errata.model.diff import ColumnChange, Diff, MetricMoves, Movement, PartitionDiff, SampleRow, SchemaDiff
    from errata.views.diff import DiffView

MAX_COLUMNS = 6
"""Samples with more changed columns are written with one column per line."""


def render_diff(view: DiffView, width: int, upcoming: Sequence[str] = ()) -> list[str]:
    """The page a reviewer signs off; ``upcoming`` lists the commands that the run's state allows next."""
    against = f"candidate snapshot {view.snapshot_id} against accepted"
    head = flow([view.product, view.run_id, against, plural(len(view.diff.partitions), "partition")], width)
    lines = [*head, "", *render_changes(view, width)]
    return [*lines, "", *render_next(*upcoming)] if upcoming else lines


def render_changes(view: DiffView, width: int) -> list[str]:
    """What changes: schema, rows, columns, partitions, samples."""
    diff = view.diff
    lines = format_labelled("schema", _format_schema(diff.schema), width)
    lines += format_labelled("rows", _format_rows(diff.partitions), width)
    lines += _render_columns(diff, width)
    lines += _render_together(diff, width)
    lines += _render_partitions(diff.partitions, view.grain, width)
    lines += _render_movements(view, width)
    lines += _render_untouched(view, width)
    if diff.masked:
        lines += format_labelled("masked", [f"{', '.join(diff.masked)}: classified, values are not shown"], width)
    for note in diff.notes:
        lines += format_labelled("note", [note], width)
    lines += ["", *_render_samples(diff.sample, width)] if diff.sample else []
    return lines


def _format_schema(schema: SchemaDiff) -> list[str]:
    told = [f"+ {name} {kind}" for name, kind in schema.added.items()]
    told += [f"- {name} {kind}" for name, kind in schema.removed.items()]
    told += [f"{name} {old} → {new}" for name, (old, new) in schema.changed.items()]
    return told or ["unchanged"]


def _format_rows(parts: Sequence[PartitionDiff]) -> list[str]:
    def total(name: str) -> int:
        return sum(getattr(part, name) for part in parts)

    shown = [("before", "before_rows"), ("after", "after_rows"), ("added", "added"), ("removed", "removed")]
    shown += [("changed", "changed"), ("same", "unchanged")]
    told = [f"{word} {format_exact(total(name))}" for word, name in shown]
    return [*told, f"of these {format_exact(within)} within tolerance"] if (within := total("within")) else told


def _render_columns(diff: Diff, width: int) -> Iterator[str]:
    common = sum(part.on_both_sides for part in diff.partitions)
    touched = {
        name: change
        for name, change in diff.columns.items()
        if change.changed or change.within or _has_sum_change(change)
    }
    if not touched:
        yield from format_labelled("columns", ["no column changed in a row that is on both sides"], width)
        return
    for n, (name, change) in enumerate(sorted(touched.items(), key=lambda item: -item[1].changed)):
        pieces = [name, f"{format_exact(change.changed)} changed ({format_percent(change.changed, common)})"]
        if change.median_percent is not None:
            pieces.append(f"median {format_signed_percent(change.median_percent)}")
        if change.sum_before is not None and change.sum_after is not None:
            old, new = format_totals(change.sum_before, change.sum_after)
            pieces.append(f"sum {old} → {new}{_format_relative(change)}")
        if change.within:
            pieces.append(f"{format_exact(change.within)} within {diff.tolerance.get(name, 'tolerance')}")
        yield from format_labelled("" if n else "columns", pieces, width)
    others = len(diff.columns) - len(touched)
    if others:
        yield from format_labelled("", [f"{plural(others, 'other column')} unchanged"], width)


def _has_sum_change(change: ColumnChange) -> bool:
    return change.sum_before is not None and change.sum_before != change.sum_after


def _format_relative(change: ColumnChange) -> str:
    by = format_change(change.sum_before or "0", change.sum_after or "0")
    return f" ({by})" if by != "–" and _has_sum_change(change) else ""


def _format_move(move: Movement) -> str:
    return format_change(move.before, move.after)


def _render_together(diff: Diff, width: int) -> Iterator[str]:
    """Columns that change in the same rows, if that adds to the counts per column."""
    if len(diff.together) < 2 and not any(len(one.columns) > 1 for one in diff.together):
        return
    told = [f"{' + '.join(one.columns)}: {format_exact(one.rows)}" for one in diff.together[:MAX_COLUMNS]]
    more = len(diff.together) - MAX_COLUMNS
    yield from format_labelled("together", [*told, f"and {plural(more, 'other pattern')}" if more > 0 else ""], width)


def _render_partitions(parts: Sequence[PartitionDiff], grain: str, width: int) -> Iterator[str]:
    differ = [part for part in parts if part.touched]
    same = [part.partition for part in parts if part not in differ]
    if not differ:
        yield from format_labelled("partitions", [f"none of {len(parts)} changed"], width)
        return
    head = f"every one of {len(parts)} changed" if not same else f"{len(differ)} of {len(parts)} changed"
    largest = max(differ, key=lambda part: part.touched)
    most = f"most rows {largest.partition}: {format_exact(largest.touched)} of {format_exact(largest.rows)}"
    yield from format_labelled(
        "partitions", [head, format_partitions(grain, [p.partition for p in differ]), most], width
    )
    if same:
        proven = all(part.method == "same" for part in parts if part.partition in set(same))
        how = " (checksums agree)" if proven else ""
        yield from format_labelled("", [f"unchanged {format_partitions(grain, same)}{how}"], width)
    by_row = [part.partition for part in differ if part.method == "rows"]
    if by_row:
        told = f"compared row by row (the key is not unique): {format_partitions(grain, by_row)}"
        yield from format_labelled("", [told], width)


def _render_movements(view: DiffView, width: int) -> Iterator[str]:
    """Partitions that moved most and least by each declared metric, or by a column's sums if none is declared."""
    declared = [one for one in view.metrics if one.kind == "compare"]
    for n, metric in enumerate(declared or _fallback_metrics(view.diff)):
        by_name = {move.partition: move for move in metric.partitions}
        pieces = [metric.name]
        for word, names in (("largest", metric.largest), ("smallest", metric.smallest)):
            if names and (word == "largest" or len(metric.partitions) > 1):
                pieces.append(f"{word} {names[0]}  {_format_move(by_name[names[0]])}")
        if len(pieces) > 1:
            yield from format_labelled("" if n else "movement", pieces, width)


def _fallback_metrics(diff: Diff) -> list[MetricMoves]:
    from errata.gate.diff.movements import build_column_moves

    moved_most = sorted(
        (name for name, change in diff.columns.items() if change.changed and _has_sum_change(change)),
        key=lambda name: -diff.columns[name].changed,
    )
    return [build_column_moves(name, diff.partitions) for name in moved_most[:1]]


def _render_untouched(view: DiffView, width: int) -> Iterator[str]:
    found = view.outside
    if found is None:
        if view.untouched_partitions:
            told = f"{plural(view.untouched_partitions, 'partition')} outside the scope keep their files"
            yield from format_labelled("untouched", [told], width)
    elif found.differing:
        told = f"{len(found.differing)} of {plural(found.partitions, 'partition')} outside the scope differ:"
        yield from format_labelled("TOUCHED", [told, format_partitions(view.grain, found.differing)], width)
    elif found.partitions:
        whole = f"{format_exact(found.partitions)} of {plural(found.partitions, 'partition')}"
        yield from format_labelled("untouched", [f"{whole} outside the scope have identical files"], width)


def _render_samples(sample: Sequence[SampleRow], width: int) -> list[str]:
    keys = list(dict.fromkeys(name for row in sample for name in row.key))
    names = list(dict.fromkeys(name for row in sample for name in (*row.before, *row.after) if name not in keys))
    table = [
        [*keys, *names],
        *([*_format_cells(row.key, keys), *(_format_change(row, name) for name in names)] for row in sample),
    ]
    marks = [["", *table[0]], *([_choose_mark(row), *cells] for row, cells in zip(sample, table[1:], strict=True))]
    widths = [max(len(row[n]) for row in marks) for n in range(len(marks[0]))]
    if len(names) <= MAX_COLUMNS and sum(widths) + 2 * len(widths) + 2 <= width:
        return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in marks]
    lines: list[str] = []
    for row in sample:
        lines += flow(
            [f"{_choose_mark(row)} {row.partition}", *(f"{k} {format_verbatim(v)}" for k, v in row.key.items())],
            width,
            "  ",
        )
        told = [(name, _format_change(row, name)) for name in names if name in row.before or name in row.after]
        lines += format_columns(told, width, indent="      ")
    return lines


def _format_cells(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [format_verbatim(row[name]) if name in row else "" for name in names]


def _choose_mark(row: SampleRow) -> str:
    return {"added": "+", "removed": "-", "changed": "~"}.get(row.change, "?")


def _format_change(row: SampleRow, name: str) -> str:
    if row.change == "added":
        return format_value(row.after[name]) if name in row.after else ""
    if row.change == "removed":
        return format_value(row.before[name]) if name in row.before else ""
    if name not in row.before and name not in row.after:
        return ""
    return f"{format_value(row.before.get(name))} → {format_value(row.after.get(name))}"
