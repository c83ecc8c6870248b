"""Publish and rollback on PostgreSQL and REST: tests of ``tests/protocol`` and ``tests/spark`` once more.

Only the world that they run in differs. The rest of those suites runs on these catalogs in ``test_suites_again.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol import test_conflicts
from protocol.test_conflicts import (
    test_a_deleted_partition_and_a_main_rolled_back_by_its_owner_are_conflicts,
    test_a_live_write_between_check_and_commit_elsewhere_costs_a_try_and_is_kept,
)
from protocol.test_undo import (
    test_a_fence_keeps_a_late_commit_out,
    test_two_publishers_of_one_scope_do_not_both_commit,
)
from spark.test_spine import (
    test_a_correction_reaches_readers_in_one_commit_and_leaves_other_partitions_alone,
    test_three_days_are_taken_back_and_the_others_stay_corrected,
)
from support.world import World

__all__ = [
    "test_a_correction_reaches_readers_in_one_commit_and_leaves_other_partitions_alone",
    "test_a_deleted_partition_and_a_main_rolled_back_by_its_owner_are_conflicts",
    "test_a_fence_keeps_a_late_commit_out",
    "test_a_live_write_between_check_and_commit_elsewhere_costs_a_try_and_is_kept",
    "test_three_days_are_taken_back_and_the_others_stay_corrected",
    "test_two_publishers_of_one_scope_do_not_both_commit",
]


@pytest.fixture
def world_at(make_world: Callable[..., World]) -> Callable[..., tuple[World, str]]:
    """A small governed lake on this catalog, and its run in this state."""

    def make(state: str, partitions: str | None = None, **options: Any) -> tuple[World, str]:
        world = make_world(**options)
        return world, "" if state == "new" else world.to(state, partitions)

    return make


def test_a_live_write_into_the_scope_is_a_conflict_and_the_rest_can_go_out(make_world: Callable[..., World]) -> None:
    """At the latest moment there is: between check and commit. The other moments are among the slow tests."""
    test_conflicts.test_a_live_write_into_the_scope_is_a_conflict_whenever_it_comes(make_world, "committing")
