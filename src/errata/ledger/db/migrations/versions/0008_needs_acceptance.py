"""The state needs_acceptance: no table changes, but every migration writes the allowed moves of a run again."""

from __future__ import annotations

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Nothing to do here: a run that was rejected for warnings alone gets the new state when it is judged again."""
