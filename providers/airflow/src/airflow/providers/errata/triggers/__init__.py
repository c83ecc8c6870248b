"""Triggers: they read Errata's ledger, through its command line, until something has happened."""
