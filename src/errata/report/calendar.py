"""Draw partitions as a calendar, shaded by how much changed; every cell also says it in words. Pure.

Up to about a hundred days are months of weeks; more are months by days, one sign each. Hours are days by hours, months
are years by months, years and values are a list.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from errata.model.diff import MetricMoves, PartitionDiff
from errata.model.partition import NULL, Grain, sort_oldest_first
from errata.report.html import let_scroll
from errata.text.markup import Child, Markup, el
from errata.text.numbers import format_change, format_exact

COMPACT_DAYS = 100
LEVELS = ("unchanged", "up to 25 %", "up to 50 %", "up to 75 %", "more than 75 %")
SIGNS = ("·", "░", "▒", "▓", "█")


@dataclass(frozen=True, slots=True)
class Cell:
    """A partition: its shade, a few characters, and a sentence."""

    level: int
    text: str
    told: str
    share: float = 0.0  # of its rows that changed


def build_cells(parts: Iterable[PartitionDiff], metric: MetricMoves | None) -> dict[str, Cell]:
    """The cell of each partition: movement of the first declared metric, otherwise the share of rows that changed."""
    moves = {move.partition: move for move in metric.partitions} if metric else {}
    cells = {}
    for part in parts:
        touched, size = part.touched, part.rows
        share = touched / size if size else 0.0
        level = 0 if not touched else min(4, 1 + int(share * 4 - 1e-9))
        told = f"{part.partition}: {format_exact(touched)} of {format_exact(size)} rows changed"
        if part.method == "same":
            told = f"{part.partition}: unchanged, checksums agree ({format_exact(size)} rows)"
        move = moves.get(part.partition)
        if move and move.percent is not None and metric:
            told += f"; {metric.name} {format_change(move.before, move.after)}"
        text = (
            format_change(move.before, move.after).removesuffix(" %")
            if move and move.percent
            else f"{share * 100:.0f} %"
        )
        cells[part.partition] = Cell(level, text if touched else "same", told, share)
    return cells


def draw_calendar(grain: str, cells: Mapping[str, Cell]) -> Markup:
    """The calendar grid."""
    kind = Grain(grain)
    names = [name for name in sort_oldest_first(kind, cells) if name != NULL]
    match kind:
        case Grain.DAY if len(names) <= COMPACT_DAYS:
            blocks = [_render_month(month, cells) for month in _unique(name[:7] for name in names)]
        case Grain.DAY:
            blocks = [_render_year(year, names, cells) for year in _unique(name[:4] for name in names)]
        case Grain.HOUR:
            rows = [(day, [f"{day}T{n:02d}" for n in range(24)]) for day in _unique(name[:10] for name in names)]
            blocks = [_render_table("by hour", [f"{n:02d}" for n in range(24)], rows, cells, tight=True)]
        case Grain.MONTH:
            rows = [(y, [f"{y}-{n:02d}" for n in range(1, 13)]) for y in _unique(name[:4] for name in names)]
            blocks = [_render_table("by month", list("JFMAMJJASOND"), rows, cells)]
        case _:
            blocks = [_render_list(names, cells)]
    if NULL in cells:
        blocks.append(_render_list([NULL], cells))
    return el("div", blocks, class_="calendar")


def render_legend(grain: str, cells: Mapping[str, Cell], metric: MetricMoves | None) -> Markup:
    """What the shades, the bars or signs, and the numbers mean."""
    tight = Grain(grain) is Grain.HOUR or (Grain(grain) is Grain.DAY and len(cells) > COMPACT_DAYS)
    keys = [
        [
            el("span", sign if tight else _render_fill(n / 4), class_=f"key l{n}", aria_hidden="true"),
            el("span", f"{word} of rows" if n else word),
        ]
        for n, (sign, word) in enumerate(zip(SIGNS, LEVELS, strict=True))
    ]
    number = f"the number is how far {metric.name} moved, in percent" if metric else "the number is the share of rows"
    told = [el("span", key, class_="pair") for key in keys]
    return el("p", "rows changed: ", told, None if tight else el("span", number), class_="legend")


def _render_fill(share: float) -> Markup:
    """A share as a bar below the number, so that the shade is not the only indication."""
    return el("i", el("i", style=f"width:{share * 100:.0f}%"), class_="fill")


def _render_month(month: str, cells: Mapping[str, Cell]) -> Markup:
    year, number = int(month[:4]), int(month[5:7])
    weeks = calendar.Calendar().monthdatescalendar(year, number)
    rows = [[day.isoformat() if day.month == number else None for day in week] for week in weeks]
    body = [[_render_cell(name, cells, f"{int(name[8:])}" if name else "") for name in row] for row in rows]
    head = el(
        "tr", [el("th", day, scope="col", abbr=full) for day, full in zip("MTWTFSS", calendar.day_name, strict=True)]
    )
    return el(
        "table", el("caption", month), el("thead", head), el("tbody", [el("tr", row) for row in body]), class_="month"
    )


def _render_year(year: str, names: Sequence[str], cells: Mapping[str, Cell]) -> Markup:
    months = _unique(name[:7] for name in names if name[:4] == year)
    rows = [(month, [_iso_day(month, n) for n in range(1, 32)]) for month in months]
    return _render_table(year, [str(n) for n in range(1, 32)], rows, cells, tight=True)


def _iso_day(month: str, n: int) -> str | None:
    try:
        return date(int(month[:4]), int(month[5:7]), n).isoformat()
    except ValueError:
        return None


def _render_table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str | None]]],
    cells: Mapping[str, Cell],
    *,
    tight: bool = False,
) -> Markup:
    top = el("tr", el("td"), [el("th", one, scope="col") for one in head])
    body = [
        el("tr", el("th", name, scope="row"), [_render_cell(one, cells, "", tight=tight) for one in row])
        for name, row in rows
    ]
    kind = "tight" if tight else "wide"
    inner = el("table", el("caption", caption), el("thead", top), el("tbody", body), class_=kind)
    return let_scroll(inner, f"calendar {caption}")


def _render_list(names: Sequence[str], cells: Mapping[str, Cell]) -> Markup:
    shown = [(name, cells[name]) for name in names]
    items = [el("li", name, " ", el("b", cell.text), class_=f"l{cell.level}", title=cell.told) for name, cell in shown]
    return el("ul", items, class_="values")


def _render_cell(name: str | None, cells: Mapping[str, Cell], day: str, *, tight: bool = False) -> Markup:
    if name is None:
        return el("td", class_="void")
    cell = cells.get(name)
    if cell is None:
        return el("td", el("small", day), class_="out", title=f"{name}: outside the scope")
    words = [el("small", day) if day else None, el("b", cell.text), _render_fill(cell.share)]
    shown: Child = SIGNS[cell.level] if tight else words
    return el("td", shown, class_=f"l{cell.level}", title=cell.told)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
