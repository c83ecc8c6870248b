"""What is owed after a decision or a commit: one table instead of notes of runs."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from errata.ledger.schema import definition

revision = "0014"
down_revision = "0013"

_OPEN_NOTES = """\
SELECT 1 FROM fact owed WHERE owed.name LIKE 'owed.%' AND NOT EXISTS
 (SELECT 1 FROM fact done WHERE done.run_id = owed.run_id AND done.name = REPLACE(owed.name, 'owed.', 'done.'))"""


def upgrade() -> None:
    """Create the table; the next payment turns open notes into items, because that needs audit entries."""
    definition.outbox_item.create(op.get_bind())
    if op.get_bind().execute(text(_OPEN_NOTES)).first() is not None:
        op.get_bind().execute(definition.meta.insert(), {"key": "owed_notes", "value": "open"})
