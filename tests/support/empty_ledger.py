"""A ledger in which nothing happened yet; a copy saves a test the creation of its tables."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from errata.ledger import Ledger

__all__ = ["empty_ledger"]


@cache
def empty_ledger() -> bytes:
    """The SQLite file, as the current code makes it."""
    with tempfile.TemporaryDirectory() as place:
        Ledger.open(f"sqlite:///{place}/ledger.db").close()
        return (Path(place) / "ledger.db").read_bytes()
