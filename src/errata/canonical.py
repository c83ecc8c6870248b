"""Canonical JSON (RFC 8785) and digests: the one place where values become bytes that are hashed. Pure.

``rfc8785`` refuses integers above 2^53 and decimals instead of rounding them, so ids and money must be text by the
time they come here.
"""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785

from errata.model.codec import plain

__all__ = ["canonical_bytes", "digest_of", "sha256"]


def canonical_bytes(value: Any) -> bytes:
    """The canonical bytes of a value made of dataclasses and JSON data."""
    return rfc8785.dumps(plain(value))


def sha256(content: bytes) -> str:
    """Bare 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def digest_of(value: Any) -> str:
    """The SHA-256 of a value's canonical bytes."""
    return sha256(canonical_bytes(value))
