"""Runs the migrations on the connection that the ledger opened, inside its transaction."""

from __future__ import annotations

from alembic import context

from errata.ledger.schema.definition import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
