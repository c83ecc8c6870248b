"""Holds: the time that consumers get before a publication."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "hold",
        _text("hold_id"), _text("run_id"), _integer("n"), _integer("wave"), _text("consumer"), _text("table_name"),
        _text("partitions"), sa.Column("snapshot_id", sa.Text), _integer("acknowledge"), _text("on_timeout"),
        _text("opened_at"), _time("notice_until"), _time("until"), _text("state"),
        sa.Column("acknowledged_by", sa.Text), sa.Column("acknowledged_at", sa.Text), sa.Column("skipped_by", sa.Text),
        sa.Column("ended_at", sa.Text), _time("audit_seq"),
        sa.PrimaryKeyConstraint("hold_id", name="pk_hold"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_hold_run_id"),
        sa.UniqueConstraint("run_id", "n", name="uq_hold_run_id_n"),
        sa.CheckConstraint("acknowledge IN (0, 1)", name=op.f("ck_hold_acknowledge")),
        sa.CheckConstraint("on_timeout IN ('go', 'stop')", name=op.f("ck_hold_on_timeout")),
    )  # fmt: skip
    op.create_index("ix_hold_consumer", "hold", ["consumer", "state"])
    op.create_index("ix_hold_table_name", "hold", ["table_name", "state"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _integer(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _time(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)
