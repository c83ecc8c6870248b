"""Verify the audit chain: walk the whole log in one consistent view, then compare it with the rows.

The rows are states and manifests of runs, measurements of candidates, and all other governed rows
(:mod:`errata.ledger.audit.verify_rows`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, func, select, union_all

from errata.canonical import canonical_bytes
from errata.ledger.audit.chain import MOVE, entry_from_row, entry_hash
from errata.ledger.audit.measurement_digest import MEASURED, LoggedDigest, find_misreported
from errata.ledger.audit.replay import AuditReplay, ReplayEntry
from errata.ledger.audit.verify_rows import find_difference
from errata.ledger.schema.definition import audit, audit_head, metadata, run
from errata.model.audit import GENESIS, Head
from errata.views.audit import AuditView

_PAGE = 1000


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
