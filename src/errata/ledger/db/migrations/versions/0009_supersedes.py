"""The run that a run supersedes becomes a column; earlier runs get it from their manifests."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column and its index, and fill them."""
    op.add_column("run", sa.Column("supersedes", sa.Text))
    op.create_index("ix_run_supersedes", "run", ["supersedes"])
    conn = op.get_bind()
    query = "SELECT run_id, content FROM run JOIN manifest ON manifest.digest = run.manifest_digest"
    for run_id, content in conn.execute(sa.text(query)).all():
        if older := _read_superseded(content):
            told = {"older": older, "run_id": run_id}
            conn.execute(sa.text("UPDATE run SET supersedes = :older WHERE run_id = :run_id"), told)


def _read_superseded(content: bytes) -> str | None:
    try:
        found = json.loads(content).get("supersedes")
    except (ValueError, AttributeError):
        return None  # no longer a plan: reading the manifest raises, because its digest differs
    return found if isinstance(found, str) else None
