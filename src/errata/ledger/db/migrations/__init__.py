"""Alembic's environment; see :mod:`errata.ledger.db.migrate` for when it is used."""
