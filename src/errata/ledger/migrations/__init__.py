"""Alembic's environment; see :mod:`errata.ledger.migrate` for when it is used."""
