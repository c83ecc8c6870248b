"""What is owed after a decision or a commit: one table instead of notes of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_OPEN_NOTES = """\
SELECT 1 FROM fact owed WHERE owed.name LIKE 'owed.%' AND NOT EXISTS
 (SELECT 1 FROM fact done WHERE done.run_id = owed.run_id AND done.name = REPLACE(owed.name, 'owed.', 'done.'))"""


def upgrade() -> None:
    """Create the table; the next payment turns open notes into items, because that needs audit entries."""
    op.create_table(
        "outbox_item",
        sa.Column("item_id", sa.BigInteger, nullable=False, autoincrement=False),
        *_texts("key queue effect event consumer run_id"), sa.Column("pub_id", sa.Text),
        *_texts("table_name partitions payload state"), sa.Column("seq", sa.BigInteger),
        _count("attempts", sa.Integer), _count("not_before", sa.BigInteger), sa.Column("last_error", sa.Text),
        sa.Column("owner", sa.Text), _count("fence", sa.Integer), _count("lease_until", sa.BigInteger),
        _json("progress"), _json("result"), *_texts("at"), sa.Column("owed_at", sa.Text),
        sa.Column("ended_at", sa.Text), sa.Column("waived_by", sa.Text), sa.Column("waived_why", sa.Text),
        _count("waived_ready", sa.Integer),
        sa.Column("audit_seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("item_id", name="pk_outbox_item"),
        sa.UniqueConstraint("key", name="uq_outbox_item_key"),
        sa.UniqueConstraint("seq", name="uq_outbox_item_seq"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_outbox_item_run_id"),
        sa.ForeignKeyConstraint(["pub_id"], ["publication.pub_id"], name="fk_outbox_item_pub_id"),
        sa.CheckConstraint("waived_ready IN (0, 1)", name=op.f("ck_outbox_item_waived_ready")),
    )  # fmt: skip
    op.create_index("ix_outbox_item_queue", "outbox_item", ["state", "queue", "seq"])
    op.create_index("ix_outbox_item_run_id", "outbox_item", ["run_id", "state", "queue"])
    op.create_index("ix_outbox_item_table_name", "outbox_item", ["table_name", "state", "queue"])
    op.create_index("ix_outbox_item_pub_id", "outbox_item", ["pub_id"])
    op.create_index("ix_outbox_item_lease", "outbox_item", ["queue", "lease_until"])
    if op.get_bind().execute(sa.text(_OPEN_NOTES)).first() is not None:
        op.execute("INSERT INTO meta (key, value) VALUES ('owed_notes', 'open')")


def _texts(names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names.split()]


def _count(name: str, kind: type[sa.Integer]) -> sa.Column[int]:
    return sa.Column(name, kind, nullable=False, server_default="0")


def _json(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default="{}")
