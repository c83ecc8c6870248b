"""The audit chain: append an entry inside a transaction, read entries, verify the chain.

An entry is hashed in two steps: the digest of its content, then the hash of the link ``{content, previous, run, seq}``,
each as canonical JSON. A link can therefore be shown to, and hashed again by, people who may not read the content.
``run`` is the SHA-256 of the run's id, so an entry of one run cannot be passed off as another's.

An entry that changes a run's state has ``move: {from, to}`` in its body; the triggers accept no change without it.
:func:`verify_chain` walks the whole log in one consistent view, then compares it with the rows: states and manifests
of runs, measurements of candidates, and all other governed rows (:mod:`errata.ledger.audit.verify_rows`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, func, select, union_all

from errata.canonical import canonical_bytes, sha256, to_plain
from errata.errors import UsageError
from errata.ledger.audit.measurement_digest import MEASURED, LoggedDigest, find_misreported
from errata.ledger.audit.replay import AuditReplay, ReplayEntry
from errata.ledger.audit.verify_rows import find_difference
from errata.ledger.db.database import Tx
from errata.ledger.privacy.pseudonyms import current_registry
from errata.ledger.schema.definition import audit, audit_head, metadata, run
from errata.model.audit import GENESIS, Actor, AuditEntry, Head
from errata.views.audit import AuditView

_PAGE = 1000
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


def verify_chain(conn: Connection, heads: Sequence[Head] = ()) -> AuditView:
    """Walk the chain, compare it with heads exported elsewhere, then with the stored rows.

    The result names the first entry that is wrong or missing.
    """
    seq, last, told, witness = 0, GENESIS, _LogState(), _HeadComparison(heads)
    for row in _iterate_rows(conn):
        reason = _find_entry_fault(row, seq, last)
        if reason is not None:
            return _build_failure(seq, f"entry {seq + 1}: {reason}", last)
        seq, last = row.seq, row.hash
        told.hear(row)
        if denied := witness.find_contradiction(seq, last):
            return AuditView(ok=False, entries=seq, first_bad=denied[0], reason=denied[1], head=last)
    # only a chain that is whole can be compared with the rows: a missing entry would look like a missing row
    reason = _find_truncation(conn, seq, last) or witness.find_missing_entry(seq)
    if reason is not None:
        return _build_failure(seq, reason, last)
    reason = _find_unlogged_change(conn, told)
    first_bad, reason = (None, reason) if reason else find_misreported(conn, told.measured) or (None, None)
    if reason is None and (found := find_difference(conn, told.account)):
        first_bad, reason = found.seq, found.told
    return AuditView(reason is None, seq, first_bad, reason, last)


class _HeadComparison:
    """Compares exported heads with the chain during the walk."""

    def __init__(self, heads: Sequence[Head]) -> None:
        self._heads: dict[int, list[Head]] = {}
        for one in heads:
            self._heads.setdefault(one.seq, []).append(one)
        self._agreed = 0

    def find_contradiction(self, seq: int, found: str) -> tuple[int, str] | None:
        """If an exported head contradicts this entry: the first entry that no head confirms, and the reason."""
        for head in self._heads.get(seq, ()):
            if head.hash != found:
                first = self._agreed + 1
                these = f"entry {seq} is" if first == seq else f"entries {first} to {seq} are"
                return first, (
                    f"{these} not what was exported: the head of entry {seq} of {head.at} has {head.hash}, the log has"
                    f" {found}; it was rebuilt or forked"
                )
            self._agreed = seq
        return None

    def find_missing_entry(self, seq: int) -> str | None:
        """The reason, if a head was exported for an entry that the chain no longer has."""
        last = max(self._heads, default=0)
        if last <= seq:
            return None
        at = self._heads[last][0].at
        return f"entry {seq + 1}: missing; the log ends at {seq}, but a head of entry {last} was exported ({at})"


@dataclass(frozen=True, slots=True)
class _LogState:
    """Latest state according to the log: state and manifest of each run, measurements of each candidate."""

    states: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    measured: dict[tuple[str, int], LoggedDigest] = field(default_factory=dict)
    account: AuditReplay = field(default_factory=AuditReplay)

    def hear(self, row: Row[Any]) -> None:
        body = json.loads(row.body)
        entry = ReplayEntry(row.seq, row.run_id, row.action, body, row.at, row.person)
        self.account.hear(entry, (row.person, row.os_user))
        if row.run_id is not None and MOVE in body:
            self.states[row.run_id] = body[MOVE]["to"]
            if body[MOVE]["from"] is None:
                self.digests[row.run_id] = body["manifest_digest"]
        if row.run_id is not None and row.action == MEASURED:
            self.measured[row.run_id, body.get("n")] = (row.seq, body.get("digest"))


def _build_failure(seq: int, reason: str, head: str) -> AuditView:
    return AuditView(ok=False, entries=seq, first_bad=seq + 1, reason=reason, head=head)


def _iterate_rows(conn: Connection) -> Iterator[Row[Any]]:
    query = select(audit).order_by(audit.c.seq)
    with conn.execute(query, execution_options={"yield_per": _PAGE}) as rows:
        yield from rows


def _find_entry_fault(row: Row[Any], seq: int, head: str) -> str | None:
    if row.seq != seq + 1:
        return f"missing; the next entry is {row.seq}"
    if row.previous != head:
        return "its previous hash is not the hash of the entry before"
    try:
        entry = entry_from_row(row)
        canonical = canonical_bytes(entry.body).decode()
        is_its_hash = row.hash == entry_hash(entry)
    except (ValueError, TypeError, AttributeError):
        return "its content is not what Errata writes"
    if canonical != row.body or row.single_user not in (0, 1):
        return "its content is not canonical"
    if not is_its_hash:
        return "its content does not have its hash"
    return None


def _find_truncation(conn: Connection, seq: int, head: str) -> str | None:
    row = conn.execute(select(audit_head)).one()
    if (row.seq, row.hash) != (seq, head):
        return f"entry {seq + 1}: missing; the log ends at {seq}, its head was {row.seq}"
    named = [table for table in metadata.sorted_tables if "audit_seq" in table.c]
    newest = union_all(*(select(func.max(table.c.audit_seq).label("seq")) for table in named)).subquery()
    highest = conn.execute(select(func.max(newest.c.seq))).scalar() or 0
    if highest > seq:
        return f"entry {seq + 1}: missing; the log ends at {seq}, but rows were written with entry {highest}"
    return None


def _find_unlogged_change(conn: Connection, told: _LogState) -> str | None:
    rows = {row.run_id: row for row in conn.execute(select(run.c.run_id, run.c.state, run.c.manifest_digest))}
    for run_id in sorted(rows.keys() | told.states.keys()):
        row, state, digest = rows.get(run_id), told.states.get(run_id), told.digests.get(run_id)
        if row is None or row.state != state:
            found = row.state if row is not None else "not there"
            return f"run {run_id} is {found}, but its last audited state is {state}: a change that was not logged"
        if row.manifest_digest != digest:
            return f"run {run_id} has manifest {row.manifest_digest}, but was planned with {digest}"
    return None


def entry_from_row(row: Row[Any]) -> AuditEntry:
    """A row as the entry that was hashed."""
    actor = Actor(row.person, row.os_user, row.host, bool(row.single_user))
    return AuditEntry(row.seq, row.previous, row.hash, row.at, actor, row.action, row.run_id, json.loads(row.body))
