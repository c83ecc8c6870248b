"""People: a pseudonym each, the name and the key that belong to it, and nothing else about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Rows that were written before keep the names they have: the audit over them is hashed."""
    op.create_table(
        "subject",
        sa.Column("pseudonym", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=True),
        sa.Column("secret", sa.LargeBinary(), nullable=True),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("audit_seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pseudonym", name=op.f("pk_subject")),
        sa.UniqueConstraint("handle", name=op.f("uq_subject_handle")),
    )
