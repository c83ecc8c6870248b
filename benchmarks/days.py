"""Many small days: what governance costs at 1,825 partitions, and how far it is ahead of a job per day."""

from __future__ import annotations

from pathlib import Path

from benchmarks.lake import Shape, make
from benchmarks.overhead import NAMES, READING, files_and_commits, ways
from benchmarks.report import Goal, cases, goals, heading
from benchmarks.rounds import REPS, alternate

__all__ = ["main"]

STEP = 10


def main(root: Path, *, quick: bool) -> None:
    """Goal 2 and goal 4 at 1,825 days of the same 2.25 M rows."""
    days, rows = (30, 50) if quick else (1825, 1233)
    # with this many accounts, nine of ten rows are groups of one
    lake = make(root / "lake", Shape(days, rows, int(rows / 0.215)))
    acts = {name: act for name, act in ways(lake).items() if name in ("bare", "gate")}
    acts["by day"] = lambda: lake.by_day(STEP)
    found = alternate(acts, reps=max(1, REPS - 1), warm=1, extra=1)
    heading(
        f"Many days: {days:,} × {rows:,} rows",
        f"As above, but the output has 90 % of the input's rows. The loop runs one job for every {STEP}th day, and its "
        f"ratio is multiplied by {STEP}.",
    )
    cases(found, "bare", {**NAMES, "by day": f"a loop over every {STEP}th day"})
    goals(
        Goal("governed with validation ÷ one job, CPU", found.ratio("gate", "bare", "cpu"), at_most=1.25, why=READING),
        Goal("a job per day ÷ governed with validation, wall", found.ratio("by day", "gate", times=STEP), at_least=10),
    )
    files_and_commits(lake, plain=False)
    lake.close()
