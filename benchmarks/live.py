"""A live one-day job beside a backfill: each on a core of its own, with and without a throttle that watches the job.

The live job runs in one process for the whole benchmark, so that it is warm; the backfill is ``errata run``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median, quantiles

from benchmarks.lake import FIRST, Lake, Shape, make, write_project
from benchmarks.process import errata, family, pinned
from benchmarks.report import Goal, goals, heading, lines
from benchmarks.rounds import Ratio

__all__ = ["main"]

WARM_JOBS = 80  # its JVM keeps compiling for about a minute
ALONE_JOBS = 30
LIMIT_SECONDS = 180
HEALTH = """
health:
  - name: live
    command: [cat, delay.txt]
    slow_above: 1.15
    pause_above: 1.35
    resume_below: 1.15
    every: 2s
"""


def main(root: Path, *, quick: bool) -> None:
    """Goal 14."""
    days, rows = (8, 500) if quick else (30, 100_000)
    shape = Shape(days, rows, rows // 4, chunk="1", cores=1)
    lake = make(root / "lake", shape)
    live = _start_live(lake.root)
    try:
        _await_jobs(live, lake.root, 1 if quick else WARM_JOBS)
        alone = _alone(live, lake.root, 3 if quick else ALONE_JOBS)
        (lake.root / "alone.txt").write_text(str(median(alone)))
        _signal(live, signal.SIGSTOP)
        base = _backfill(lake)
        _signal(live, signal.SIGCONT)
        beside = {} if quick else {"own core, no throttle": _beside(lake)}
        write_project(lake.root, Shape(**{**_fields(shape), "extra": HEALTH}))
        beside["own core, throttle watches the job"] = _beside(lake)
        if not quick:
            write_project(lake.root, Shape(**{**_fields(shape), "cores": 2}))
            beside["no core of its own, no throttle"] = _beside(lake, core=None)
            # the job's JVM keeps warming up, so its time alone at the end is the stricter measure
            alone = min(alone, _alone(live, lake.root, ALONE_JOBS), key=median)
        # on small data a backfill may end before a second job has run beside it
        beside = {name: (times if len(times) > 1 else alone, rate) for name, (times, rate) in beside.items()}
    finally:
        for pid in family(live.pid):
            os.kill(pid, signal.SIGKILL)
        live.wait()
    heading(
        f"A live job next to a backfill: {rows:,} rows a day",
        "The live job writes one day again and again. It is pinned to one core, and the backfill (`errata run`, a "
        "chunk per day, one core in Spark) to the other. p95 covers the jobs that ran during chunks, compared with the "
        "p95 of the job alone. Rate is chunks per second, compared with the backfill alone. The live job is measured "
        "alone before and after the backfills; the faster of the two counts.",
    )
    table = [("alone", *_times(alone, alone), f"{base:.2f}", "1")]
    table += [
        (name, *_times(times, alone), f"{rate:.2f}", f"{rate / base:.2f}") for name, (times, rate) in beside.items()
    ]
    lines(("live job", "jobs", "median s", "÷ alone", "p95, ÷ alone", "backfill chunks/s", "÷ alone"), table)
    times, rate = beside["own core, throttle watches the job"]
    goals(
        Goal("live job next to a throttled backfill ÷ alone, median", _ratio(times, alone, 0.5), at_most=1.25),
        Goal("the same, p95", _ratio(times, alone, 0.95), at_most=1.5),
        Goal("the backfill's rate ÷ alone", Ratio.of([rate / base]), at_least=0.5),
    )
    lake.close()


def _fields(shape: Shape) -> dict[str, object]:
    return {name: getattr(shape, name) for name in Shape.__slots__}


def _start_live(root: Path) -> subprocess.Popen[bytes]:
    with (root / "live.log").open("wb") as log:
        command = [*pinned(0), sys.executable, "-m", "benchmarks.live_job", str(root)]
        return subprocess.Popen(command, stdout=log, stderr=log)


def _alone(live: subprocess.Popen[bytes], root: Path, count: int) -> list[float]:
    """Seconds of this many jobs that run alone."""
    began, log = time.time(), root / "live.txt"
    _await_jobs(live, root, len(log.read_text().splitlines()) + count)
    return _between(root, began, time.time())


def _beside(lake: Lake, core: int | None = 1) -> tuple[list[float], float]:
    """Seconds of the live jobs while chunks ran, and the backfill's rate."""
    span: list[float] = []
    rate = _backfill(lake, core, span)
    return _between(lake.root, span[0], span[1]), rate


def _backfill(lake: Lake, core: int | None = 1, span: list[float] | None = None) -> float:
    """Chunks per second of one backfill, from its first finished chunk to its last."""
    end = (FIRST + timedelta(days=lake.shape.days)).isoformat()
    planned = errata(lake.root, "plan", "bench.daily", "--from", FIRST.isoformat(), "--to", end, "--reason",
                     f"bench {time.time()}").answer  # fmt: skip
    run_id = planned["run_id"]
    errata(lake.root, "approve", run_id, "--digest", planned["manifest_digest"])
    errata(lake.root, "run", run_id, core=core)
    entries = lake.client.audit_log(run_id)
    at = [datetime.fromisoformat(e.at).timestamp() for e in entries if e.action == "chunk.adopted"]
    lake.client.cancel(run_id, reason="the trial is over")
    if span is not None:
        span += [at[0], at[-1]]
    return (len(at) - 1) / (at[-1] - at[0])


def _await_jobs(live: subprocess.Popen[bytes], root: Path, count: int) -> None:
    """Wait until the live job has run this many times."""
    until, log = time.monotonic() + LIMIT_SECONDS, root / "live.txt"
    while not log.exists() or len(log.read_text().splitlines()) < count:
        if live.poll() is not None or time.monotonic() > until:
            sys.exit(f"the live job does not run: {(root / 'live.log').read_text()[-2000:]}")
        time.sleep(0.2)


def _between(root: Path, start: float, end: float) -> list[float]:
    pairs = [map(float, line.split()) for line in (root / "live.txt").read_text().splitlines()]
    return [seconds for began, seconds in pairs if began >= start and began + seconds <= end]


def _times(times: list[float], alone: list[float]) -> tuple[str, str, str, str]:
    half, high = _ratio(times, alone, 0.5).value, _ratio(times, alone, 0.95).value
    return str(len(times)), f"{median(times):.2f}", f"{half:.2f}", f"{high:.2f}"


def _ratio(times: list[float], alone: list[float], quantile: float) -> Ratio:
    cuts = [quantiles(each, n=20, method="inclusive")[round(quantile * 20) - 1] for each in (times, alone)]
    return Ratio.of([cuts[0] / cuts[1]])


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    for pid in family(process.pid):
        os.kill(pid, number)
