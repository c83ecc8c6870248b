"""Parts: long lists and code, stored once under the SHA-256 of their bytes and never changed or removed."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from errata.canonical import sha256
from errata.errors import ManifestTampered, NotFound
from errata.ledger.db.database import Tx
from errata.ledger.schema.definition import part
from errata.ledger.store.base import Store


class Parts(Store):
    """Content by digest."""

    def put(self, content: bytes) -> str:
        """Store these bytes and return their digest. Idempotent."""
        digest = sha256(content)
        if not self._read(lambda conn: _has_part(conn, digest)):
            self._database.write(lambda tx: save_parts(tx, [content]))
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes with this digest, verified by hashing them again."""
        return self._read(lambda conn: load_part(conn, digest))


def load_part(conn: Connection, digest: str) -> bytes:
    """The bytes with this digest; raises when they are missing or their hash differs."""
    content = conn.execute(select(part.c.content).where(part.c.digest == digest)).scalar()
    if content is None:
        raise NotFound(f"there is no part {digest} in this ledger", digest=digest)
    found = digest_content(content)
    if found != digest:
        raise ManifestTampered(
            f"a part of a manifest was refused; expected SHA-256 {digest}, found {found}",
            state="nothing was changed",
            hint="errata audit verify; then plan again",
            expected=digest,
            found=found,
        )
    return bytes(content)


def digest_content(content: object) -> str:
    """The digest of a stored value, which in an edited SQLite file may be text instead of bytes."""
    return sha256(content) if isinstance(content, bytes) else f"no bytes but {type(content).__name__}"


def save_parts(tx: Tx, contents: Iterable[bytes]) -> tuple[str, ...]:
    """Store each content that is not stored yet; returns the digests in the same order."""
    digests = []
    for content in contents:
        digest = sha256(content)
        if not _has_part(tx.conn, digest):
            tx.conn.execute(part.insert(), {"digest": digest, "content": content, "at": tx.at})
        digests.append(digest)
    return tuple(digests)


def _has_part(conn: Connection, digest: str) -> bool:
    return conn.execute(select(part.c.digest).where(part.c.digest == digest)).first() is not None
