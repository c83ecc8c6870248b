"""Publication groups: which partitions become visible together, in what order, and when the next group may go. Pure.

The sealed promise: no publication of the run has more than ``size`` partitions, and a hold separates two publications.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from errata.errors import PublishHeld, StateRefused
from errata.model.duration import to_seconds
from errata.model.partition import Grain, sort_newest_first, sort_oldest_first
from errata.model.product import Groups
from errata.text.numbers import format_duration

PAUSED, RESUMED, TAKEN_BACK = "groups.paused", "groups.resumed", "rollback.committed"
GROUP_ACTIONS = (PAUSED, RESUMED, TAKEN_BACK)
"""Audit actions that stop or resume a run's groups; the newest entry decides."""


@dataclass(frozen=True, slots=True)
class Group:
    """Partitions that are published together; ``n`` counts from 1 in order of publication."""

    n: int
    partitions: tuple[str, ...]  # oldest first


def resolve_group_order(groups: Groups, order: str) -> str:
    """Order of the groups, newest or oldest first; by default the order in which the run computes."""
    return groups.order or ("newest" if order == "newest" else "oldest")


def split_into_groups(groups: Groups, order: str, grain: Grain, partitions: Collection[str]) -> tuple[Group, ...]:
    """Split the scope into groups; every partition is in one group, and the last may be smaller.

    >>> days = ["2026-01-01", "2026-01-02", "2026-01-03"]
    >>> [group.partitions for group in split_into_groups(Groups(2, "30min"), "newest", Grain.DAY, days)]
    [('2026-01-02', '2026-01-03'), ('2026-01-01',)]
    """
    ordered = (sort_newest_first if resolve_group_order(groups, order) == "newest" else sort_oldest_first)(
        grain, partitions
    )
    cuts = [ordered[start : start + groups.size] for start in range(0, len(ordered), groups.size)]
    return tuple(Group(n, sort_oldest_first(grain, cut)) for n, cut in enumerate(cuts, 1))


def find_next_group(groups: Sequence[Group], waiting: Collection[str]) -> Group | None:
    """The first group with unpublished partitions, reduced to those partitions."""
    waits = frozenset(waiting)
    for group in groups:
        left = tuple(name for name in group.partitions if name in waits)
        if left:
            return Group(group.n, left)
    return None


def compute_hold_end(groups: Groups, published_at: str | None) -> datetime | None:
    """When the next publication may start, given when the last one landed; None before the first."""
    if published_at is None:
        return None
    return datetime.fromisoformat(published_at) + timedelta(seconds=to_seconds(groups.hold))


def count_hold_days(groups: Groups | None) -> int:
    """The hold in whole days, rounded up: what the next group needs must outlive it."""
    return -(-to_seconds(groups.hold) // 86_400) if groups else 0


def build_hold_error(run_id: str, hold: str, until: datetime, now: datetime) -> PublishHeld:
    """Error for a publication before the hold has ended."""
    left = max(1, round((until - now).total_seconds()))
    at = until.replace(microsecond=0).isoformat()
    return PublishHeld(
        f"publish of {run_id} was refused; the hold of {hold} after its last group has "
        f"{format_duration(left)} left, until {at[:19].replace('T', ' ')} UTC",
        state="what was published stays; the next group waits",
        hint=f"errata publish {run_id} --wait\nor after the hold: errata publish {run_id}",
        run_id=run_id,
        until=at,
        seconds_left=left,
    )


def build_stopped_error(run_id: str, why: str) -> StateRefused:
    """Error for a publication while the groups are stopped."""
    return StateRefused(
        f"publish of {run_id} was refused; its groups are stopped: {why}",
        state="what was published stays; the next group waits",
        hint=f"errata resume {run_id} continues them; errata rollback restores the previous data",
    )
