"""Standing approvals: what they cover, who decided, and each run that used one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "standing",
        _text("digest"), _text("product"), _text("subject"), _text("at"), _audit_seq(),
        sa.PrimaryKeyConstraint("digest", name="pk_standing"),
    )  # fmt: skip
    op.create_index("ix_standing_product", "standing", ["product"])
    op.create_table(
        "standing_decision",
        sa.Column("id", _NUMBER, autoincrement=True), _text("digest"), _text("person"), _text("decision"),
        _text("note"), _text("at"), _audit_seq(),
        sa.PrimaryKeyConstraint("id", name="pk_standing_decision"),
        sa.ForeignKeyConstraint(["digest"], ["standing.digest"], name="fk_standing_decision_digest"),
        sa.CheckConstraint("decision IN ('approved', 'revoked')", name=op.f("ck_standing_decision_decision")),
    )  # fmt: skip
    op.create_index("ix_standing_decision_digest", "standing_decision", ["digest"])
    op.create_table(
        "standing_use",
        _text("run_id"), _text("digest"), _text("product"), sa.Column("partitions", sa.Integer, nullable=False),
        _text("at"), sa.Column("at_ms", sa.BigInteger, nullable=False), _audit_seq(),
        sa.PrimaryKeyConstraint("run_id", name="pk_standing_use"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_standing_use_run_id"),
        sa.ForeignKeyConstraint(["digest"], ["standing.digest"], name="fk_standing_use_digest"),
    )  # fmt: skip
    op.create_index("ix_standing_use_product", "standing_use", ["product", "at_ms"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _audit_seq() -> sa.Column[int]:
    return sa.Column("audit_seq", sa.BigInteger, nullable=False)
