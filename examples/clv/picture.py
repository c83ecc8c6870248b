"""Draw when each year, and each table that follows, was computed in the demo, and from when on readers see it.

Reads the ledger of the demo and nothing else; the picture in the README is made with

    python -m examples.clv.picture build/demo/clv docs/images/campaign.svg
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from examples.clv.lake import VALUE

WIDTH, LEFT, RIGHT, TOP, ROW = 920, 272, 24, 116, 28
INK, PALE, LINE, COMPUTING, VISIBLE, KILLED = "#1f2933", "#616e7c", "#d9e0e7", "#a9c7ea", "#2f9e6b", "#c0392b"
_Scale = Callable[[float], float]
FONT = "-apple-system, 'Segoe UI', 'Liberation Sans', Helvetica, Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Bar:
    """One publication: what readers see from a moment on, and when it was computed. In seconds."""

    product: str
    partitions: tuple[str, ...]  # oldest first
    spans: tuple[tuple[float, float], ...]  # of computing; a killed worker leaves a gap
    visible: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The demo, in seconds from the first chunk."""

    bars: tuple[Bar, ...]  # in order of publication
    released: float  # by a person
    killed: float
    resumed: float

    @property
    def end(self) -> float:
        """When everything was visible."""
        return max(bar.visible for bar in self.bars)


def read_timeline(ledger: Path) -> Timeline:
    """The timeline of the campaign in a ledger."""
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as db:
        chunks = {
            (run, chunk): frozenset(json.loads(names))
            for run, chunk, names in db.execute("SELECT run_id, chunk_id, partitions FROM chunk")
        }
        attempts = db.execute("SELECT run_id, chunk_id, state, started_at, ended_at FROM attempt").fetchall()
        published = db.execute(
            "SELECT p.run_id, r.product, p.partitions, p.settled_at FROM publication AS p JOIN run AS r USING (run_id) "
            "WHERE p.kind = 'publish' AND p.state = 'committed' ORDER BY p.settled_at"
        ).fetchall()
        audit = db.execute("SELECT at, action FROM audit ORDER BY seq").fetchall()
    start = min(_seconds(started) for *_, started, _ in attempts)
    resumed = next(_seconds(at) for at, action in audit if action == "attempt.lost")
    # nothing was recorded between the kill and the next start
    killed = max(_seconds(at) for at, _ in audit if _seconds(at) < resumed - 1)
    bars = []
    for run, product, names, settled in published:
        inside = frozenset(json.loads(names))
        spans = [
            (_seconds(begun) - start, (killed if state == "lost" else _seconds(ended)) - start)
            for of, chunk, state, begun, ended in attempts
            if of == run and chunks[of, chunk] <= inside and (ended or state == "lost")
        ]
        bars.append(Bar(product, tuple(sorted(inside)), tuple(_join(spans)), _seconds(settled) - start))
    released = next(_seconds(at) for at, action in audit if action == "run.released")
    return Timeline(tuple(bars), released - start, killed - start, resumed - start)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _join(spans: Sequence[tuple[float, float]], gap: float = 4.0) -> Iterator[tuple[float, float]]:
    """Spans that touch or nearly touch as one."""
    now: tuple[float, float] | None = None
    for begun, ended in sorted(spans):
        if now and begun <= now[1] + gap:
            now = (now[0], max(now[1], ended))
        else:
            if now:
                yield now
            now = (begun, ended)
    if now:
        yield now


