"""The kind of a run becomes a column, by which the triggers tell runs that change nothing; earlier runs get it, too."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column and fill it from the manifests."""
    op.add_column("run", sa.Column("kind", sa.Text))
    conn = op.get_bind()
    query = "SELECT run_id, content FROM run JOIN manifest ON manifest.digest = run.manifest_digest"
    for run_id, content in conn.execute(sa.text(query)).all():
        told = {"kind": _read_kind(content), "run_id": run_id}
        conn.execute(sa.text("UPDATE run SET kind = :kind WHERE run_id = :run_id"), told)


def _read_kind(content: bytes) -> str | None:
    try:
        found = json.loads(content).get("kind")
    except (ValueError, AttributeError):
        return None  # no longer a plan: reading the manifest raises, because its digest differs
    return found if isinstance(found, str) else None
