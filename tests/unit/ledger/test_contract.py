from __future__ import annotations

from unit.ledger.contract import LedgerContract


class TestLedger(LedgerContract):
    """SQLite and PostgreSQL keep every promise of the ledger."""
