"""Estimate the time and cost of a run from metadata, past runs and later its own canary. Pure.

Reads no data and opens no Parquet footers, so the row counts of file inputs are unknown and bytes are used instead. The
model has three parts: work that cores share (rows or bytes, plus opening and closing each output partition), driver
time per job, and Spark's start. Cost is seconds times cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from math import ceil, sqrt

from errata.model.manifest import Chunk, Estimate
from errata.model.product import Product, Project
from errata.planning.repack import ChunkTiming
from errata.ports.tables import PastRun

DEFAULT_RATE = 8 * 1024 * 1024
"""Bytes of input per core-second before any run of this product has been measured; low on purpose."""

START_SECONDS = 10
"""Spark's start and the commits, once per run."""

JOB_SECONDS = 0.3
"""Driver time per chunk, whatever the number of cores."""

PARTITION_SECONDS = 0.013
"""Core-seconds to open and close the files of one output partition."""

_SPREAD = (0.85, 1.15)
_LEAST_NET = 0.25


@dataclass(frozen=True, slots=True)
class Work:
    """Amount of work in a run."""

    rows: int
    bytes: int
    partitions: int
    jobs: int
    rows_known: bool = True


@dataclass(frozen=True, slots=True)
class Rates:
    """Core-seconds per row (0: unknown) and per byte, as (fast, slow) ends, and what they are based on."""

    per_row: tuple[float, float]
    per_byte: tuple[float, float]
    basis: str
    is_measured: bool

    def core_seconds(self, work: Work) -> tuple[float, float]:
        """Core-seconds of the work that cores share, as (fast, slow) ends."""
        by_rows = work.rows_known and work.rows > 0 and self.per_row[0] > 0
        units, (fast, slow) = (work.rows, self.per_row) if by_rows else (work.bytes, self.per_byte)
        fixed = work.partitions * PARTITION_SECONDS
        return fixed + units * fast, fixed + units * slow

    @property
    def bytes_per_core_second(self) -> float:
        """Geometric mean of both ends, used for chunk sizes."""
        return 1 / sqrt(self.per_byte[0] * self.per_byte[1])


def count_cores(master: str, conf: Mapping[str, str]) -> int:
    """Number of cores that the project's Spark settings give a run.

    >>> count_cores("local[4]", {}), count_cores("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "2"})
    (4, 6)
    """
    if found := re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", master):
        return int(found[1])
    if "spark.cores.max" in conf:
        return max(1, int(conf["spark.cores.max"]))
    return max(1, int(conf.get("spark.executor.instances", "2")) * int(conf.get("spark.executor.cores", "1")))


def count_worker_cores(project: Project, product: Product) -> int:
    """Cores of one worker on a product, under the throttle in force."""
    cap = (product.throttle or project.throttle).cores
    says_own = project.spark_master.startswith("local") or {"spark.cores.max", "spark.executor.instances"} & set(
        project.spark_conf
    )
    cores = count_cores(project.spark_master, project.spark_conf)
    return cores if cap is None else min(cores, cap) if says_own else cap


