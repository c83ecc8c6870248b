"""People in the ledger: names, pseudonyms, and the erasure of a person."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select

from errata.errors import NotFound, StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.privacy.pseudonyms import as_stored, current_registry, is_as_stored, new_pseudonym
from errata.ledger.records import ErasedRecord
from errata.ledger.schema.definition import audit, subject
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.base import Refusal, Store
from errata.model.audit import Actor, AuditEntry
from errata.model.run import ACTIVE

_ERASED = "person.erased"


class People(Store):
    """Names, pseudonyms, erasure."""

    def as_stored(self) -> AbstractContextManager[None]:
        """Context in which every read returns values as stored and hashed: pseudonyms and sealed text."""
        return as_stored()

    def names(self) -> dict[str, str]:
        """Names by pseudonym, without erased people."""
        query = select(subject.c.pseudonym, subject.c.handle).where(subject.c.handle.is_not(None))
        return self._read(lambda conn: {row.pseudonym: row.handle for row in conn.execute(query)})

    def name(self, stored: str) -> str:
        """The name behind a pseudonym; the pseudonym itself if the person was erased, any other text unchanged."""
        if is_as_stored():
            return stored
        proposed = next((name for name, alias in self._database.proposed.items() if alias == stored), stored)
        return self._read(lambda _: current_registry().name(proposed))

    def alias(self, name: str) -> str:
        """The pseudonym of a name, for bytes that are sealed before they are recorded.

        A person without a pseudonym is given the one they will have once their first audit entry is recorded.
        """
        found = self._read(lambda _: current_registry().pseudonym(name))
        if found != name or not name:
            return found
        return self._database.proposed.setdefault(name, new_pseudonym())

    def reveal_data(self, stored: Any) -> Any:
        """JSON data with names and plain text, except where erased."""
        return self._read(lambda _: current_registry().reveal(stored))

    def readable(self, entry: AuditEntry) -> AuditEntry:
        """An audit entry with names and plain text, except where erased."""
        return self._read(lambda _: reveal_entry(entry))

    def erase(self, name: str, reason: str, actor: Actor) -> ErasedRecord:
        """Delete a person's name and key, so that what they typed is unreadable; the chain stays valid. Idempotent."""

        def work(tx: Tx) -> ErasedRecord:
            found = tx.conn.execute(select(subject).where((subject.c.handle == name) | (subject.c.pseudonym == name)))
            row = found.first()
            if row is None:
                raise NotFound(
                    f"nobody was erased; this ledger knows no {name!r}",
                    state="nothing was changed",
                    hint="errata audit log shows the names; a pseudonym names someone who was erased before",
                )
            count = _count_entries(tx, row.pseudonym)
            if row.handle is None:
                return ErasedRecord(row.pseudonym, count, already=True)
            planned = select(run_table.c.run_id).where(
                run_table.c.planned_by == row.handle, run_table.c.state.in_(sorted(state.value for state in ACTIVE))
            )
            if under_way := tx.conn.execute(planned.order_by(run_table.c.run_id)).scalars().all():
                raise Refusal(
                    _active_runs_error(name, under_way),
                    run_id=None,
                    action="erase-person",
                    body={"runs": list(under_way)},
                )
            seq = append_entry(tx, actor, _ERASED, None, {"subject": row.pseudonym, "reason": reason}).seq
            forgotten = subject.update().where(subject.c.pseudonym == row.pseudonym)
            tx.conn.execute(forgotten.values(handle=None, secret=None, audit_seq=seq))
            accounts = _find_accounts(tx, row.pseudonym)
            return ErasedRecord(row.pseudonym, count, already=False, accounts=accounts)

        done = self._write(actor, work)
        # after the commit, because VACUUM cannot run inside a transaction
        return replace(done, remains=self._scrub())

    def _scrub(self) -> str:
        """Remove deleted rows from the database's files too; returns what could not be done."""
        try:
            return self._database.dialect.scrub(self._database.engine)
        except self._database.dialect.errors as error:
            return (
                "name and key are deleted, but copies may remain in unused pages of the database"
                f" ({self._database.dialect.said(error)}); erase the pseudonym again when nobody else uses it"
            )


def reveal_entry(entry: AuditEntry) -> AuditEntry:
    """An entry with names and plain text, except where erased."""
    people = current_registry()
    actor = replace(entry.actor, person=people.name(entry.actor.person), os_user=people.name(entry.actor.os_user))
    return replace(entry, actor=actor, body=people.reveal(dict(entry.body)))


def _count_entries(tx: Tx, pseudonym: str) -> int:
    query = select(func.count()).select_from(audit).where(audit.c.person == pseudonym)
    return int(tx.conn.execute(query).scalar_one())


def _find_accounts(tx: Tx, pseudonym: str) -> tuple[str, ...]:
    """OS accounts, not yet erased, that only this person used according to the audit log."""
    others = select(audit.c.os_user).where(audit.c.person != pseudonym)
    own = select(audit.c.os_user).where(audit.c.person == pseudonym, audit.c.os_user != pseudonym)
    wanted = subject.c.pseudonym.in_(own) & subject.c.pseudonym.not_in(others) & subject.c.handle.is_not(None)
    return tuple(tx.conn.execute(select(subject.c.handle).where(wanted).order_by(subject.c.handle)).scalars())


def _active_runs_error(name: str, runs: Sequence[str]) -> StateRefused:
    return StateRefused(
        f"{name} was not erased; expected no active run that they planned, found {', '.join(runs)}",
        state="nothing was changed",
        hint="let it end, or errata cancel RUN: nobody else may take their place in the four-eyes rule",
    )
