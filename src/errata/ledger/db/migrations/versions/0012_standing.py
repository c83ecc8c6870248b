"""Standing approvals: what they cover, who decided, and each run that used one."""

from __future__ import annotations

from alembic import op

from errata.ledger.schema import definition

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create the tables."""
    for table in (definition.standing, definition.standing_decision, definition.standing_use):
        table.create(op.get_bind())
