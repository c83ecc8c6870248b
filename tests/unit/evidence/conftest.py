"""One house with a run in every state, for all tests that only read; bundles are made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from errata.evidence.diff_summary import store_diff_summary
from errata.ledger import Ledger
from unit.evidence.house import House


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated ledger file; a copy saves each house the migration."""
    path = tmp_path_factory.mktemp("empty") / "ledger.db"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory, empty_ledger: Path) -> House:
    """Read only."""
    return House.build(tmp_path_factory.mktemp("house"), empty_ledger)


@pytest.fixture(scope="session")
def cases(house: House) -> dict[str, str]:
    """A run in every state."""
    return house.cases()


@pytest.fixture(scope="session")
def bundles(house: House, cases: dict[str, str]) -> dict[str, bytes]:
    """The evidence of each of them."""
    for run_id in cases.values():  # the summaries of all diffs first, because each adds an audit entry
        store_diff_summary(house.workspace, house.actor("bo"), house.ledger.runs.get(run_id), house.plans[run_id])
    return {name: house.export(run_id) for name, run_id in cases.items()}


@pytest.fixture
def new_house(tmp_path: Path, empty_ledger: Path) -> Callable[..., House]:
    """A house of one's own."""
    return lambda **options: House.build(tmp_path / "house", empty_ledger, **options)
