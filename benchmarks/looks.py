"""Looks and trials of the demo project as a person types them: CPU of whole commands, and of an older checkout beside.

``BENCH_BEFORE`` names the Python of another checkout (``…/.venv/bin/python``). It runs the same commands in the same
rounds on a project of its own, because an older Errata does not open a newer ledger. Only the diff of ``diff, first``
is removed before each time.
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
    pythons = {"": sys.executable} | ({BEFORE: before} if (before := os.environ.get("BENCH_BEFORE")) else {})
    acts: dict[str, Callable[[], object]] = {}
    for n, (mark, python) in enumerate(pythons.items()):
        project = root / f"finsight-{n}"
        workshop.lay_out(project)
        generate.generate(project / "lake", rows_per_day=200 if quick else generate.ROWS_PER_DAY)
        run(workshop.python("history", str(project)), cwd=workshop.ROOT, env=workshop.environment())
        acts |= {f"{name}{mark}": act for name, act in _Looks(project, python).acts().items()}
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

    def __init__(self, project: Path, python: str) -> None:
        self.project, self.python = project, python
        ana, bo = ("--as", "ana"), ("--as", "bo")
        planned = self._ask(*ana, "plan", PRODUCT, *SPAN, "--reason", "bench").answer
        self.run = planned["run_id"]
        self._ask(*bo, "approve", self.run, "--digest", planned["manifest_digest"])
        self._ask(*ana, "run", self.run)
        self._ask(*bo, "validate", self.run, "--accept", "sum(revenue_usd)=bench")
        self._ask("diff", self.run)
        self.waiting = self._ask(*ana, *self._plan).answer

    def acts(self) -> dict[str, Callable[[], object]]:
        """Every command."""
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
            name: lambda words=words: self._ask(*words)  # type: ignore[misc]
            for name, words in words.items()
        }
        return found | {"diff, first": self._first_diff}

    def _first_diff(self) -> None:
        kept = self.project / ".errata" / "diffs"
        aside = kept.with_name("diffs-aside")
        if kept.exists():
            kept.rename(aside)
        try:
            self._ask("diff", self.run)
        finally:
            if aside.exists():
                shutil.rmtree(kept, ignore_errors=True)
                aside.rename(kept)

    def _ask(self, *words: str) -> Done:
        command = [self.python, "-m", "errata", "-C", str(self.project), "--json", "-y", *words]
        return run(command, env=workshop.environment())
