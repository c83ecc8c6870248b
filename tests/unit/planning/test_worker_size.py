"""How many workers a deadline takes, and when it is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from errata.errors import Refused
from errata.model.product.throttle import Throttle
from errata.planning.deadline import Budget, WorkerSize, size_workers
from errata.planning.estimate import Rates, Work

NOW = datetime(2026, 11, 17, 6, 0, tzinfo=UTC)
WORK = Work(rows=0, bytes=3600 * 100, partitions=0, jobs=20, rows_known=False)
RATES = Rates((0.0, 0.0), (0.1, 0.1), "measured", is_measured=True)  # 36,000 core-seconds, ten core-hours
FREE = Budget(None, "0", "0")


def size(hours: float, budget: Budget = FREE, each: int = 4, throttle: Throttle | None = None) -> WorkerSize:
    return size_workers(NOW + timedelta(hours=hours), NOW, WORK, RATES, each, throttle or Throttle(), budget)


def test_the_fewest_cores_that_do_are_spread_over_workers():
    """Ten core-hours: two hours take six cores with the start, which are two workers of three."""
    found = size(2)
    assert (found.workers, found.cores) == (2, 3)
    assert found.deadline is not None
    assert found.deadline.meets
    assert found.deadline.seconds <= 2 * 3600
    assert (size(24).workers, size(24).cores) == (1, 1)


def test_a_deadline_that_no_number_of_cores_meets_is_refused():
    """With the time that is left and what it is based on."""
    with pytest.raises(Refused, match=r"no number of cores finishes 20 chunks in the 36 s") as refused:
        size(0.01, throttle=Throttle(commits_per_hour=1))
    assert "2026-11-17 06:00 UTC" in refused.value.message
    assert "nothing was started" in (refused.value.state or "")


def test_a_size_with_more_workers_than_chunks_is_refused():
    """A worker without a chunk is paid for and does nothing."""
    with pytest.raises(Refused, match="workers of 1, and 20 chunks are left"):
        size(0.25, each=1)


def test_what_costs_more_than_the_cap_is_refused_with_figures():
    """Cores, time, cost, what is spent, the cap, and what one core would cost and need."""
    budget = Budget("11", "1.5000", "1")
    with pytest.raises(Refused) as refused:
        size(2, budget)
    said = refused.value.message
    assert "6 cores for" in said
    assert "$1.5000 are spent" in said
    assert "limits.max_usd of the plan is $11" in said
    assert "one core would cost $10.00" in said
    assert "2026-11-17 16:00 UTC" in said
    assert size(2, Budget("12", "1.5000", "1")).workers == 2
