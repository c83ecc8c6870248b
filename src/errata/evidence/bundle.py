"""Build an evidence bundle: the members and a signed index of them in one file. Pure except for the key it is given.

The file is a zip with uncompressed, sorted members without times, so the same evidence always gives the same bytes and
nothing has to be decompressed to read it. Only :mod:`errata.evidence.verifier` reads and verifies bundles.
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
    """The in-toto statement that is signed: predicate, and name, SHA-256 and size of every member."""
    subjects = [
        {"name": name, "digest": {"sha256": sha256(content)}, "annotations": {"size": len(content)}}
        for name, content in sorted(members.items())
    ]
    return canonical_bytes(
        {"_type": STATEMENT, "predicateType": PREDICATE, "subject": subjects, "predicate": dict(predicate)}
    )
