"""What long runs need: waves, losses and backoff of a chunk, the cost of an attempt, facts found out once per run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Only additions, so that runs in flight go on."""
    op.add_column("chunk", sa.Column("wave", sa.Integer(), server_default="1", nullable=False))
    op.add_column("chunk", sa.Column("losses", sa.Integer(), server_default="0", nullable=False))
    op.add_column("chunk", sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("chunk", sa.Column("origin", sa.Text(), nullable=True))
    op.add_column("attempt", sa.Column("cost", sa.Text(), nullable=True))
    op.create_index("ix_attempt_state", "attempt", ["run_id", "state"])
    op.create_table(
        "fact",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name=op.f("fk_fact_run_id")),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_fact")),
    )
