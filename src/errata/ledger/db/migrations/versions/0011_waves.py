"""Waves: no table changes, but a release follows the verdict on its own candidate, and runs have more moves."""

from __future__ import annotations

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Nothing to do here: triggers and allowed moves are written again with every migration."""
