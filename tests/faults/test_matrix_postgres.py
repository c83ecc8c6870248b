"""The matrix and the kills again, with the ledger on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from crash import test_kill
from faults import test_matrix
from support.postgres import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_ON_THEIR_OWN = ("test_killed_at_random_moments_until_it_is_done", "test_every_failpoint_is_killed_at_somewhere_here")
for _suite in (test_matrix, test_kill):
    _found = {name: test for name, test in vars(_suite).items() if name.startswith("test_")}
    globals().update({name: test for name, test in _found.items() if name not in _ON_THEIR_OWN})


@pytest.fixture
def make_ledger(postgres: PostgresServer) -> Callable[[Path], str]:
    """A database for each world."""
    made: dict[Path, str] = {}

    def ledger(root: Path) -> str:
        if root not in made:
            made[root] = postgres.create_database(f"faults_{abs(hash(root)):x}")
        return made[root]

    return ledger
