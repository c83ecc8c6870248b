"""One session, a job per day: how far governed chunks with validation are ahead at 45 and 180 days of equal data."""

from __future__ import annotations

from pathlib import Path

from benchmarks.lake import Shape, make
from benchmarks.report import Goal, cases, goals, heading
from benchmarks.rounds import REPS, alternate

__all__ = ["main"]

WANTED = {45: 2.0, 180: 4.0}
QUICK = {3: 0.0, 6: 0.0}
NAMES = {"governed": "governed: count, checksum, null and rule checks", "by day": "a bare job per day, one session"}


def main(root: Path, *, quick: bool) -> None:
    """Goal 4."""
    for days, must in (QUICK if quick else WANTED).items():
        rows = (3_000 if quick else 2_250_000) // days
        lake = make(root / f"lake{days}", Shape(days, rows, int(rows / 0.215)))
        found = alternate({"governed": lake.governed, "by day": lake.by_day}, reps=max(1, REPS - 1), warm=1, extra=1)
        heading(f"A job per day: {days} × {rows:,} rows", "The same number of rows, in more and smaller days.")
        cases(found, "governed", NAMES)
        goals(Goal("a job per day ÷ governed with validation, wall", found.ratio("by day", "governed"), at_least=must))
        lake.close()
