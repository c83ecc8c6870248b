"""A finished request, asked for again, as whole commands: no Spark job, no JVM, no waiting."""

from __future__ import annotations

from pathlib import Path

from benchmarks.clock import sample
from benchmarks.lake import Shape, make
from benchmarks.process import errata
from benchmarks.report import Goal, cases, goals, heading
from benchmarks.rounds import REPS, Ratio, Rounds

__all__ = ["main"]


def main(root: Path, *, quick: bool) -> None:
    """Goal 11."""
    lake = make(root / "lake", Shape(*((6, 100, 50) if quick else (45, 5_000, 1_000))))
    lake.governed()
    lake.close()
    logs = root / "lake/.errata/logs"
    before = {path: path.stat().st_size for path in logs.rglob("*")}
    found = Rounds()
    for _ in range(REPS):
        words = ("run", "validate", "publish")
        found.rounds.append({w: sample(lambda w=w: errata(lake.root, w, lake.last)) for w in words})
    grown = {path: path.stat().st_size for path in logs.rglob("*")} != before
    heading("Repeated commands", "`errata run`, `validate` and `publish` of a published run, each as a whole process.")
    cases(found)
    slowest = max(("run", "validate", "publish"), key=lambda w: found.seconds(w).value)
    goals(
        Goal("slowest of the three, seconds", found.seconds(slowest), at_most=2.0),
        Goal("commands that started Java", Ratio.of([float(grown)]), at_most=0, digits=0),
    )
