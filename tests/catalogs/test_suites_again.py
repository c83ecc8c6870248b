"""Whole suites of ``tests/spark`` on PostgreSQL and REST, and processes killed while they publish there."""

from __future__ import annotations

import pytest

from crash.test_kill import (
    test_killed_while_publishing_it_is_published_once,
    test_killed_while_rolling_back_it_is_taken_back_once,
)
from spark import test_conflicts, test_new_columns, test_shapes, test_spine, test_undo

__all__ = [
    "test_killed_while_publishing_it_is_published_once",
    "test_killed_while_rolling_back_it_is_taken_back_once",
]

pytestmark = pytest.mark.slow

for _suite in (test_spine, test_conflicts, test_undo, test_shapes, test_new_columns):
    globals().update({name: found for name, found in vars(_suite).items() if name.startswith("test_")})
