"""Rows that a run set aside: what became of each input's rows, why some went out, and what they look like. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from errata.cli.render.layout import columns, flow, labelled, wrap
from errata.cli.render.throttle import folded
from errata.text.numbers import exact, plural
from errata.views import QuarantineView, SetAsideRow

_SHORT = 12
"""Partitions of a reason that are written out."""
_MADE_BY = {"cast": "value", "rule": "rule", "transform": "transform"}


def quarantine_lines(view: QuarantineView, width: int) -> list[str]:
    """Counts by reason, then samples."""
    total = sum(reason.rows for reason in view.reasons)
    lines = flow([view.run_id, view.product, f"{plural(total, 'row')} in quarantine"], width)
    lines += flow([view.table], width, "  ") if view.table else []
    lines += input_rows_lines(view.inputs, width)
    if view.reasons:
        found = [
            (
                exact(one.rows),
                one.input,
                _MADE_BY.get(one.kind, one.kind),
                f"{one.reason}   {_where(one.partitions, view)}",
            )
            for one in view.reasons
        ]
        lines += ["", *columns(found, width, right=(0,))]
    elif not view.inputs:
        lines.append("  this run takes no rows out: its inputs have no columns, eras or row rules")
    for row in view.rows:
        lines += ["", *_row(row, width)]
    if view.masked and view.rows:
        lines += ["", *wrap(f"masked: {', '.join(view.masked)}", width)]
    return lines


def input_rows_lines(inputs: Mapping[str, Mapping[str, int]], width: int) -> list[str]:
    """One line an input: rows in = used + quarantined + suppressed."""
    lines: list[str] = []
    for name, rows in inputs.items():
        aside = rows.get("rows_set_aside", 0)
        if "rows_in" not in rows:
            told = [f"the transform set {plural(aside, 'row')} aside"]
        else:
            out = f"{exact(rows['rows_quarantined'])} quarantined + {exact(rows['rows_suppressed'])} suppressed"
            told = [f"{exact(rows['rows_in'])} rows in = {exact(rows['rows_used'])} used + {out}"]
            told += [f"{exact(aside)} of the used set aside by the transform"] if aside else []
        lines += labelled(name, told, width, 10)
    return lines


def _where(partitions: tuple[str, ...], view: QuarantineView) -> str:
    if partitions == ("*",):
        return ""
    return folded(view.grain, list(partitions)) if len(partitions) <= _SHORT else plural(len(partitions), "partition")


def _row(row: SetAsideRow, width: int) -> list[str]:
    place = "" if row.partition == "*" else row.partition
    lines = flow([row.reason, place, f"chunk {row.chunk_id}"], width)
    lines += wrap(row.origin, width, "  ")
    return [*lines, *wrap(json.dumps(row.row, ensure_ascii=False), width, "  ")]
