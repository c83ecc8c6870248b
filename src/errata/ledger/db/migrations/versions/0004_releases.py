"""Releases: candidate, verdict and accepted warnings by one digest; and why a decision was behind broken glass."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Only additions, so that runs in flight go on."""
    op.add_column("approval", sa.Column("break_glass", sa.Text(), server_default="", nullable=False))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "released",
        sa.Column("id", number, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("candidate_n", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("break_glass", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('release', 'publish', 'automatic')", name=op.f("ck_released_kind")),
        sa.ForeignKeyConstraint(
            ["run_id", "candidate_n"], ["candidate.run_id", "candidate.n"], name=op.f("fk_released_run_id_candidate_n")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_released")),
    )
    op.create_index("ix_released_run_id", "released", ["run_id"])
