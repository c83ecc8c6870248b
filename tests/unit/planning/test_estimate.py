"""Seconds, money and deadlines: from metadata, from past runs, from the run's own canary."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.model.manifest import Chunk
from errata.model.product.throttle import Throttle
from errata.planning.deadline import count_open_seconds, evaluate_deadline, parse_deadline
from errata.planning.estimate import (
    DEFAULT_RATE,
    JOB_SECONDS,
    PARTITION_SECONDS,
    Work,
    count_busy_seconds,
    count_worker_cores,
    derive_rates,
    refine_estimate,
)
from errata.planning.estimate import estimate_run as estimate_at
from errata.planning.repack import ChunkTiming
from errata.ports.tables import PastRun
from unit.planning.worlds import MB, NOW, PRODUCT, PROJECT, ask, plan

GIB = 1024**3
MEASURED = PastRun("bf-9", 100 * GIB, 100 * 1024.0, rows=10**9, partitions=1000, jobs=50, cores=8)


def work(size: int, rows: int = 0, partitions: int = 0, jobs: int = 0, *, known: bool = True) -> Work:
    return Work(rows, size, partitions, jobs, known)


def test_past_runs_make_the_estimate_and_are_named_as_its_basis():
    """Without any, a default rate is assumed and said to be."""
    guess = estimate_at(work(100 * DEFAULT_RATE), 2, "1", derive_rates([]))
    assert "assumed" in guess.basis
    assert guess.seconds_low < 10 + 50 < guess.seconds_high
    known = estimate_at(work(100 * DEFAULT_RATE), 2, "1", derive_rates([PastRun("bf-9", DEFAULT_RATE * 100, 10.0)]))
    assert "bf-9" in known.basis
    assert known.seconds_high < guess.seconds_low
    assert estimate_at(work(0), 2, "0", derive_rates([])).usd == "0.0000"
    assert plan(history=(PastRun("bf-9", 10**9, 10.0),)).estimate.basis.startswith("run bf-9")


@given(st.integers(1, 64), st.integers(1, 400), st.integers(1, 5000), st.integers(10**6, 10**9))
def test_a_run_like_the_one_before_takes_what_that_took(cores: int, jobs: int, partitions: int, rows: int):
    """Measured and predicted by the same model, the truth lies inside the range."""
    core_seconds = rows * 4e-6 + partitions * PARTITION_SECONDS + jobs * JOB_SECONDS * cores
    assume(rows * 4e-6 > core_seconds * 0.3)  # a run that was mostly its own overhead says little about work
    before = PastRun("bf-1", rows * 40, core_seconds, rows, partitions, jobs, cores)
    found = estimate_at(work(rows * 40, rows, partitions, jobs), cores, "0", derive_rates([before]))
    truth = 10 + core_seconds / cores
    assert found.seconds_low <= truth + 1
    assert truth <= found.seconds_high + 1


def test_rows_speak_when_they_are_known_and_bytes_otherwise():
    """Parquet footers are not opened at planning, so file inputs are counted in bytes."""
    rates = derive_rates([MEASURED])
    wide = work(400 * GIB, rows=10**9)
    assert rates.core_seconds(wide)[0] < rates.core_seconds(replace(wide, rows_known=False))[0]
    said = estimate_at(replace(wide, rows_known=False), 8, "0", rates).basis
    assert "rows are not known exactly before they are read" in said
    assert "1.0 MiB or 9,766 rows per core-second" in said


def test_jobs_and_partitions_cost_by_their_number():
    """Forty thousand small partitions are not for nothing."""
    rates = derive_rates([])
    few, many = work(MB, partitions=10, jobs=1), work(MB, partitions=40_000, jobs=100)
    assert estimate_at(many, 2, "0", rates).seconds_low > estimate_at(few, 2, "0", rates).seconds_low + 250


def test_pauses_and_work_side_by_side_do_not_count_twice():
    """A night without chunks is no work; two chunks at once are one span."""
    assert count_busy_seconds([(0, 60), (30, 90), (50_000, 50_010)]) == 100
    assert count_busy_seconds([]) == 0


def test_the_canary_corrects_the_estimate():
    """A product ten times slower than assumed is known after its first chunks, within a quarter."""
    chunks = [Chunk(f"c{n:03d}", tuple(f"p{n}-{k}" for k in range(10)), 0, 100 * MB) for n in range(41)]
    planned = estimate_at(work(41 * 100 * MB, partitions=410, jobs=41, known=False), 2, "1", derive_rates([]))
    took = 100 * MB / (DEFAULT_RATE / 10) / 2 + JOB_SECONDS
    found = refine_estimate(planned, [ChunkTiming(100 * MB, took, 0, 10, 1000.0)], chunks[1:], 2, "1")
    truth = 10 + 41 * took
    assert planned.seconds_high < truth
    assert abs((found.seconds_low + found.seconds_high) / 2 / truth - 1) < 0.25
    assert found.bytes == planned.bytes
    assert "1 chunk of this run" in found.basis
    assert refine_estimate(planned, [], chunks, 2, "1") == planned


def test_the_throttle_caps_the_cores_that_are_counted_on():
    """A cluster without a size of its own has what the throttle gives; one with, at most that."""
    cap = replace(PROJECT, throttle=Throttle(cores=8))
    assert count_worker_cores(replace(cap, spark_master="local[4]"), PRODUCT) == 4
    assert count_worker_cores(replace(cap, spark_master="local[16]"), PRODUCT) == 8
    assert count_worker_cores(replace(cap, spark_master="spark://h:7077"), PRODUCT) == 8
    assert (
        count_worker_cores(replace(cap, spark_master="yarn", spark_conf={"spark.executor.instances": "3"}), PRODUCT)
        == 3
    )
    own = replace(PRODUCT, throttle=Throttle(cores=2))
    assert count_worker_cores(replace(cap, spark_master="local[16]"), own) == 2


class TestDeadline:
    """`errata plan --deadline`."""

    def ask(
        self, by: str, cores: int = 8, throttle: Throttle | None = None, history: tuple[PastRun, ...] = (MEASURED,)
    ):
        end = parse_deadline(by, NOW)
        todo = work(100 * GIB, 10**9, 1000, 50)
        return evaluate_deadline(end, NOW, todo, derive_rates(history), cores, "0.05", throttle or Throttle())

    def test_enough_cores_are_told_with_their_margin(self):
        """The work is 102,400 core-seconds: four hours on eight cores."""
        found = self.ask("8h")
        assert found.meets
        assert 4 * 3600 * 0.9 < found.seconds_configured < 4.3 * 3600
        assert found.seconds == found.seconds_configured
        assert 4 <= (found.cores_needed or 0) < 8
        assert Decimal(found.usd) == pytest.approx(Decimal(found.core_hours) * Decimal("0.05"), abs=Decimal("0.01"))

    def test_too_few_cores_are_told_with_the_number_that_would_do(self):
        """Twice the cores is half the time, for about the same money."""
        found = self.ask("2h")
        assert not found.meets
        assert found.cores_needed is not None
        assert 14 <= found.cores_needed <= 20
        assert found.seconds <= 2 * 3600 < found.seconds_configured
        assert float(found.core_hours) == pytest.approx(found.seconds_configured * 8 / 3600, rel=0.1)

    @given(st.integers(60, 999_999), st.integers(1, 500))
    def test_the_cores_needed_meet_it_and_one_less_does_not(self, length: int, cores: int):
        """The answer is the smallest number that holds by the same arithmetic."""
        found = self.ask(f"{length}s", cores)
        assert found.meets == (found.seconds_configured <= length)
        if found.cores_needed is None:
            return
        assert self.ask(f"{length}s", found.cores_needed).meets
        assert found.cores_needed == 1 or not self.ask(f"{length}s", found.cores_needed - 1).meets

    def test_no_number_of_cores_buys_time_that_is_not_there(self):
        """Spark's start and the driver's moment per chunk are not shared by cores."""
        found = self.ask("20s")
        assert (found.meets, found.cores_needed) == (False, None)

    def test_a_throttle_that_is_slower_than_the_work_decides(self):
        """Ten million rows a minute are a hundred minutes, however many cores there are."""
        found = self.ask("1h", 1000, Throttle(rows_per_minute=10**7))
        assert (found.meets, found.cores_needed) == (False, None)
        assert found.seconds_configured == 6000
        assert "throttle.rows_per_minute" in found.basis
        assert self.ask("2h", 1000, Throttle(rows_per_minute=10**7)).meets

    def test_a_guess_says_that_it_is_one(self):
        """Without a measured run the answer names the assumption."""
        found = self.ask("8h", history=())
        assert not found.measured
        assert "assumed" in found.basis

    def test_the_plan_carries_the_answer_and_the_manifest_does_not(self):
        """Asking does not change what is approved."""
        silent, asked = plan(ask()), plan(ask(deadline="8h"))
        assert asked.deadline is not None
        assert asked.deadline.by == (NOW + timedelta(hours=8)).strftime("%Y-%m-%dT%H:%MZ")
        assert (silent.deadline, silent.digest) == (None, asked.digest)

    @pytest.mark.parametrize("text", ["8", "8m", "soon", "2026-11-17", "2026-11-17T06:00", "2020-01-01T00:00Z", "0s"])
    def test_what_is_no_deadline_is_refused(self, text: str):
        """An instant needs its zone and must be to come."""
        with pytest.raises(UsageError, match="--deadline"):
            parse_deadline(text, NOW)

    def test_instants_are_read_with_their_zone(self):
        """Two ways to say the same moment."""
        same = datetime(2026, 11, 17, 5, tzinfo=UTC)
        assert parse_deadline("2026-11-17T05:00Z", NOW) == parse_deadline("2026-11-17T06:00+01:00", NOW) == same

    def test_only_allowed_hours_count_as_time(self):
        """Nights may cross midnight, in the zone of the hours."""
        noon = datetime(2026, 1, 10, 12, tzinfo=UTC)
        nights = Throttle(hours=("22:00-06:00",))
        assert count_open_seconds(nights, noon, noon + timedelta(hours=24)) == 8 * 3600
        assert count_open_seconds(nights, noon + timedelta(hours=15), noon + timedelta(hours=24)) == 3 * 3600
        berlin = replace(nights, zone="Europe/Berlin")
        assert count_open_seconds(berlin, noon, noon + timedelta(hours=9, minutes=30)) == 1800
        assert count_open_seconds(Throttle(), noon, noon + timedelta(hours=1)) == 3600
