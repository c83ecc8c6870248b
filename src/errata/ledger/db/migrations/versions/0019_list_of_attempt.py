"""Attempts name the snapshot of the list of erased subjects that they read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column; attempts from before have read no list."""
    op.add_column("attempt", sa.Column("erasure_snapshot_id", sa.Text))
