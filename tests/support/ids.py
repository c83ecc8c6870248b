"""Publication ids without the part that makes them unique in time, for tests that know which one it must be."""

from __future__ import annotations

import re

__all__ = ["numbered"]

_ID = re.compile(r"(.+-[pr]\d+)-[0-9a-f]{6}")


def numbered(pub_id: str) -> str:
    """``bf-1-p1`` of ``bf-1-p1-3fa9c2``; anything else stays as it is."""
    found = _ID.fullmatch(pub_id)
    return found[1] if found else pub_id
