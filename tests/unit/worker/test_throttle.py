"""Limits over all workers of a run: when the next chunk may start."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.ledger import RunPace
from errata.model.product.throttle import Throttle
from errata.worker.throttle import check_throttle

NOON = int(datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp() * 1000)
MINUTE, HOUR = 60_000, 3_600_000


def pace(**known: object) -> RunPace:
    values: dict[str, object] = {
        "now_ms": NOON, "running": 0, "adopted": 0, "last_ended_ms": None, "recent": (), "adopted_last_hour": (),
    }  # fmt: skip
    return RunPace(**(values | known))  # type: ignore[arg-type]


def test_without_limits_nothing_holds() -> None:
    """The default throttle lets every chunk start."""
    assert check_throttle(Throttle(), pace(running=99, adopted=99)) is None


def test_chunks_in_flight_are_counted_over_all_workers() -> None:
    """The next one starts when one of them ends."""
    assert check_throttle(Throttle(chunks=3), pace(running=2)) is None
    held = check_throttle(Throttle(chunks=3), pace(running=3))
    assert held is not None
    assert (held.reason, held.until_ms) == ("3 of 3 chunks in flight", None)


def test_rows_per_minute_are_an_average() -> None:
    """A chunk of three minutes' worth of rows is paid for in three minutes."""
    limited = Throttle(rows_per_minute=100)
    started = NOON - MINUTE
    held = check_throttle(limited, pace(recent=((started, 300, 0),)))
    assert held is not None
    assert held.until_ms == started + 3 * MINUTE
    assert check_throttle(limited, pace(now_ms=started + 3 * MINUTE, recent=((started, 300, 0),))) is None


def test_chunks_that_started_at_the_same_moment_are_paid_for_one_after_the_other() -> None:
    """Two workers may claim before either sees the other's chunk; the next one waits for the rows of both."""
    started = NOON - MINUTE
    held = check_throttle(Throttle(rows_per_minute=100), pace(recent=((started, 300, 0), (started + 1, 200, 0))))
    assert held is not None
    assert held.until_ms == started + 5 * MINUTE


@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 10_000)), max_size=20), st.integers(1, 1000))
def test_over_any_run_the_rate_is_kept(chunks: list[tuple[int, int]], rate: int) -> None:
    """Starting each chunk as soon as it may, all rows before the last take at least their time."""
    at, started, rows_before = NOON, [], 0
    for think, rows in chunks:
        at += think * 1000
        held = check_throttle(Throttle(bytes_per_minute=rate), pace(now_ms=at, recent=tuple(started)))
        if held is not None and held.until_ms is not None:
            at = held.until_ms
        if started:
            assert at - started[0][0] >= rows_before * MINUTE // rate - len(started)
        started.append((at, 0, rows))
        rows_before += rows


def test_commits_per_hour_count_what_is_in_flight() -> None:
    """The next chunk starts when the oldest commit is an hour old."""
    ends = (NOON - 50 * MINUTE, NOON - 20 * MINUTE)
    assert check_throttle(Throttle(commits_per_hour=4), pace(adopted_last_hour=ends, running=1)) is None
    held = check_throttle(Throttle(commits_per_hour=3), pace(adopted_last_hour=ends, running=1))
    assert held is not None
    assert held.until_ms == ends[0] + HOUR


def test_between_bursts_there_is_a_pause() -> None:
    """A burst ends, nothing starts for the pause, then the next burst may."""
    bursts = Throttle(burst=2, pause_seconds=300)
    assert check_throttle(bursts, pace(adopted=2, running=1)) is None
    assert check_throttle(bursts, pace(adopted=3, running=1)) is not None
    held = check_throttle(bursts, pace(adopted=2, last_ended_ms=NOON - MINUTE))
    assert held is not None
    assert held.until_ms == NOON + 4 * MINUTE
    assert check_throttle(bursts, pace(adopted=2, last_ended_ms=NOON - 6 * MINUTE)) is None


@pytest.mark.parametrize(
    "spans, zone, opens",
    [
        (("11:00-13:00",), "UTC", None),
        (("22:00-06:00",), "UTC", "2026-11-16T22:00:00+00:00"),
        (("13:00-14:00",), "Europe/Berlin", None),
        (("09:00-10:00", "15:30-16:00"), "UTC", "2026-11-16T15:30:00+00:00"),
        (("09:00-10:00",), "UTC", "2026-11-17T09:00:00+00:00"),
    ],
)
def test_chunks_start_in_the_allowed_hours_only(spans: tuple[str, ...], zone: str, opens: str | None) -> None:
    """Spans may cross midnight and are read in their zone; at noon UTC it is 13:00 in Berlin."""
    held = check_throttle(Throttle(hours=spans, zone=zone), pace())
    if opens is None:
        assert held is None
    else:
        assert held is not None
        assert held.until_ms == int(datetime.fromisoformat(opens).timestamp() * 1000)


def test_the_longest_hold_is_told() -> None:
    """Of several limits the one that lasts."""
    both = Throttle(rows_per_minute=100, hours=("22:00-06:00",))
    held = check_throttle(both, pace(recent=((NOON, 300, 0),)))
    assert held is not None
    assert "22:00-06:00" in held.reason
