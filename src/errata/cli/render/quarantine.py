"""Render quarantined rows: how each input's rows were used, why some were removed, and samples. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_columns, format_labelled, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import format_exact, plural

if TYPE_CHECKING:
    from errata.views import QuarantineView, SetAsideRow

_SHORT = 12
"""Most partitions of a reason to write out."""
_MADE_BY = {"line": "line", "cast": "value", "rule": "rule", "transform": "transform"}


def render_quarantine(view: QuarantineView, width: int) -> list[str]:
    """Counts by reason, then samples."""
    total = sum(reason.rows for reason in view.reasons)
    lines = flow([view.run_id, view.product, f"{plural(total, 'row')} in quarantine"], width)
    lines += flow([view.table], width, "  ") if view.table else []
    lines += render_input_rows(view.inputs, width)
    if view.reasons:
        found = [
            (
                format_exact(one.rows),
                one.input,
                _MADE_BY.get(one.kind, one.kind),
                f"{one.reason}   {_format_partitions(one.partitions, view)}",
            )
            for one in view.reasons
        ]
        lines += ["", *format_columns(found, width, right=(0,))]
    elif not view.inputs:
        lines.append("  this run takes no rows out: its inputs have no columns, eras or row rules")
    for row in view.rows:
        lines += ["", *_render_row(row, width)]
    if view.masked and view.rows:
        lines += ["", *wrap(f"masked: {', '.join(view.masked)}", width)]
    return lines


def render_input_rows(inputs: Mapping[str, Mapping[str, int | str]], width: int) -> list[str]:
    """One line per input: rows in = used + quarantined + suppressed."""
    lines: list[str] = []
    for name, rows in inputs.items():
        aside = int(rows.get("rows_set_aside", 0))
        if "rows_in" not in rows:
            told = [f"the transform set {plural(aside, 'row')} aside"]
        else:
            quarantined, suppressed = _format_count(rows["rows_quarantined"]), _format_count(rows["rows_suppressed"])
            used = f"{_format_count(rows['rows_used'])} used" if "rows_used" in rows else "used"
            out = f"{quarantined} quarantined + {suppressed} suppressed"
            told = [f"{_format_count(rows['rows_in'])} rows in = {used} + {out}"]
            told += [f"{format_exact(aside)} of the used set aside by the transform"] if aside else []
        lines += format_labelled(name, told, width, 10)
    return lines


def _format_count(count: int | str) -> str:
    return count if isinstance(count, str) else format_exact(count)


def _format_partitions(partitions: tuple[str, ...], view: QuarantineView) -> str:
    if partitions == ("*",):
        return ""
    return (
        format_partitions(view.grain, list(partitions))
        if len(partitions) <= _SHORT
        else plural(len(partitions), "partition")
    )


def _render_row(row: SetAsideRow, width: int) -> list[str]:
    place = "" if row.partition == "*" else row.partition
    lines = flow([row.reason, place, f"chunk {row.chunk_id}"], width)
    lines += wrap(row.origin, width, "  ")
    return [*lines, *wrap(json.dumps(row.row, ensure_ascii=False), width, "  ")]
