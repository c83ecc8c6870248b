"""Build a bundle: the members, a signed index of them, one file. Pure except for the key it is given.

The file is a zip whose members are stored, sorted and without times, so the same evidence is always the same bytes and
nothing has to be decompressed to look at it. It is read and judged by :mod:`errata.evidence.verifier` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.canonical import canonical_bytes, sha256
from errata.errors import UsageError
from errata.evidence.dsse import sign_envelope
from errata.evidence.keys import SigningKey
from errata.evidence.verifier import INDEX, MAX_BYTES, MAX_MEMBERS, PAYLOAD_TYPE, PREDICATE, STATEMENT, archive


def build_bundle(members: Mapping[str, bytes], predicate: Mapping[str, Any], key: SigningKey) -> bytes:
    """The bundle's bytes."""
    index = sign_envelope(build_statement(members, predicate), PAYLOAD_TYPE, key)
    size = sum(map(len, members.values()))
    if size + len(index) > MAX_BYTES // 2 or len(members) >= MAX_MEMBERS:
        raise UsageError(
            f"evidence of {len(members)} members and {size} bytes was refused; expected fewer than {MAX_MEMBERS} and at"
            f" most {MAX_BYTES // 2} bytes",
            state="nothing was written",
        )
    return b"".join(archive({**members, INDEX: index}))


def build_statement(members: Mapping[str, bytes], predicate: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    subjects = [
        {"name": name, "digest": {"sha256": sha256(content)}, "annotations": {"size": len(content)}}
        for name, content in sorted(members.items())
    ]
    return canonical_bytes(
        {"_type": STATEMENT, "predicateType": PREDICATE, "subject": subjects, "predicate": dict(predicate)}
    )
