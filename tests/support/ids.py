"""Publication ids without the part that makes them unique in time, for tests that know which one it must be."""

from __future__ import annotations

import re

__all__ = ["numbered", "plain_ref"]

_NONCE = re.compile(r"(-[pr]\d+)-[0-9a-f]{6}|(_c\d+)_[0-9a-f]+$")
_ID = re.compile(r"(.+-[pr]\d+)-[0-9a-f]{6}")


def numbered(pub_id: str) -> str:
    """``bf-1-p1`` of ``bf-1-p1-3fa9c2``; anything else stays as it is."""
    found = _ID.fullmatch(pub_id)
    return found[1] if found else pub_id


def plain_ref(name: str) -> str:
    """``errata_bf-1-p1_undo`` of ``errata_bf-1-p1-3fa9c2_undo``, ``errata_bf-1_c1`` of ``errata_bf-1_c1_5d41402a``."""
    return _NONCE.sub(lambda found: found[1] or found[2], name)
