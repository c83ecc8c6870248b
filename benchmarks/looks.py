"""Looks and trials of the demo project as a person types them: CPU of whole commands, and of an older checkout beside.

``BENCH_BEFORE`` names the Python of another checkout (``…/.venv/bin/python``), which runs the same commands in the same
rounds. Both read one project; only the diff of ``diff, first`` is removed before each time.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from examples.finsight import generate, workshop

from benchmarks.process import Done, run
from benchmarks.report import Goal, cases, goals, heading, note
from benchmarks.rounds import Ratio, Rounds, alternate

__all__ = ["main"]

PRODUCT, TABLE, DAY = "fin.daily_revenue", "lake.fin.daily_revenue", "2026-01-17"
SPAN = ("--from", "2026-01-01", "--to", "2026-02-15")
BEFORE = " (before)"
AT_MOST = {"status": 0.7, "show": 0.7, "status RUN": 1.5, "approve": 1.5, "why": 1.5, "check": 1.5, "plan": 1.5}
"""CPU seconds; from `status RUN` on they look at the table, two of them for live writes since the plan."""
TRY_WALL = 12.0


def main(root: Path, *, quick: bool) -> None:
    """The goals of fast looks."""
    project = root / "finsight"
    workshop.lay_out(project)
    generate.generate(project / "lake", rows_per_day=200 if quick else generate.ROWS_PER_DAY)
    run(workshop.python("history", str(project)), cwd=workshop.ROOT, env=workshop.environment())
    looks = _Looks(project)
    pythons = {"": sys.executable} | ({BEFORE: before} if (before := os.environ.get("BENCH_BEFORE")) else {})
    acts = {f"{name}{mark}": act for mark, python in pythons.items() for name, act in looks.acts(python).items()}
    quiet = alternate({name: act for name, act in acts.items() if not _starts_java(name)}, warm=1)
    long = alternate({name: act for name, act in acts.items() if _starts_java(name)}, warm=1)
    heading("Looks", "Whole commands on the demo project (60 days), with compiled bytecode.")
    cases(quiet)
    goals(
        *(Goal(f"`errata {name}`, CPU s", quiet.seconds(name, "cpu"), at_most=most) for name, most in AT_MOST.items())
    )
    _compare(quiet, [name for name in acts if name in quiet.rounds[0]])
    note("Commands that start Java, and the diff that was kept:\n")
    cases(long)
    goals(
        Goal("`errata try` of one day, wall s", long.seconds("try"), at_most=TRY_WALL),
        Goal("`errata diff` again ÷ first, CPU", quiet_ratio(quiet, long), at_most=0.1),
    )
    _compare(long, [name for name in acts if name in long.rounds[0]])


def quiet_ratio(quiet: Rounds, long: Rounds) -> Ratio:
    """CPU of a diff that was kept, over that of a diff that is computed."""
    first = long.seconds("diff, first", "cpu").value
    return Ratio.of([one.cpu / first for one in quiet.of("diff, again")])


def _compare(found: Rounds, names: Sequence[str]) -> None:
    pairs = [name for name in names if f"{name}{BEFORE}" in names]
    ratios = [f"{name} {found.ratio(name, name + BEFORE, 'cpu').value:.2f}" for name in pairs]
    if ratios:
        note(f"CPU ÷ before, in the same rounds: {', '.join(ratios)}.")


def _starts_java(name: str) -> bool:
    # an older checkout keeps no diff
    return name.removesuffix(BEFORE) in ("try", "diff, first") or name == f"diff, again{BEFORE}"


class _Looks:
    """The commands, on a project with one validated run and one that is planned beside it."""

    _plan = ("plan", PRODUCT, *SPAN, "--reason", "another", "--override", "overlap=bench")

    def __init__(self, project: Path) -> None:
        self.project = project
        python, ana, bo = sys.executable, ("--as", "ana"), ("--as", "bo")
        planned = self._ask(python, *ana, "plan", PRODUCT, *SPAN, "--reason", "bench").answer
        self.run = planned["run_id"]
        self._ask(python, *bo, "approve", self.run, "--digest", planned["manifest_digest"])
        self._ask(python, *ana, "run", self.run)
        self._ask(python, *bo, "validate", self.run, "--accept", "sum(revenue_usd)=bench")
        self._ask(python, "diff", self.run)
        self.waiting = self._ask(python, *ana, *self._plan).answer

    def acts(self, python: str) -> dict[str, Callable[[], object]]:
        """Every command, run by this Python."""
        words = {
            "--help": ("--help",),
            "status": ("status",),
            "status RUN": ("status", self.run),
            "show": ("show", self.run),
            "approve": ("--as", "bo", "approve", self.waiting["run_id"], "--digest", self.waiting["manifest_digest"]),
            "why": ("why", TABLE, DAY),
            "check": ("check",),
            "plan": ("--as", "ana", *self._plan),
            "diff, again": ("diff", self.run),
            "try": ("--as", "ana", "try", PRODUCT, DAY),
        }
        found: dict[str, Callable[[], object]] = {
            name: lambda words=words: self._ask(python, *words)  # type: ignore[misc]
            for name, words in words.items()
        }
        return found | {"diff, first": lambda: self._first_diff(python)}

    def _first_diff(self, python: str) -> None:
        kept = self.project / ".errata" / "diffs"
        aside = kept.with_name("diffs-aside")
        if kept.exists():
            kept.rename(aside)
        try:
            self._ask(python, "diff", self.run)
        finally:
            if aside.exists():
                shutil.rmtree(kept, ignore_errors=True)
                aside.rename(kept)

    def _ask(self, python: str, *words: str) -> Done:
        command = [python, "-m", "errata", "-C", str(self.project), "--json", "-y", *words]
        return run(command, env=workshop.environment())
