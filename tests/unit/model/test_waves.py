"""Waves: the scope is cut exactly, in order; the state of a run follows from its waves; pauses are counted."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.model.partition import NULL, Grain, sort_newest_first, sort_oldest_first, to_ordinal
from errata.model.product import Waves
from errata.model.run import RUN_MOVES, RunState
from errata.model.waves import (
    OUT,
    WaveState,
    build_pause_error,
    compute_pause_end,
    count_pause_days,
    count_wave_size,
    derive_run_state,
    derive_wave_state,
    resolve_wave_order,
    split_into_waves,
)

DAYS = st.lists(
    st.integers(0, 400).map(lambda n: (date(2026, 1, 1) + timedelta(days=n)).isoformat()), unique=True, min_size=1
)
ORDERS = st.sampled_from(["newest", "oldest", None])
RUN_ORDERS = st.sampled_from(["newest", "oldest", "sequential"])


@settings(deadline=None)
@given(days=DAYS, size=st.integers(1, 50), order=ORDERS, run=RUN_ORDERS)
def test_waves_cut_the_scope_exactly_and_only_the_last_is_smaller(
    days: list[str], size: int, order: str | None, run: str
):
    """Every partition is in one wave, waves go in the order that was asked for, and all but the last are full."""
    waves = Waves(str(size), "30min", order)
    found = split_into_waves(waves, run, Grain.DAY, days)
    assert [wave.n for wave in found] == list(range(1, len(found) + 1))
    assert all(len(wave.partitions) == size for wave in found[:-1])
    assert 1 <= len(found[-1].partitions) <= size
    first = resolve_wave_order(waves, run)
    ordered = [name for wave in found for name in (wave.partitions if first == "oldest" else wave.partitions[::-1])]
    assert tuple(ordered) == (sort_oldest_first if first == "oldest" else sort_newest_first)(Grain.DAY, days)


@settings(deadline=None)
@given(days=DAYS, span=st.integers(1, 50), order=ORDERS)
def test_a_span_counts_calendar_partitions_also_over_gaps(days: list[str], span: int, order: str | None):
    """Two days are in one wave exactly if the same whole number of spans lies between each and the first."""
    found = split_into_waves(Waves(f"{span}d", "0s", order), "newest", Grain.DAY, days)
    assert sorted(name for wave in found for name in wave.partitions) == sorted(days)
    newest_first = resolve_wave_order(Waves("1", "0s", order), "newest") == "newest"
    first = (sort_newest_first if newest_first else sort_oldest_first)(Grain.DAY, days)[0]
    for wave in found:
        away = {abs(to_ordinal(Grain.DAY, name) - to_ordinal(Grain.DAY, first)) // span for name in wave.partitions}
        assert len(away) == 1


@settings(deadline=None)
@given(days=DAYS, size=st.integers(1, 9), order=RUN_ORDERS, data=st.data())
def test_the_canary_goes_with_the_first_wave(days: list[str], size: int, order: str, data: st.DataObject):
    """It is computed and looked at first; every other partition keeps its order."""
    canary = data.draw(st.lists(st.sampled_from(days), unique=True, max_size=size))
    found = split_into_waves(Waves(str(size)), order, Grain.DAY, days, canary)
    assert set(canary) <= set(found[0].partitions)
    assert sorted(name for wave in found for name in wave.partitions) == sorted(days)
    rest = [name for wave in found for name in wave.partitions if name not in canary]
    alone = split_into_waves(Waves(str(len(days))), order, Grain.DAY, [name for name in days if name not in canary])
    assert sorted(rest) == sorted(name for wave in alone for name in wave.partitions)


def test_a_run_without_waves_is_one_wave():
    """Today's behaviour: everything at once."""
    (only,) = split_into_waves(None, "newest", Grain.DAY, ["2026-01-02", "2026-01-01"])
    assert (only.n, only.partitions) == (1, ("2026-01-01", "2026-01-02"))


def test_what_goes_first_follows_the_run_unless_it_is_said():
    """A run that computes oldest first, or one after the other, is published from the oldest end as well."""
    assert [resolve_wave_order(Waves("1", "1h"), order) for order in ("newest", "oldest", "sequential")] == [
        "newest", "oldest", "oldest",
    ]  # fmt: skip
    assert resolve_wave_order(Waves("1", "1h", "oldest"), "newest") == "oldest"


def test_partitions_by_value_go_by_name_and_null_is_one_of_them():
    """Tenants have no time; NULL sorts before every name."""
    found = split_into_waves(Waves("2", "1h", "oldest"), "newest", Grain.VALUE, ["acme", NULL, "zeta"])
    assert [wave.partitions for wave in found] == [(NULL, "acme"), ("zeta",)]


