"""Canonical JSON (RFC 8785) and digests: the one place where values become bytes that are hashed. Pure.

``rfc8785`` refuses integers above 2^53 and decimals instead of rounding them, so ids and money must be text by the
time they come here. It is written in Python; where data is ASCII text and whole numbers, which the standard library's
encoder writes to the same bytes, that one does the work: a manifest of 43,800 hours is mostly this.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

from errata.model.codec import plain

__all__ = ["canonical_bytes", "digest_of", "sha256", "strict_json"]

_SAFE_DIGITS = 15  # below 2^53 whatever they are


def canonical_bytes(value: Any) -> bytes:
    """The canonical bytes of a value made of dataclasses and JSON data."""
    data = plain(value)
    return _ascii(data) or rfc8785.dumps(data)


def _ascii(data: Any) -> bytes | None:
    """The bytes when everything is ASCII text, a safe whole number, true, false or null; None for anything else."""
    try:
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        if not text.isascii():
            return None
        json.loads(text, parse_float=_not_whole, parse_int=_whole)
    except (TypeError, ValueError, RecursionError):
        return None
    return text.encode("ascii")


def _whole(digits: str) -> int:
    if len(digits) > _SAFE_DIGITS:
        raise ValueError(digits)
    return 0


def _not_whole(digits: str) -> float:
    raise ValueError(digits)


def strict_json(content: bytes) -> Any:
    """What the bytes say, if every reader would read the same: no key twice, no NaN, no half of a pair.

    Raises ``ValueError`` for anything else.
    """
    text = content.decode("utf-8")
    data = json.loads(text, object_pairs_hook=_once, parse_constant=_not_whole)
    if "\\ud" in text.lower():
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def sha256(content: bytes) -> str:
    """Bare 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def digest_of(value: Any) -> str:
    """The SHA-256 of a value's canonical bytes."""
    return sha256(canonical_bytes(value))