def draw(timeline: Timeline) -> str:
    """The timeline as SVG."""
    years = [bar for bar in timeline.bars if bar.product == VALUE]
    followers = [bar for bar in timeline.bars if bar.product != VALUE]
    scale = (WIDTH - LEFT - RIGHT) / (timeline.end * 1.04)
    rows = len(years) + len(followers) + 2
    bottom = TOP + rows * ROW + 6
    height = bottom + 34

    def x(second: float) -> float:
        return LEFT + second * scale

    body = [
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#ffffff" stroke="{LINE}"/>',
        _text(24, 34, _headline(timeline), size=17, weight=600),
        *_legend(24, 60),
        *_axis(timeline.end, x, bottom),
        *_moments(timeline, x, bottom),
    ]
    top = TOP
    days = sum(len(bar.partitions) for bar in years)
    body.append(_text(24, top + 19, f"{VALUE}, {days:,} days", weight=600))
    for bar in years:
        top += ROW
        body += _row(bar, top, f"{bar.partitions[0]} … {bar.partitions[-1]}", x, timeline.end)
    top += ROW
    body.append(_text(24, top + 19, "tables that are computed from it", weight=600))
    waits = max(bar.visible for bar in years)
    for bar in followers:
        top += ROW
        unit = "months" if len(bar.partitions[0]) == 7 else "days"
        middle = top + ROW / 2
        body.append(
            f'<line x1="{x(0):.1f}" x2="{x(waits):.1f}" y1="{middle}" y2="{middle}" stroke="{PALE}" '
            'stroke-width="1.2" stroke-dasharray="2 5"/>'
        )
        body += _row(bar, top, f"{bar.product}, {len(bar.partitions):,} {unit}", x, timeline.end)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="{FONT}" font-size="13" role="img">\n<title>{escape(_headline(timeline))}</title>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _headline(timeline: Timeline) -> str:
    newest = timeline.bars[0].visible
    return f"The newest year is in use after {_clock(newest)}, everything after {_clock(timeline.end)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _row(bar: Bar, top: float, label: str, x: _Scale, end: float) -> list[str]:
    drawn = [_text(24 + 12, top + 19, label, fill=PALE)]
    for begun, ended in bar.spans:
        drawn.append(_bar(x(begun), x(ended), top, COMPUTING))
    drawn.append(_bar(x(bar.visible), x(end * 1.04), top, VISIBLE))
    return drawn


def _bar(left: float, right: float, top: float, fill: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top + 7}" width="{max(2.0, right - left):.1f}" height="{ROW - 14}" rx="2" '
        f'fill="{fill}"/>'
    )


def _legend(left: float, top: float) -> list[str]:
    drawn = []
    for fill, words in ((COMPUTING, "computed beside the table"), (VISIBLE, "corrected: what readers see")):
        drawn.append(f'<rect x="{left}" y="{top}" width="14" height="14" rx="2" fill="{fill}"/>')
        drawn.append(_text(left + 21, top + 12, words, fill=PALE))
        left += 222
    drawn.append(
        f'<line x1="{left}" x2="{left + 26}" y1="{top + 7}" y2="{top + 7}" stroke="{PALE}" stroke-width="1.2" '
        'stroke-dasharray="2 5"/>'
    )
    drawn.append(_text(left + 34, top + 12, "waits for what it reads", fill=PALE))
    return drawn


def _axis(end: float, x: _Scale, bottom: float) -> list[str]:
    drawn = [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}" stroke="{LINE}"/>']
    step = 60 if end < 900 else 300
    for second in range(0, int(end) + 1, step):
        drawn.append(f'<line x1="{x(second):.1f}" x2="{x(second):.1f}" y1="{TOP}" y2="{bottom}" stroke="{LINE}"/>')
        words = f"{second // 60} min"
        drawn.append(_text(x(second), bottom + 18, words, fill=PALE, size=12, anchor="middle"))
    return drawn


def _moments(timeline: Timeline, x: _Scale, bottom: float) -> list[str]:
    killed, resumed, released = x(timeline.killed), x(timeline.resumed), x(timeline.released)
    down = f'<rect x="{killed:.1f}" y="{TOP}" width="{resumed - killed:.1f}" height="{bottom - TOP}" fill="#f8e4e1"/>'
    return [
        down,
        _mark(killed, bottom, KILLED),
        _text(killed, TOP - 10, "kill -9, then the same command", fill=KILLED, size=12),
        _mark(released, TOP + 2 * ROW, INK),
        _text(released + 3, TOP - 10, "released by a person", size=12, anchor="end"),
    ]


def _mark(left: float, bottom: float, stroke: str) -> str:
    return f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{TOP - 5}" y2="{bottom}" stroke="{stroke}" stroke-width="1.3"/>'


def _text(
    left: float, top: float, words: str, *, fill: str = INK, size: int = 13, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{left:.1f}" y="{top:.1f}" fill="{fill}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Draw what happened when in the demo.")
    parser.add_argument("project", type=Path)
    parser.add_argument("picture", type=Path)
    asked = parser.parse_args()
    timeline = read_timeline(asked.project.absolute() / ".errata" / "ledger.db")
    asked.picture.write_text(draw(timeline), encoding="utf-8")


if __name__ == "__main__":
    main()
