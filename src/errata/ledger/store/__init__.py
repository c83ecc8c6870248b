"""Stores of the ledger, one module per kind of record."""
