"""Publish and rollback on PostgreSQL and REST: the tests of ``tests/spark``, which run on SQLite, once more.

Only the fixture ``make_lake`` differs. The rest of those suites runs on these catalogs in ``test_suites_again.py``.
"""

from __future__ import annotations

from spark.test_spine import (  # noqa: F401  collected here
    test_a_correction_reaches_readers_in_one_commit_and_leaves_other_partitions_alone,
    test_three_days_are_taken_back_and_the_others_stay_corrected,
)
