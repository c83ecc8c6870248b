"""What the ledger records about runs, one module per kind of record."""
