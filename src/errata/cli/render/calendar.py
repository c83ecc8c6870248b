"""Render the partitions of a run as a calendar: compact for 45 days, one page for 1,825. Pure.

Up to about a hundred days are months of weeks, side by side; more are one character per day, half a year per line.
Hours are days by hours, months are years by months, years are decades, values are a list.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date

from errata.cli.render.layout import GAP, flow, pad
from errata.model.partition import NULL, Grain, sort_oldest_first

COMPACT_DAYS = 100
SIGNS = {
    "waiting": "·",
    "running": "▶",
    "staged": "▣",
    "failed": "✗",
    "published": "✓",
    "rolled back": "↺",
    "superseded": "»",
    "cancelled": "–",
}
WORDS = {
    "pending": "waiting",
    "planned": "waiting",
    "done": "staged",
    "unpublished": "staged",
    "validated": "staged",
    "quarantined": "failed",
    "accepted": "published",
    "rolled_back": "rolled back",
}


def to_state_word(state: str) -> str:
    """The legend's word for a partition's state."""
    return WORDS.get(state, state)


def render_calendar(grain: str, states: Mapping[str, str], width: int) -> list[str]:
    """The grid, without a legend."""
    kind = Grain(grain)
    signs = {name: SIGNS.get(to_state_word(state), "?") for name, state in states.items()}
    times = [name for name in sort_oldest_first(kind, signs) if name != NULL]
    draw: Callable[[Sequence[str], Mapping[str, str], int], list[str]] = {
        Grain.HOUR: _draw_hours,
        Grain.DAY: _draw_weeks if len(times) <= COMPACT_DAYS else _draw_half_years,
        Grain.MONTH: _draw_months,
        Grain.YEAR: _draw_names,
        Grain.VALUE: _draw_names,
    }[kind]
    lines = draw(times, signs, width) if times else []
    return [*lines, *([f"  {NULL} {signs[NULL]}"] if NULL in signs else [])]


def _draw_weeks(days: Sequence[str], signs: Mapping[str, str], width: int) -> list[str]:
    blocks = [_draw_month(month, signs) for month in _unique(day[:7] for day in days)]
    side_by_side = max(1, (width - 2 + 4) // (20 + 4))
    lines: list[str] = []
    for n in range(0, len(blocks), side_by_side):
        row = blocks[n : n + side_by_side]
        height = max(len(block) for block in row)
        tall = [block + [""] * (height - len(block)) for block in row]
        lines += ["  " + "    ".join(pad(line, 20) for line in pieces).rstrip() for pieces in zip(*tall, strict=True)]
    return lines


def _draw_month(month: str, signs: Mapping[str, str]) -> list[str]:
    year, number = int(month[:4]), int(month[5:7])
    lines = [month, "M  T  W  T  F  S  S"]
    for week in calendar.Calendar().monthdatescalendar(year, number):
        cells = [signs.get(day.isoformat(), " ") if day.month == number else " " for day in week]
        if any(cell != " " for cell in cells):
            lines.append("  ".join(cells))
    return lines


def _draw_half_years(days: Sequence[str], signs: Mapping[str, str], width: int) -> list[str]:
    lines: list[str] = []
    per_line = 2 if width >= 78 else 1
    for year in _unique(day[:4] for day in days):
        lines.append(f"  {year}")
        shown = _unique(day[:7] for day in days if day[:4] == year)
        half = (len(shown) + 1) // 2 if per_line == 2 else len(shown)
        for n in range(half):
            pieces = [f"{month[5:7]}  {_draw_days(month, signs)}" for month in shown[n::half]]
            lines.append("  " + GAP.join(pad(piece, 35) for piece in pieces).rstrip())
    return lines


def _draw_days(month: str, signs: Mapping[str, str]) -> str:
    year, number = int(month[:4]), int(month[5:7])
    length = calendar.monthrange(year, number)[1]
    return "".join(signs.get(date(year, number, n).isoformat(), " ") for n in range(1, length + 1))


def _draw_hours(hours: Sequence[str], signs: Mapping[str, str], _width: int) -> list[str]:
    def row(day: str) -> str:
        return f"  {day}  " + "".join(signs.get(f"{day}T{n:02d}", " ") for n in range(24)).rstrip()

    return ["              0     6     12    18", *(row(day) for day in _unique(hour[:10] for hour in hours))]


def _draw_months(months: Sequence[str], signs: Mapping[str, str], _width: int) -> list[str]:
    def row(year: str) -> str:
        return f"  {year}  " + " ".join(signs.get(f"{year}-{n:02d}", " ") for n in range(1, 13)).rstrip()

    return ["        J F M A M J J A S O N D", *(row(year) for year in _unique(month[:4] for month in months))]


def _draw_names(names: Sequence[str], signs: Mapping[str, str], width: int) -> list[str]:
    return flow((f"{signs[name]} {name}" for name in names), width, "  ")


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
