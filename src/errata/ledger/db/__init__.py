"""The database under the ledger: connections, transactions, both dialects, migrations."""
