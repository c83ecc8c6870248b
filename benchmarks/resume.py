"""Killed with −9 after two thirds of the chunks, then started again: what is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import errata as api
from benchmarks.clock import sample
from benchmarks.lake import Lake, Shape, make
from benchmarks.process import Done, errata, family
from benchmarks.report import Goal, goals, heading, lines
from benchmarks.rounds import Ratio

__all__ = ["main"]

IN_FLIGHT = 2


@dataclass(frozen=True)
class Round:
    """Seconds of one round, and what the second start had to compute again."""

    uninterrupted: float
    until_killed: float
    done_by_then: int
    resumed: float
    start: float
    again: int

    @property
    def ratio(self) -> float:
        """Both runs together without one start, against the uninterrupted one."""
        return (self.until_killed + self.resumed - self.start) / self.uninterrupted


def main(root: Path, *, quick: bool) -> None:
    """Goal 10."""
    days, rows, rounds = (6, 200, 1) if quick else (45, 1_200_000, 2)
    # every day is above one byte, so every day is a chunk
    lake = make(root / "lake", Shape(days, rows, rows // 4, chunk="1"))
    found = [_round(lake, days) for _ in range(rounds)]
    heading(
        f"Killed and resumed: {days} chunks × {rows:,} rows",
        f"`errata run` as a process with {IN_FLIGHT} chunks in flight. It and its JVM get SIGKILL when two thirds of "
        "the chunks are done; then `errata run` starts again. The time of one start is subtracted from the sum: "
        "Python, JVM, session and first use of everything. It is measured as the time of a run with one chunk, minus "
        "the time of a chunk in the whole run.",
    )
    head = ("uninterrupted s", "until killed s", "chunks done by then", "resumed s", "one start s", "recomputed")
    lines(
        head,
        [
            (f"{one.uninterrupted:.1f}", f"{one.until_killed:.1f}", str(one.done_by_then), f"{one.resumed:.1f}",
             f"{one.start:.1f}", str(one.again))
            for one in found
        ],
    )  # fmt: skip
    ratio = Ratio.of([one.ratio for one in found])
    again = Ratio.of([float(one.again) for one in found])
    goals(
        Goal("killed + resumed − one start ÷ uninterrupted", ratio, at_most=round(1.03 + IN_FLIGHT / days, 2)),
        Goal("chunks computed again", again, at_most=IN_FLIGHT, digits=0),
    )
    lake.close()


def _round(lake: Lake, days: int) -> Round:
    done: list[Done] = []
    single = _planned(lake)
    one = _seconds(lambda: errata(lake.root, "run", single, "--max-chunks", "1"))
    lake.client.cancel(single, reason="the trial is over")
    whole = _planned(lake)
    uninterrupted = _seconds(lambda: errata(lake.root, "run", whole))
    lake.client.cancel(whole, reason="the trial is over")
    broken = _planned(lake)
    until_killed, finished = _killed(lake, broken, days * 2 // 3)
    resumed = _seconds(lambda: done.append(errata(lake.root, "run", broken)))
    lake.client.cancel(broken, reason="the trial is over")
    start = one - (uninterrupted - one) / (days - 1)
    return Round(uninterrupted, until_killed, finished, resumed, start, done[0].answer["recomputed"])


def _planned(lake: Lake) -> str:
    planned = lake.plan()
    lake.client.approve(planned.id, digest=planned.digest)
    return planned.id


def _seconds(act: object) -> float:
    return sample(act).wall  # type: ignore[arg-type]


def _killed(lake: Lake, run_id: str, chunks: int) -> tuple[float, int]:
    """Seconds until the kill, and chunks that were done by then."""
    started = time.monotonic()
    command = [sys.executable, "-m", "errata", "-C", str(lake.root), "--json", "run", run_id]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with api.open(str(lake.root)) as watching:
        while watching._workspace.ledger.progress.counts(run_id).done < chunks and worker.poll() is None:  # noqa: SLF001
            time.sleep(0.1)
    for pid in family(worker.pid):
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    return time.monotonic() - started, lake.client._workspace.ledger.progress.counts(run_id).done  # noqa: SLF001
