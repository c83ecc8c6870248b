"""Ways to spoil a bundle: without the key, member by member, and with the key, by someone who lies."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from errata.canonical import canonical_bytes
from errata.evidence.bundle import build_bundle
from errata.evidence.keys import SigningKey
from errata.evidence.verifier import INDEX, archive


def unpacked(bundle: bytes) -> dict[str, bytes]:
    """Members by name, with the index."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as opened:
        return {info.filename: opened.read(info) for info in opened.infolist()}


def packed(members: Mapping[str, bytes]) -> bytes:
    """The same container around other members; the index stays as it was signed."""
    return b"".join(archive(members))


def flipped(content: bytes, at: int = -1) -> bytes:
    """One bit of one byte."""
    at = at % len(content) if content else 0
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] if content else b"x"


def predicate_of(bundle: bytes) -> dict[str, Any]:
    """What the index says about the run."""
    payload = base64.b64decode(json.loads(unpacked(bundle)[INDEX])["payload"])
    found: dict[str, Any] = json.loads(payload)["predicate"]
    return found


def resealed(bundle: bytes, key: SigningKey, **changes: Callable[[Any], Any]) -> bytes:
    """Signed again by the holder of the key, with records changed; ``run`` is records/run.json."""
    members = unpacked(bundle)
    del members[INDEX]
    for name, change in changes.items():
        member = next(one for one in members if one.rpartition("/")[2] == f"{name}.json")
        data = json.loads(members[member])
        made = change(data)
        members[member] = canonical_bytes(data if made is None else made)
    return build_bundle(members, predicate_of(bundle), key)


def with_lines(bundle: bytes, key: SigningKey, change: Callable[[list[Any]], Any]) -> bytes:
    """Signed again, with other audit entries."""
    members = unpacked(bundle)
    del members[INDEX]
    entries = [json.loads(line) for line in members["audit/entries.jsonl"].splitlines()]
    made = change(entries)
    text = b"".join(canonical_bytes(one) + b"\n" for one in (entries if made is None else made))
    return build_bundle(members | {"audit/entries.jsonl": text}, predicate_of(bundle), key)
