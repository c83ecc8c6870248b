"""The first schema. Its number is that of the last migration before the first release; all ledgers have it or more."""

from __future__ import annotations

revision = "0007"
down_revision = None


def upgrade() -> None:
    """Nothing to do: a new ledger is made from the definition of its tables."""
