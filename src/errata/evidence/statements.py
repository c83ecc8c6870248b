"""The index of a bundle: an in-toto statement whose subjects are all members, by digest and size. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.canonical import canonical_bytes, sha256
from errata.evidence.verifier import PREDICATE, STATEMENT

__all__ = ["statement"]


def statement(members: Mapping[str, bytes], predicate: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    subjects = [
        {"name": name, "digest": {"sha256": sha256(content)}, "annotations": {"size": len(content)}}
        for name, content in sorted(members.items())
    ]
    return canonical_bytes(
        {"_type": STATEMENT, "predicateType": PREDICATE, "subject": subjects, "predicate": dict(predicate)}
    )
