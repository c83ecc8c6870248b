"""One day with ten times the rows ÷ even days of the same total: does a fat day hold the others up?"""

from __future__ import annotations

from pathlib import Path

from benchmarks.lake import Shape, make
from benchmarks.report import Goal, cases, goals, heading
from benchmarks.rounds import REPS, alternate

__all__ = ["main"]


def main(root: Path, *, quick: bool) -> None:
    """Goal 15: 45 days of which one counts ten, against 54 days."""
    days, rows = (5, 500) if quick else (45, 50_000)
    fat = make(root / "fat", Shape(days, rows, rows // 4, fat=10))
    same = rows * (days + 9) // days
    even = make(root / "even", Shape(days, same, same // 4))
    found = alternate({"even": even.governed, "fat": fat.governed}, reps=REPS, warm=2)
    heading(
        f"Skew: one day of {rows * 10:,} rows among {rows:,}",
        "Governed with validation. Both have the same number of rows.",
    )
    cases(found, "even", {"even": "even days", "fat": "one day with ten times the rows"})
    goals(Goal("one large day ÷ even days, wall", found.ratio("fat", "even"), at_most=1.30))
    fat.close()
    even.close()