@pytest.mark.parametrize(
    "size, grain, expected",
    [("7", Grain.VALUE, 7), ("7d", Grain.DAY, 7), ("6h", Grain.HOUR, 6), ("2d", Grain.HOUR, 48)],
)
def test_a_size_is_a_number_of_partitions(size: str, grain: Grain, expected: int):
    """A span of time is as many partitions of the grain as it has."""
    assert count_wave_size(size, grain) == expected


@pytest.mark.parametrize(
    "size, grain", [("6h", Grain.DAY), ("36h", Grain.DAY), ("30d", Grain.VALUE), ("30d", Grain.MONTH)]
)
def test_a_span_that_is_no_whole_number_of_partitions_is_refused(size: str, grain: Grain):
    """Smaller than the grain, not a multiple of it, or a length of time where partitions have none."""
    with pytest.raises(UsageError, match=size):
        count_wave_size(size, grain)


def test_a_pause_is_counted_from_what_landed_last():
    """Nothing is waited for before the first wave; the error says until when and for how long."""
    waves, landed = Waves("7", "30min"), "2026-02-15T09:41:07.250000+00:00"
    assert compute_pause_end(waves, None) is None
    until = compute_pause_end(waves, landed)
    assert until == datetime(2026, 2, 15, 10, 11, 7, 250_000, UTC)
    error = build_pause_error("bf-1", waves.pause, until, until - timedelta(minutes=12, seconds=5))
    assert (error.exit_code, error.code) == (3, "publish-held")
    assert "has 12 m 05 s left, until 2026-02-15 10:11:07 UTC" in error.message
    assert error.fields["seconds_left"] == 725
    assert "errata publish bf-1 --wait" in (error.hint or "")


def test_what_the_next_wave_needs_is_kept_for_whole_days_of_the_pause():
    """A candidate must outlive the pause before the wave that is made of it."""
    settings = (None, Waves("1"), Waves("1", "30s"), Waves("1", "24h"), Waves("1", "3d"))
    assert [count_pause_days(waves) for waves in settings] == [0, 0, 1, 1, 3]


W, S = WaveState, RunState


@pytest.mark.parametrize(
    "waves, expected",
    [
        ((W.COMPUTING, W.COMPUTING), S.RUNNING),
        ((W.PUBLISHED, W.VALIDATED, W.COMPUTING), S.RUNNING),
        ((W.REJECTED, W.COMPUTING), S.RUNNING),
        ((W.STAGED, W.STAGED), S.STAGED),
        ((W.VALIDATED, W.STAGED), S.VALIDATED),
        ((W.REJECTED, W.VALIDATED), S.REJECTED),
        ((W.PUBLISHED, W.REJECTED), S.PART_PUBLISHED),
        ((W.PUBLISHED, W.PUBLISHING), S.PUBLISHING),
        ((W.ROLLED_BACK, W.VALIDATED), S.VALIDATED),
        ((W.ROLLED_BACK, W.PUBLISHED), S.PUBLISHED),
        ((W.ROLLED_BACK, W.ROLLED_BACK), S.ROLLED_BACK),
        ((W.SUPERSEDED, W.ROLLED_BACK), S.SUPERSEDED),
        ((W.PART_PUBLISHED, W.VALIDATED), S.PART_PUBLISHED),
    ],
)
def test_the_state_of_a_run_follows_from_its_waves(waves: tuple[WaveState, ...], expected: RunState):
    """It runs while one is computed, and has ended only when no wave is left that may go."""
    assert derive_run_state(waves) is expected


@given(st.lists(st.sampled_from(list(W)), min_size=1, max_size=6))
def test_a_run_has_ended_only_when_no_wave_may_still_go(waves: list[WaveState]):
    """Rolling back the only visible wave does not end a run that computes the fifth."""
    state = derive_run_state(waves)
    assert state in RUN_MOVES
    ended = state in (S.PUBLISHED, S.ROLLED_BACK, S.SUPERSEDED)
    assert ended == all(wave in OUT for wave in waves)


@pytest.mark.parametrize(
    "computed, judged, partitions, expected",
    [
        (False, None, ("unpublished",), W.COMPUTING),
        (True, None, ("unpublished",), W.STAGED),
        (True, S.REJECTED, ("unpublished",), W.REJECTED),
        (True, S.VALIDATED, ("unpublished", "accepted"), W.PART_PUBLISHED),
        (True, S.VALIDATED, ("accepted", "rolled_back"), W.PUBLISHED),
        (True, S.VALIDATED, ("rolled_back", "rolled_back"), W.ROLLED_BACK),
        (True, S.VALIDATED, ("rolled_back", "superseded"), W.SUPERSEDED),
    ],
)
def test_the_state_of_a_wave_is_read_from_what_is_known_of_it(
    computed: bool, judged: RunState | None, partitions: tuple[str, ...], expected: WaveState
):
    """Its chunks, the newest verdict on its candidate, and its partitions."""
    found = derive_wave_state(is_computed=computed, judged=judged, partitions=partitions, is_publishing=False)
    assert found is expected
