"""How much of each trial ``make chaos`` does: every amount and every seed can be set from outside."""

from __future__ import annotations

import os

__all__ = ["amount"]


def amount(name: str, usual: int) -> int:
    """``CHAOS_<name>`` from the environment, or the usual amount."""
    return int(os.environ.get(f"CHAOS_{name}", usual))
