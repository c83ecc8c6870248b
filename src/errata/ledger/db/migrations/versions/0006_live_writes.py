"""Freezes of runs, and leases of live writers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Only additions, so that runs in flight go on."""
    op.create_table(
        "frozen_scope",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Text(), nullable=False),
        sa.Column("granted_at", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("most_until", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_frozen_scope_run_id")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_frozen_scope")),
    )
    op.create_index("ix_frozen_scope_table_name", "frozen_scope", ["table_name"])
    op.create_table(
        "live_write",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("partitions", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_live_write")),
    )
    op.create_index("ix_live_write_table_name", "live_write", ["table_name"])
