"""Publication modes on PostgreSQL and REST: the tests of ``tests/spark`` once more, views and tags included."""

from __future__ import annotations

import pytest

from protocol.test_waves import test_readers_see_one_wave_after_the_other
from spark.test_mode_guarantees import (
    test_conflict_detected,
    test_per_partition_rollback,
    test_rollback_after_expiry,
    test_whole_scope_at_once,
)
from spark.test_modes import test_corrections_history_kept, test_version_history_kept
from spark.test_preview import test_a_candidate_is_read_by_name_and_beside_what_it_replaces
from spark.test_rewrite import test_rows_that_others_write_meanwhile_are_kept_and_in_scope_they_are_a_conflict

__all__ = [
    "test_a_candidate_is_read_by_name_and_beside_what_it_replaces",
    "test_conflict_detected",
    "test_corrections_history_kept",
    "test_per_partition_rollback",
    "test_readers_see_one_wave_after_the_other",
    "test_rollback_after_expiry",
    "test_rows_that_others_write_meanwhile_are_kept_and_in_scope_they_are_a_conflict",
    "test_version_history_kept",
    "test_whole_scope_at_once",
]

pytestmark = pytest.mark.slow
