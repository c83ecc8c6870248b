"""Processes forked from one that has imported everything and opened nothing, so that none of them imports it again.

A process has one such server, and the list that is set last is the one that counts: hence one list, for all suites.
"""

from __future__ import annotations

import multiprocessing

__all__ = ["FORKS"]

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pytest", "alembic.command", "tenacity", "sqlalchemy.dialects.postgresql.psycopg", "errata.ledger",
        "support.attached", "errata.cli.main", "errata.wiring.engines", "pyspark.sql", "pyiceberg.catalog.sql",
    ]
)  # fmt: skip
