"""Suites of ``tests/protocol`` and ``tests/spark`` on PostgreSQL and REST, and processes killed while they publish."""

from __future__ import annotations

import pytest

from catalogs.test_publish_on_every_catalog import world_at
from crash.test_kill import (
    test_killed_while_publishing_it_is_published_once,
    test_killed_while_rolling_back_it_is_taken_back_once,
)
from protocol import test_conflicts, test_undo
from spark import test_conflicts as changed_tables
from spark import test_new_columns, test_shapes, test_spine
from spark import test_undo as undo_on_disk

__all__ = [
    "test_killed_while_publishing_it_is_published_once",
    "test_killed_while_rolling_back_it_is_taken_back_once",
    "world_at",
]

pytestmark = pytest.mark.slow

for _suite in (test_spine, test_conflicts, changed_tables, test_undo, undo_on_disk, test_shapes, test_new_columns):
    globals().update({name: found for name, found in vars(_suite).items() if name.startswith("test_")})
