"""Recordings: one row per file that was imported or recorded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "recorded_file",
        _text("file_id"), _text("source"), _text("format"), _text("name"), _text("path"), _number("bytes"),
        _text("sha256"), _text("identity"), _number("rows"), _number("bad_rows"), sa.Column("range_start", sa.Text),
        sa.Column("range_end", sa.Text), _text("columns"), _text("fingerprint"), _text("produced_at"),
        _text("seen_at"), sa.Column("attempt", sa.Integer, nullable=False), sa.Column("manifest_id", sa.Text),
        sa.Column("first_run", sa.Text), _text("status"), _text("why"), sa.Column("twin", sa.Text),
        sa.Column("supersedes", sa.Text), _text("keep_until"), _text("place"), _text("content"),
        _number("content_bytes"), _text("content_sha256"), sa.Column("expired_at", sa.Text), _number("audit_seq"),
        sa.PrimaryKeyConstraint("file_id", name="pk_recorded_file"),
        sa.ForeignKeyConstraint(["first_run"], ["run.run_id"], name="fk_recorded_file_first_run"),
        sa.UniqueConstraint("identity", "attempt", name="uq_recorded_file_identity_attempt"),
        sa.CheckConstraint(
            "status IN ('accepted', 'rejected', 'superseded', 'expired')", name=op.f("ck_recorded_file_status")
        ),
    )  # fmt: skip
    op.create_index("ix_recorded_file_source", "recorded_file", ["source", "status"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)
