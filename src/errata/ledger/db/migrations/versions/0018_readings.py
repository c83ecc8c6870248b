"""Metrics: the last readings, and an index that counts runs without reading their partitions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Create the table and the index."""
    op.create_table(
        "reading",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("product", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", "product", "subject", name="pk_reading"),
    )
    op.create_index("ix_run_state", "run", ["state", "updated_at", "product", "run_id"])
