"""The audit chain: append an entry inside a transaction, read entries.

An entry is hashed in two steps: the digest of its content, then the hash of the link ``{content, previous, run, seq}``,
each as canonical JSON. A link can therefore be shown to, and hashed again by, people who may not read the content.
``run`` is the SHA-256 of the run's id, so an entry of one run cannot be passed off as another's.

An entry that changes a run's state has ``move: {from, to}`` in its body; the triggers accept no change without it.
:mod:`errata.ledger.audit.chain_check` verifies it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.canonical import canonical_bytes, sha256, to_plain
from errata.errors import UsageError
from errata.ledger.db.database import Tx
from errata.ledger.privacy.pseudonyms import current_registry
from errata.ledger.schema.definition import audit
from errata.model.audit import GENESIS, Actor, AuditEntry

MOVE = "move"


def append_entry(
    tx: Tx,
    actor: Actor,
    action: str,
    run_id: str | None,
    body: Mapping[str, Any] | None = None,
    move: tuple[str | None, str] | None = None,
) -> AuditEntry:
    """Append one entry in the transaction that makes the change; returns the entry as stored."""
    # an error message from elsewhere may quote a secret, and audit entries can never be edited
    full: dict[str, Any] = _redact_texts(to_plain(body or {}), tx.redact)
    if MOVE in full:
        raise UsageError("an audit body was refused; 'move' is reserved for changes of state")
    if move is not None:
        full[MOVE] = {"from": move[0], "to": move[1]}
    people, seq = current_registry(), tx.head_seq + 1
    who = Actor(people.begin(actor.person, tx.at, seq), people.pseudonym(actor.os_user), actor.host, actor.single_user)
    # names and typed text are replaced before hashing, so that a person can be erased without breaking the chain
    full = people.conceal(full, action)
    open_entry = AuditEntry(seq, tx.head_hash, "", tx.at, who, action, run_id, full)
    entry = AuditEntry(seq, tx.head_hash, entry_hash(open_entry), tx.at, who, action, run_id, full)
    tx.conn.execute(
        audit.insert(),
        {
            "seq": entry.seq,
            "previous": entry.previous,
            "hash": entry.hash,
            "at": entry.at,
            "person": who.person,
            "os_user": who.os_user,
            "host": who.host,
            "single_user": int(who.single_user),
            "action": action,
            "run_id": run_id,
            "body": canonical_bytes(full).decode(),
        },
    )
    tx.head_seq, tx.head_hash = entry.seq, entry.hash
    tx.entries.append(entry)
    tx.actor = actor
    return entry


def _redact_texts(said: Any, redact: Callable[[str], str]) -> Any:
    """Redact text by text, so that a secret that is also JSON syntax cannot change the structure."""
    match said:
        case str():
            return redact(said)
        case dict():
            return {redact(key): _redact_texts(item, redact) for key, item in said.items()}
        case list():
            return [_redact_texts(item, redact) for item in said]
        case _:
            return said


def entry_hash(entry: AuditEntry) -> str:
    """The SHA-256 of the entry's link, which holds the digest of its content."""
    return sha256(link_bytes(entry))


def link_bytes(entry: AuditEntry) -> bytes:
    """Canonical bytes that link an entry to the previous one; its content only as a digest."""
    run = sha256(entry.run_id.encode()) if entry.run_id is not None else None
    content = sha256(content_bytes(entry))
    return canonical_bytes({"content": content, "previous": entry.previous, "run": run, "seq": entry.seq})


def content_bytes(entry: AuditEntry) -> bytes:
    """Canonical bytes of the content of an entry: time, actor, action, run and body."""
    fields = to_plain(entry)
    return canonical_bytes({name: fields[name] for name in ("at", "actor", "action", "run_id", "body")})


def load_entries(
    conn: Connection, run_id: str | None, limit: int | None, actions: Collection[str] = ()
) -> tuple[AuditEntry, ...]:
    """Entries as stored, oldest first; ``limit`` keeps the newest, ``actions`` filters by action."""
    query = select(audit).order_by(audit.c.seq.desc()).limit(limit)
    if actions:
        query = query.where(audit.c.action.in_(sorted(actions)))
    if run_id is not None:
        query = query.where(audit.c.run_id == run_id)
    return tuple(entry_from_row(row) for row in reversed(conn.execute(query).all()))


def read_head(conn: Connection) -> tuple[int, str, str]:
    """Number, hash and time of the last entry; zero, the genesis hash and an empty time for an empty log."""
    row = conn.execute(select(audit.c.seq, audit.c.hash, audit.c.at).order_by(audit.c.seq.desc()).limit(1)).first()
    return (0, GENESIS, "") if row is None else (row.seq, row.hash, row.at)


def read_hash(conn: Connection, seq: int) -> str | None:
    """The hash of entry ``seq``; None when there is no such entry."""
    return GENESIS if seq == 0 else conn.execute(select(audit.c.hash).where(audit.c.seq == seq)).scalar()


def find_uncovered_since(conn: Connection, seq: int) -> str | None:
    """When the first publication or rollback after this entry was settled; None when there is none."""
    settled = audit.c.action.in_(("publish.committed", "rollback.committed"))
    query = select(audit.c.at).where(audit.c.seq > seq, settled).order_by(audit.c.seq).limit(1)
    return conn.execute(query).scalar()


def entry_from_row(row: Row[Any]) -> AuditEntry:
    """A row as the entry that was hashed."""
    actor = Actor(row.person, row.os_user, row.host, bool(row.single_user))
    return AuditEntry(row.seq, row.previous, row.hash, row.at, actor, row.action, row.run_id, json.loads(row.body))
