from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from errata.ledger import Ledger


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated ledger file; a copy saves each test the migration."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def path(tmp_path: Path, empty_ledger: Path) -> Path:
    """The file of this test's ledger."""
    return shutil.copy(empty_ledger, tmp_path / "ledger.db")


@pytest.fixture
def url(path: Path) -> str:
    """The URL of this test's ledger."""
    return f"sqlite:///{path}"


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """A fresh ledger."""
    with Ledger.open(url) as opened:
        yield opened
