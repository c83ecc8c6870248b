from __future__ import annotations

from unit.ledger.contract import LedgerContract


class TestSqliteLedger(LedgerContract):
    """SQLite keeps every promise of the ledger."""
