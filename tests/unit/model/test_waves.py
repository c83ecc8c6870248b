"""Groups of partitions: the scope is cut exactly, in order, and the hold is counted from what landed last."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from errata.model.partition import NULL, Grain, sort_newest_first, sort_oldest_first
from errata.model.product import Groups
from errata.model.waves import (
    build_hold_error,
    compute_hold_end,
    count_hold_days,
    find_next_group,
    resolve_group_order,
    split_into_groups,
)

DAYS = st.lists(
    st.integers(0, 400).map(lambda n: (date(2026, 1, 1) + timedelta(days=n)).isoformat()), unique=True, min_size=1
)
ORDERS = st.sampled_from(["newest", "oldest", None])


@settings(deadline=None)
@given(days=DAYS, size=st.integers(1, 50), order=ORDERS, run=st.sampled_from(["newest", "oldest", "sequential"]))
def test_groups_partition_the_scope_exactly_and_only_the_last_is_smaller(
    days: list[str], size: int, order: str | None, run: str
):
    """Every partition is in one group, groups go in the order that was asked for, and all but the last are full."""
    groups = Groups(size, "30min", order)
    found = split_into_groups(groups, run, Grain.DAY, days)
    assert [group.n for group in found] == list(range(1, len(found) + 1))
    assert all(len(group.partitions) == size for group in found[:-1])
    assert 1 <= len(found[-1].partitions) <= size
    first = resolve_group_order(groups, run)
    ordered = [name for group in found for name in (group.partitions if first == "oldest" else group.partitions[::-1])]
    assert tuple(ordered) == (sort_oldest_first if first == "oldest" else sort_newest_first)(Grain.DAY, days)


@settings(deadline=None)
@given(days=DAYS, size=st.integers(1, 9), data=st.data())
def test_the_next_group_is_the_first_of_which_something_waits(days: list[str], size: int, data: st.DataObject):
    """What is published of it already stays out; after the last there is none."""
    groups = split_into_groups(Groups(size, "1h"), "newest", Grain.DAY, days)
    waiting = set(data.draw(st.lists(st.sampled_from(days), unique=True)))
    found = find_next_group(groups, waiting)
    if not waiting:
        assert found is None
        return
    assert found is not None
    assert set(found.partitions) == set(groups[found.n - 1].partitions) & waiting
    assert all(not waiting & set(group.partitions) for group in groups[: found.n - 1])


def test_what_goes_first_follows_the_run_unless_it_is_said():
    """A run that computes oldest first, or one after the other, is published from the oldest end as well."""
    assert [resolve_group_order(Groups(1, "1h"), order) for order in ("newest", "oldest", "sequential")] == [
        "newest", "oldest", "oldest",
    ]  # fmt: skip
    assert resolve_group_order(Groups(1, "1h", "oldest"), "newest") == "oldest"


def test_partitions_by_value_go_by_name_and_null_is_one_of_them():
    """Tenants have no time; NULL sorts before every name."""
    found = split_into_groups(Groups(2, "1h", "oldest"), "newest", Grain.VALUE, ["acme", NULL, "zeta"])
    assert [group.partitions for group in found] == [(NULL, "acme"), ("zeta",)]


def test_a_hold_is_counted_from_what_landed_last():
    """Nothing is waited for before the first group; the error says until when and for how long."""
    groups, landed = Groups(7, "30min"), "2026-02-15T09:41:07.250000+00:00"
    assert compute_hold_end(groups, None) is None
    until = compute_hold_end(groups, landed)
    assert until == datetime(2026, 2, 15, 10, 11, 7, 250_000, UTC)
    error = build_hold_error("bf-1", groups.hold, until, until - timedelta(minutes=12, seconds=5))
    assert (error.exit_code, error.code) == (3, "publish-held")
    assert "has 12 m 05 s left, until 2026-02-15 10:11:07 UTC" in error.message
    assert error.fields["seconds_left"] == 725
    assert "errata publish bf-1 --wait" in (error.hint or "")


def test_what_the_next_group_needs_is_kept_for_whole_days_of_the_hold():
    """A candidate must outlive the hold before the group that is made of it."""
    assert [count_hold_days(groups) for groups in (None, Groups(1, "30s"), Groups(1, "24h"), Groups(1, "3d"))] == [
        0,
        1,
        1,
        3,
    ]
