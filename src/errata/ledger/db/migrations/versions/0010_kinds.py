"""Runs that change nothing: no table changes, but every migration writes the allowed moves and the triggers again."""

from __future__ import annotations

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Nothing to do here: no earlier run attests or reconciles, because such kinds were refused."""
