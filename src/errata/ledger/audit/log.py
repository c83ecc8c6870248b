"""The audit log as commands use it: add entries, read them, verify the chain."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from errata.ledger.audit.chain import (
    append_entry,
    find_uncovered_since,
    load_entries,
    read_hash,
    read_head,
)
from errata.ledger.privacy.people import reveal_entry
from errata.ledger.store.base import Store, find_run
from errata.ledger.store.campaign_members import find_member_of
from errata.ledger.store.standing import find_used_standing
from errata.model.audit import Actor, AuditEntry, Head

if TYPE_CHECKING:
    from errata.ledger.audit.excerpt import AuditExcerpt
    from errata.views.audit import AuditView


class AuditLog(Store):
    """Entries of the hash chain."""

    def record_refusal(
        self, run_id: str | None, actor: Actor, action: str, reason: str, body: Mapping[str, Any] | None = None
    ) -> AuditEntry:
        """Audit a refusal that was decided elsewhere."""
        full = {**(body or {}), "attempted": action, "reason": reason}
        return self._database.write(lambda tx: append_entry(tx, actor, "refused", run_id, full))

    def note(self, run_id: str | None, actor: Actor, action: str, body: Mapping[str, Any] | None = None) -> AuditEntry:
        """Add a plain audit entry."""
        return self._database.write(lambda tx: append_entry(tx, actor, action, run_id, body))

    def entries(self, run_id: str | None = None, limit: int | None = None) -> tuple[AuditEntry, ...]:
        """Entries as stored and hashed, oldest first; ``limit`` keeps the newest."""
        return self._read(lambda conn: load_entries(conn, run_id, limit))

    def excerpt(self, run_id: str) -> AuditExcerpt:
        """The audit from what approved this run to the head, without what others' entries say.

        It begins with the run's own first entry, its campaign's, or the first decision on its standing approval.
        """
        from errata.ledger.audit.excerpt import list_copies, load_excerpt

        def work(conn: Connection) -> AuditExcerpt:
            member = find_member_of(conn, find_run(conn, run_id).run_id)
            used = find_used_standing(conn, run_id)
            decided = frozenset(one.audit_seq for one in used.decisions) if used else frozenset[int]()
            copies = list_copies(conn, run_id)
            return load_excerpt(conn, run_id, member.campaign_id if member else None, decided, copies)

        return self._read(work)

    def verify(self, heads: Sequence[Head] = ()) -> AuditView:
        """Verify the whole chain, compare it with heads exported elsewhere, and compare the rows with it."""
        from errata.ledger.audit.chain_check import verify_chain

        return self._read(lambda conn: verify_chain(conn, heads))

    def head(self) -> tuple[int, str, str]:
        """Number, hash and time of the last entry."""
        return self._read(read_head)

    def hash_at(self, seq: int) -> str | None:
        """The hash of entry ``seq``; None when there is no such entry."""
        return self._read(lambda conn: read_hash(conn, seq))

    def uncovered_since(self, seq: int) -> str | None:
        """When the first publication or rollback after this entry was settled; None when there is none."""
        return self._read(lambda conn: find_uncovered_since(conn, seq))

    def readable_entries(
        self, run_id: str | None = None, limit: int | None = None, actions: Collection[str] = ()
    ) -> tuple[AuditEntry, ...]:
        """Entries with names and plain text, oldest first; ``limit`` keeps the newest, ``actions`` filters."""
        return self._read(
            lambda conn: tuple(reveal_entry(entry) for entry in load_entries(conn, run_id, limit, actions))
        )
