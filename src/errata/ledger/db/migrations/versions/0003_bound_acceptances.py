"""A person accepts what was found, not a name: the digest of the findings that an acceptance is about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Older acceptances are about nothing in particular, and no longer count for a new verdict."""
    op.add_column("warning_acceptance", sa.Column("findings", sa.Text(), server_default="", nullable=False))
