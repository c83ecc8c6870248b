"""Runs whose partitions live wrote go back to running: the moves are seeded with every migration."""

from __future__ import annotations

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """No table changes."""
