"""Database of the ledger: connections, transactions, both dialects, migrations."""
