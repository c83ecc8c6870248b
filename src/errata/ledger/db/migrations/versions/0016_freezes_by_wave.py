"""Freezes by wave: a run has one for each wave; a freeze of before is that of the first wave, with all its partitions.

Allowed moves of runs, which are written again with every migration, let a wave be judged while another is published.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_OLD = "SELECT run_id, 1 AS wave, table_name, partitions, person, opened_at, granted_at, lease_until, most_until, \
ended_at, audit_seq FROM frozen_scope"


def upgrade() -> None:
    """Make the table again, because SQLite cannot change the key of one."""
    conn = op.get_bind()
    rows = [dict(row) for row in conn.execute(sa.text(_OLD)).mappings()]
    op.drop_table("frozen_scope")
    made = op.create_table(
        "frozen_scope",
        _text("run_id"), sa.Column("wave", sa.Integer, nullable=False, autoincrement=False), _text("table_name"),
        _text("partitions"), _text("person"), _text("opened_at"), sa.Column("granted_at", sa.Text),
        _number("lease_until"), _number("most_until"), sa.Column("ended_at", sa.Text), _number("audit_seq"),
        sa.PrimaryKeyConstraint("run_id", "wave", name="pk_frozen_scope"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_frozen_scope_run_id"),
    )  # fmt: skip
    op.create_index("ix_frozen_scope_table_name", "frozen_scope", ["table_name"])
    if rows:
        conn.execute(made.insert(), rows)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)
