"""The independent checker: reads the ledger database, table metadata and files, and never product code."""

from __future__ import annotations

from pathlib import Path


def assert_invariants(root: Path) -> None:
    """Placeholder until the checks below are filled in."""
    assert root.exists()
