"""Old against new as text: schema, rows, columns, partitions, samples, in that order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from errata.canonical import plain
from errata.cli.render.layout import columns, flow, labelled, next_lines
from errata.cli.render.throttle import folded
from errata.text.numbers import exact, moved, percent, plural, signed_percent, value, verbatim

if TYPE_CHECKING:
    from errata.model.diff import ColumnChange, Diff, MetricMoves, PartitionDiff, SampleRow, SchemaDiff
    from errata.views.diff import DiffView

MAX_COLUMNS = 6
"""Samples with more changed columns are written one column a line."""


def diff_data(view: DiffView) -> dict[str, Any]:
    """The JSON of a diff: one flat object, as documented."""
    data = plain(view)
    return {**{key: item for key, item in data.items() if key != "diff"}, **data["diff"]}


def diff_lines(view: DiffView, width: int, upcoming: Sequence[str] = ()) -> list[str]:
    """The page a reviewer signs off; ``upcoming`` is what the state of the run allows next."""
    against = f"candidate snapshot {view.snapshot_id} against accepted"
    head = flow([view.product, view.run_id, against, plural(len(view.diff.partitions), "partition")], width)
    lines = [*head, "", *change_lines(view, width)]
    return [*lines, "", *next_lines(*upcoming)] if upcoming else lines


def change_lines(view: DiffView, width: int) -> list[str]:
    """What changes: schema, rows, columns, partitions, samples."""
    diff = view.diff
    lines = labelled("schema", _schema(diff.schema), width)
    lines += labelled("rows", _rows(diff.partitions), width)
    lines += _columns(diff, width)
    lines += _together(diff, width)
    lines += _partitions(diff.partitions, view.grain, width)
    lines += _movements(view, width)
    lines += _untouched(view, width)
    if diff.masked:
        lines += labelled("masked", [f"{', '.join(diff.masked)}: classified, values are not shown"], width)
    for note in diff.notes:
        lines += labelled("note", [note], width)
    lines += ["", *_samples(diff.sample, width)] if diff.sample else []
    return lines


def _schema(schema: SchemaDiff) -> list[str]:
    told = [f"+ {name} {kind}" for name, kind in schema.added.items()]
    told += [f"- {name} {kind}" for name, kind in schema.removed.items()]
    told += [f"{name} {old} → {new}" for name, (old, new) in schema.changed.items()]
    return told or ["unchanged"]


def _rows(parts: Sequence[PartitionDiff]) -> list[str]:
    def total(name: str) -> int:
        return sum(getattr(part, name) for part in parts)

    shown = [("before", "before_rows"), ("after", "after_rows"), ("added", "added"), ("removed", "removed")]
    shown += [("changed", "changed"), ("same", "unchanged")]
    told = [f"{word} {exact(total(name))}" for word, name in shown]
    return [*told, f"of these {exact(within)} within tolerance"] if (within := total("within")) else told


def _columns(diff: Diff, width: int) -> Iterator[str]:
    common = sum(part.changed + part.unchanged for part in diff.partitions)
    touched = {
        name: change for name, change in diff.columns.items() if change.changed or change.within or _sums_differ(change)
    }
    if not touched:
        yield from labelled("columns", ["no column changed in a row that is on both sides"], width)
        return
    for n, (name, change) in enumerate(sorted(touched.items(), key=lambda item: -item[1].changed)):
        pieces = [name, f"{exact(change.changed)} changed ({percent(change.changed, common)})"]
        if change.median_percent is not None:
            pieces.append(f"median {signed_percent(change.median_percent)}")
        if change.sum_before is not None and change.sum_after is not None:
            old, new = moved(change.sum_before, change.sum_after)
            pieces.append(f"sum {old} → {new}{_relative(change)}")
        if change.within:
            pieces.append(f"{exact(change.within)} within {diff.tolerance.get(name, 'tolerance')}")
        yield from labelled("" if n else "columns", pieces, width)
    others = len(diff.columns) - len(touched)
    if others:
        yield from labelled("", [f"{plural(others, 'other column')} unchanged"], width)


def _sums_differ(change: ColumnChange) -> bool:
    return change.sum_before is not None and change.sum_before != change.sum_after


def _relative(change: ColumnChange) -> str:
    old, new = Decimal(change.sum_before or 0), Decimal(change.sum_after or 0)
    return f" ({signed_percent((new - old) * 100 / abs(old))})" if old and new != old else ""


def _together(diff: Diff, width: int) -> Iterator[str]:
    """Columns that change in the same rows; said only where it says more than the columns do."""
    if len(diff.together) < 2 and not any(len(one.columns) > 1 for one in diff.together):
        return
    told = [f"{' + '.join(one.columns)}: {exact(one.rows)}" for one in diff.together[:MAX_COLUMNS]]
    more = len(diff.together) - MAX_COLUMNS
    yield from labelled("together", [*told, f"and {plural(more, 'other pattern')}" if more > 0 else ""], width)


def _partitions(parts: Sequence[PartitionDiff], grain: str, width: int) -> Iterator[str]:
    differ = [part for part in parts if part.added or part.removed or part.changed]
    same = [part.partition for part in parts if part not in differ]
    if not differ:
        yield from labelled("partitions", [f"none of {len(parts)} changed"], width)
        return
    head = f"every one of {len(parts)} changed" if not same else f"{len(differ)} of {len(parts)} changed"
    largest = max(differ, key=_touched)
    most = f"most rows {largest.partition}: {exact(_touched(largest))} of {exact(_size(largest))}"
    yield from labelled("partitions", [head, folded(grain, [p.partition for p in differ]), most], width)
    if same:
        proven = all(part.method == "same" for part in parts if part.partition in set(same))
        how = " (checksums agree)" if proven else ""
        yield from labelled("", [f"unchanged {folded(grain, same)}{how}"], width)
    by_row = [part.partition for part in differ if part.method == "rows"]
    if by_row:
        told = f"compared row by row (the key is not unique): {folded(grain, by_row)}"
        yield from labelled("", [told], width)


def _movements(view: DiffView, width: int) -> Iterator[str]:
    """The partitions that moved most and least, by each declared metric; by a column's sums where none is declared."""
    declared = [one for one in view.metrics if one.kind == "compare"]
    for n, metric in enumerate(declared or _fallback(view.diff)):
        by_name = {move.partition: move for move in metric.partitions}
        pieces = [metric.name]
        for word, names in (("largest", metric.largest), ("smallest", metric.smallest)):
            if names and (word == "largest" or len(metric.partitions) > 1):
                pieces.append(f"{word} {names[0]}  {signed_percent(by_name[names[0]].percent or '0')}")
        if len(pieces) > 1:
            yield from labelled("" if n else "movement", pieces, width)