def count_busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds during which at least one of these spans was open; gaps do not count and overlaps count once.

    >>> count_busy_seconds([(0, 10), (5, 12), (100, 101)])
    13.0
    """
    busy, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return busy


def derive_rates(history: Sequence[PastRun]) -> Rates:
    """Rates measured on past runs of this product, or the assumed default rate, labelled as such."""
    measured = [run for run in history if run.bytes > 0 and run.core_seconds > 0]
    if not measured:
        basis = f"no measured run yet: {DEFAULT_RATE // 1024**2} MiB per core-second assumed"
        return Rates((0.0, 0.0), (0.5 / DEFAULT_RATE, 2.0 / DEFAULT_RATE), basis, is_measured=False)
    name = f"run {measured[0].run_id}" + (f" and {len(measured) - 1} more" if len(measured) > 1 else "")
    return _measure_rates(measured, name)


def _measure_rates(measured: Sequence[PastRun], name: str) -> Rates:
    net = [(run, _net_core_seconds(run)) for run in measured]
    by_byte = _spread_range([seconds / run.bytes for run, seconds in net])
    counted = [seconds / run.rows for run, seconds in net if run.rows > 0]
    # rows are used only if every measured run has a row count
    by_row = _spread_range(counted) if len(counted) == len(net) else (0.0, 0.0)
    size = sum(run.bytes for run in measured) / sum(run.core_seconds for run in measured)
    rows = sum(run.rows for run in measured) / sum(run.core_seconds for run in measured) if by_row[0] else 0
    # sealed with the plan: other words would give the same request other bytes
    told = [f"{size / 1024**2:,.1f} MiB", *([f"{rows:,.0f} rows"] if rows else [])]
    return Rates(by_row, by_byte, f"{name}: {' or '.join(told)} per core-second", is_measured=True)


def _net_core_seconds(run: PastRun) -> float:
    """Core-seconds minus the fixed cost of jobs and partitions; never less than a quarter of the total."""
    fixed = run.jobs * JOB_SECONDS * run.cores + run.partitions * PARTITION_SECONDS
    return max(run.core_seconds - fixed, run.core_seconds * _LEAST_NET)


def _spread_range(found: Sequence[float]) -> tuple[float, float]:
    return min(found) * _SPREAD[0], max(found) * _SPREAD[1]


def _format_cores(number: int) -> str:
    return "1 core" if number == 1 else f"{number} cores"


def compute_usd(core_hour_usd: str, core_seconds: float) -> str:
    """Cost of a number of core-seconds.

    >>> compute_usd("0.05", 7200)
    '0.1000'
    """
    usd = Decimal(core_hour_usd) * Decimal(repr(round(core_seconds, 3))) / 3600
    return str(usd.quantize(Decimal("0.0001"), ROUND_HALF_UP))


def estimate_run(work: Work, cores: int, core_hour_usd: str, rates: Rates) -> Estimate:
    """Estimate seconds as a range, and the cost of its upper end."""
    fast, slow = rates.core_seconds(work)
    serial = START_SECONDS + work.jobs * JOB_SECONDS
    low, high = ceil(serial + fast / cores), ceil(serial + slow / cores)
    unknown = "" if work.rows_known else "; rows are not known exactly before they are read"
    return Estimate(
        work.rows,
        work.bytes,
        low,
        high,
        compute_usd(core_hour_usd, high * cores),
        f"{rates.basis}{unknown}, {_format_cores(cores)}",
    )


def refine_estimate(
    planned: Estimate, done: Sequence[ChunkTiming], remaining: Sequence[Chunk], cores: int, core_hour_usd: str
) -> Estimate:
    """Estimate the whole run again from the timings of its first chunks; unchanged if they allow no conclusion."""
    spans = [(chunk.started, chunk.started + chunk.seconds) for chunk in done]
    busy = count_busy_seconds(spans)
    rows, size = sum(chunk.rows for chunk in done), sum(chunk.bytes for chunk in done)
    if busy <= 0 or size <= 0:
        return planned
    taken = PastRun("", size, busy * cores, rows, sum(chunk.partitions for chunk in done), len(done), cores)
    rates = _measure_rates([taken], f"{len(done)} chunk{'s' if len(done) > 1 else ''} of this run")
    left = Work(
        sum(chunk.rows for chunk in remaining),
        sum(chunk.bytes for chunk in remaining),
        sum(len(chunk.partitions) for chunk in remaining),
        len(remaining),
        rows > 0,
    )
    fast, slow = rates.core_seconds(left)
    serial = START_SECONDS + busy + left.jobs * JOB_SECONDS
    low, high = ceil(serial + fast / cores), ceil(serial + slow / cores)
    usd = compute_usd(core_hour_usd, high * cores)
    return Estimate(planned.rows, planned.bytes, low, high, usd, f"{rates.basis}, {_format_cores(cores)}")
