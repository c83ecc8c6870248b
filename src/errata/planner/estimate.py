"""What a run will probably take, from bytes in the metadata and what earlier runs took. Pure, no data is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from math import ceil

from errata.model.manifest import Estimate
from errata.planner.ports import PastRun

__all__ = ["DEFAULT_RATE", "START_SECONDS", "cores_of", "estimate"]

DEFAULT_RATE = 8 * 1024 * 1024
"""Bytes of input per core-second when no run of this product has been measured; low on purpose."""

START_SECONDS = 10
"""Spark's start and the commits, once per run."""


def cores_of(master: str, conf: Mapping[str, str]) -> int:
    """How many cores the project gives a run, as far as its Spark settings say.

    >>> cores_of("local[4]", {}), cores_of("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "2"})
    (4, 6)
    """
    if found := re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", master):
        return int(found[1])
    if "spark.cores.max" in conf:
        return max(1, int(conf["spark.cores.max"]))
    return max(1, int(conf.get("spark.executor.instances", "2")) * int(conf.get("spark.executor.cores", "1")))


def estimate(rows: int, size: int, cores: int, core_hour_usd: str, history: Sequence[PastRun]) -> Estimate:
    """Seconds as a range around the rate of past runs (or a default, said so), and money for the upper end."""
    measured = [run for run in history if run.bytes > 0 and run.core_seconds > 0]
    rates = sorted(run.bytes / run.core_seconds for run in measured)
    if rates:
        slow, fast = rates[0] * 0.85, rates[-1] * 1.15
        basis = f"run {measured[0].run_id}" + (f" and {len(measured) - 1} more" if len(measured) > 1 else "")
    else:
        slow, fast = DEFAULT_RATE * 0.5, DEFAULT_RATE * 2.0
        basis = f"no measured run yet: {DEFAULT_RATE // 1024**2} MiB per core-second assumed"
    if not rows:
        basis += "; rows unknown, source files are not opened"
    low = START_SECONDS + ceil(size / fast / cores)
    high = START_SECONDS + ceil(size / slow / cores)
    usd = Decimal(core_hour_usd) * high * cores / 3600
    return Estimate(
        rows, size, low, high, str(usd.quantize(Decimal("0.0001"), ROUND_HALF_UP)), f"{basis}, {cores} cores"
    )
