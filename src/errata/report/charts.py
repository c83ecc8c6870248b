"""Draw charts as SVG: two series over partitions, and the spread of a column before and after. Pure.

Before is dashed with hollow points, after is solid with filled ones, so the two differ in print and for the
colour-blind. Every chart has a table of its numbers next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from math import floor, isfinite, log10

from errata.model.diff import Profile
from errata.text.markup import Child, Markup, el, format_coordinate
from errata.text.numbers import format_short

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 28
MOST_POINTS = 120
"""With more points, markers are left out."""


def draw_line_chart(
    names: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    title: str,
    words: tuple[str, str],
) -> Markup:
    """Two lines over the partitions; a gap where a side has no number."""
    known = [value for value in (*before, *after) if value is not None]
    if not known:
        return el("p", "no numbers to draw", class_="dim")
    low, high, step = _choose_scale(min(known), max(known))
    span = max(len(names) - 1, 1)

    def x(n: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (n / span if len(names) > 1 else 0.5)

    def y(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (value - low) / (high - low))

    parts: list[Child] = [el("title", title)]
    tick = low
    while tick <= high + step / 2:
        parts.append(el("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(tick), y2=y(tick), class_="grid"))
        parts.append(el("text", format_short(_to_decimal(tick)), x=_LEFT - 8, y=y(tick) + 4, text_anchor="end"))
        tick += step
    for n in _pick_labels(len(names)):
        anchor = "start" if n == 0 and len(names) > 1 else "end" if n == len(names) - 1 and n else "middle"
        parts.append(el("text", names[n], x=x(n), y=HEIGHT - 8, text_anchor=anchor))
    marked = len(names) <= MOST_POINTS
    for values, kind in ((before, "before"), (after, "after")):
        parts += [el("polyline", points=line, class_=f"line {kind}") for line in _split_at_gaps(values, x, y)]
        if marked:
            for n, value in enumerate(values):
                if value is not None:
                    told = el("title", f"{names[n]} {kind}: {_to_decimal(value)}")
                    parts.append(el("circle", told, cx=x(n), cy=y(value), r=2.6, class_=f"dot {kind}"))
    label = f"{title}: {words[0]} dashed, {words[1]} solid, over {names[0]} to {names[-1]}"
    return el("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, class_="chart")


def _split_at_gaps(values: Sequence[float | None], x: Callable[[int], float], y: Callable[[float], float]) -> list[str]:
    runs: list[list[str]] = [[]]
    for n, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(f"{format_coordinate(x(n))},{format_coordinate(y(value))}")
    return [" ".join(run) for run in runs if len(run) > 1]


def draw_box_chart(name: str, before: Profile, after: Profile) -> Markup | None:
    """Middle half as a box, 5 % to 95 % as a line, median as a bar; before above after, on one scale."""
    sides = [_parse_points(side) for side in (before, after)]
    known = [value for points in sides if points for value in points]
    if not known:
        return None
    low, high, _ = _choose_scale(min(known), max(known))
    width, row = 320, 22

    def x(value: float) -> float:
        return 4 + (width - 8) * (value - low) / (high - low)

    parts: list[Child] = [el("title", f"spread of {name} before and after")]
    for n, (points, kind) in enumerate(zip(sides, ("before", "after"), strict=True)):
        if points is None:
            continue
        p05, p25, p50, p75, p95 = points
        middle = row * n + row / 2
        parts += [
            el("line", x1=x(p05), x2=x(p95), y1=middle, y2=middle, class_=f"whisker {kind}"),
            el("rect", x=x(p25), y=middle - 6, width=max(x(p75) - x(p25), 1.5), height=12, class_=f"box {kind}"),
            el("line", x1=x(p50), x2=x(p50), y1=middle - 8, y2=middle + 8, class_=f"median {kind}"),
        ]
    label = f"spread of {name}: before above, after below; the numbers are next to it"
    return el("svg", *parts, viewBox=f"0 0 {width} {row * 2}", role="img", aria_label=label, class_="boxes")


def _parse_points(side: Profile) -> tuple[float, ...] | None:
    try:
        points = tuple(float(value) for value in side.quantiles.values())
    except (TypeError, ValueError):
        return None
    return points if len(points) == 5 and all(isfinite(p) for p in points) else None


def _choose_scale(low: float, high: float) -> tuple[float, float, float]:
    """Round ends and a round step that enclose the values with a small margin, and zero if it is near."""
    if high == low:
        air = abs(high) * 0.1 or 1.0
        low, high = low - air, high + air
    if 0 < low < (high - low) * 0.6:
        low = 0.0
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = floor(low / step) * step
    last = first
    while last < high:
        last += step
    return first, last, step


def _pick_labels(count: int) -> list[int]:
    wanted = min(count, 5)
    return sorted({round(n * (count - 1) / max(wanted - 1, 1)) for n in range(wanted)})


def _to_decimal(value: float) -> Decimal:
    return Decimal(format(value, ".12g"))
