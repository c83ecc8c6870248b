"""Campaigns: what is approved, by whom, the approvals of their members, and their steps that are not runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "campaign",
        _text("campaign_id"), _text("digest"), _text("product"), _text("planned_by"), _text("reason"),
        _text("planned_at"), sa.Column("valid_until", sa.BigInteger, nullable=False), _text("state"),
        sa.Column("supersedes", sa.Text), _text("updated_at"), _audit_seq(),
        sa.PrimaryKeyConstraint("campaign_id", name="pk_campaign"),
        sa.ForeignKeyConstraint(["digest"], ["manifest.digest"], name="fk_campaign_digest"),
        sa.UniqueConstraint("digest", name="uq_campaign_digest"),
        sa.CheckConstraint("state IN ('open', 'declined', 'cancelled')", name=op.f("ck_campaign_state")),
    )  # fmt: skip
    op.create_table(
        "campaign_approval",
        sa.Column("id", _NUMBER, autoincrement=True), _text("campaign_id"), _text("person"), _text("decision"),
        _text("digest"), _text("note"), _text("at"), _audit_seq(),
        sa.PrimaryKeyConstraint("id", name="pk_campaign_approval"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaign.campaign_id"], name="fk_campaign_approval_campaign_id"),
        sa.CheckConstraint("decision IN ('approved', 'declined')", name=op.f("ck_campaign_approval_decision")),
    )  # fmt: skip
    op.create_index("ix_campaign_approval_campaign_id", "campaign_approval", ["campaign_id"])
    op.create_table(
        "member_approval",
        _text("run_id"), _text("campaign_id"), _text("product"), _text("campaign_digest"), _text("digest"),
        _text("derived"), _text("at"), _audit_seq(),
        sa.PrimaryKeyConstraint("run_id", name="pk_member_approval"),
        sa.ForeignKeyConstraint(["run_id"], ["run.run_id"], name="fk_member_approval_run_id"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaign.campaign_id"], name="fk_member_approval_campaign_id"),
        sa.ForeignKeyConstraint(["derived"], ["part.digest"], name="fk_member_approval_derived"),
        sa.UniqueConstraint("campaign_id", "product", name="uq_member_approval_campaign_id_product"),
    )  # fmt: skip
    op.create_table(
        "campaign_step",
        sa.Column("id", _NUMBER, autoincrement=True), _text("campaign_id"), _text("step"), _text("outcome"),
        _text("detail"), _text("at"), _audit_seq(),
        sa.PrimaryKeyConstraint("id", name="pk_campaign_step"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaign.campaign_id"], name="fk_campaign_step_campaign_id"),
        sa.ForeignKeyConstraint(["detail"], ["part.digest"], name="fk_campaign_step_detail"),
        sa.CheckConstraint("outcome IN ('built', 'failed')", name=op.f("ck_campaign_step_outcome")),
    )  # fmt: skip
    op.create_index("ix_campaign_step_campaign_id", "campaign_step", ["campaign_id"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _audit_seq() -> sa.Column[int]:
    return sa.Column("audit_seq", sa.BigInteger, nullable=False)