def _fallback(diff: Diff) -> list[MetricMoves]:
    from errata.gate.diff.movements import column_moves

    moved_most = sorted(
        (name for name, change in diff.columns.items() if change.changed and _sums_differ(change)),
        key=lambda name: -diff.columns[name].changed,
    )
    return [column_moves(name, diff.partitions) for name in moved_most[:1]]


def _untouched(view: DiffView, width: int) -> Iterator[str]:
    found = view.outside
    if found is None:
        if view.untouched_partitions:
            told = f"{plural(view.untouched_partitions, 'partition')} outside the scope keep their files"
            yield from labelled("untouched", [told], width)
    elif found.differing:
        told = f"{len(found.differing)} of {plural(found.partitions, 'partition')} outside the scope differ:"
        yield from labelled("TOUCHED", [told, folded(view.grain, found.differing)], width)
    elif found.partitions:
        whole = f"{exact(found.partitions)} of {plural(found.partitions, 'partition')}"
        yield from labelled("untouched", [f"{whole} outside the scope have identical files"], width)


def _touched(part: PartitionDiff) -> int:
    return part.added + part.removed + part.changed


def _size(part: PartitionDiff) -> int:
    return part.added + part.removed + part.changed + part.unchanged


def _samples(sample: Sequence[SampleRow], width: int) -> list[str]:
    keys = list(dict.fromkeys(name for row in sample for name in row.key))
    names = list(dict.fromkeys(name for row in sample for name in (*row.before, *row.after) if name not in keys))
    table = [[*keys, *names], *([*_cells(row.key, keys), *(_change(row, name) for name in names)] for row in sample)]
    marks = [["", *table[0]], *([_mark(row), *cells] for row, cells in zip(sample, table[1:], strict=True))]
    widths = [max(len(row[n]) for row in marks) for n in range(len(marks[0]))]
    if len(names) <= MAX_COLUMNS and sum(widths) + 2 * len(widths) + 2 <= width:
        return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in marks]
    lines: list[str] = []
    for row in sample:
        lines += flow(
            [f"{_mark(row)} {row.partition}", *(f"{k} {verbatim(v)}" for k, v in row.key.items())], width, "  "
        )
        told = [(name, _change(row, name)) for name in names if name in row.before or name in row.after]
        lines += columns(told, width, indent="      ")
    return lines


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [verbatim(row[name]) if name in row else "" for name in names]


def _mark(row: SampleRow) -> str:
    return {"added": "+", "removed": "-", "changed": "~"}.get(row.change, "?")


def _change(row: SampleRow, name: str) -> str:
    if row.change == "added":
        return value(row.after[name]) if name in row.after else ""
    if row.change == "removed":
        return value(row.before[name]) if name in row.before else ""
    if name not in row.before and name not in row.after:
        return ""
    return f"{value(row.before.get(name))} → {value(row.after.get(name))}"
