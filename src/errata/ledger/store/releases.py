"""Releases: permissions to publish a validated candidate. Rows are only added, each with its audit entry.

Whether a release still counts under the current roles is decided by the caller that publishes. The ledger itself
refuses a publication whose release is older than the newest verdict; that is checked in the transaction of the intent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, Row, func, select

from errata.canonical import digest_of
from errata.errors import ApprovalRefused, StateRefused, UsageError
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import write_owed
from errata.ledger.records import ReleaseRecord, RunRecord
from errata.ledger.schema.definition import released, verdict
from errata.ledger.store.base import Refusal, Store, build_record, find_run, require_state, to_json_text
from errata.model.audit import Actor
from errata.model.consumer.outbox import Owed
from errata.model.run import RunState

CAN_RELEASE = (
    RunState.RUNNING, RunState.PAUSED, RunState.FAILED, RunState.STAGED, RunState.REJECTED, RunState.NEEDS_ACCEPTANCE,
    RunState.VALIDATED, RunState.PART_PUBLISHED,
)  # fmt: skip
"""States of a run in which a wave of it may be released; that the wave passed its gate is checked by itself."""
ReleaseKind = Literal["release", "publish", "automatic"]
_AUTOMATIC: ReleaseKind = "automatic"


class Releases(Store):
    """Releases by people, or by a gate that passed without findings."""

    def record(
        self,
        run_id: str,
        subject: Mapping[str, Any],
        *,
        candidate_n: int,
        person: str,
        kind: ReleaseKind,
        actor: Actor,
        note: str = "",
        break_glass: str = "",
        since: datetime | None = None,
        owes: Sequence[Owed] = (),
    ) -> tuple[ReleaseRecord, bool]:
        """Record a release of ``subject``; returns True with the existing one if it is repeated.

        A release is repeated if the newest one is the same, by the same person, and not older than ``since``.
        ``owes`` is what follows from a new one.
        """
        digest = digest_of(subject)

        def work(tx: Tx) -> tuple[ReleaseRecord, bool]:
            run = find_run(tx.conn, run_id)
            newest = _find_newest(tx.conn, run_id, candidate_n)
            is_same = newest is not None and _release_identity(newest) == (
                digest,
                person,
                break_glass,
                kind == _AUTOMATIC,
            )
            if newest is not None and is_same and (since is None or datetime.fromisoformat(newest.at) >= since):
                return newest, True
            require_state(run, CAN_RELEASE, "release")
            if run.state not in (RunState.VALIDATED, RunState.PART_PUBLISHED):
                _require_passed(tx.conn, run, candidate_n)
            body = {"digest": digest, "person": person, "kind": kind, "note": note, "candidate": candidate_n}
            if break_glass:
                glass = {"person": person, "why": break_glass, "digest": digest}
                append_entry(tx, actor, "break_glass.publish", run_id, glass)
            seq = append_entry(
                tx, actor, "run.released", run_id, body | ({"break_glass": True} if break_glass else {})
            ).seq
            row = {
                "run_id": run_id, "candidate_n": candidate_n, "digest": digest, "subject": to_json_text(subject),
                "kind": kind, "person": person, "note": note, "break_glass": break_glass, "at": tx.at,
                "audit_seq": seq,
            }  # fmt: skip
            tx.conn.execute(released.insert(), row)
            told = {"entry": seq}
            write_owed(tx, run, f"{run_id}-{tx.head_hash[:8]}", [replace(one, payload=told) for one in owes], actor)
            found = _find_newest(tx.conn, run_id, candidate_n)
            if found is None:
                raise UsageError(f"the release of {run_id} was not kept")
            return found, False

        return self._write(actor, work)

    def list(self, run_id: str) -> tuple[ReleaseRecord, ...]:
        """Releases of the run, oldest first."""
        query = select(released).where(released.c.run_id == run_id).order_by(released.c.id)
        return self._read(lambda conn: tuple(_release_from_row(row) for row in conn.execute(query)))


def _require_passed(conn: Connection, run: RunRecord, candidate_n: int) -> None:
    """Refuse to release a candidate that did not pass its gate; the database refuses it as well."""
    mine = (verdict.c.run_id == run.run_id) & (verdict.c.candidate_n == candidate_n)
    passed = conn.execute(select(verdict.c.passed).where(mine).order_by(verdict.c.id.desc()).limit(1)).scalar()
    if passed:
        return
    if passed is None:
        require_state(run, (RunState.VALIDATED, RunState.PART_PUBLISHED), "release")
    error = StateRefused(
        f"release of {run.run_id} was refused; expected a candidate that passed its gate, and candidate {candidate_n} "
        "did not",
        state="nothing was changed",
        run_id=run.run_id,
        found=run.state.value,
    )
    raise Refusal(error, run_id=run.run_id, action="release", body={"candidate": candidate_n})


def require_release(conn: Connection, run: RunRecord, release: Mapping[str, Any] | None) -> None:
    """Refuse a publication whose release does not exist or is not for the newest verdict on its candidate."""
    named, expected = (release or {}).get("release"), (release or {}).get("verdict")
    if named is not None:
        _require_release_row(conn, run, int(named))
    if expected is None:
        return
    mine = verdict.c.run_id == run.run_id
    if (n := (release or {}).get("candidate")) is not None:
        mine &= verdict.c.candidate_n == n
    newest = conn.execute(select(func.max(verdict.c.audit_seq)).where(mine)).scalar()
    if newest == expected:
        return
    error = ApprovalRefused(
        f"publish of {run.run_id} was refused; it was released over the verdict of entry {expected}, found a newer one"
        f" of entry {newest}",
        state="the live table was not touched",
        hint=f"errata release {run.run_id}",
        run_id=run.run_id,
    )
    raise Refusal(error, run_id=run.run_id, action="publish.intended", body={"expected": expected, "found": newest})


def _require_release_row(conn: Connection, run: RunRecord, release_id: int) -> None:
    query = select(released.c.id).where(released.c.id == release_id, released.c.run_id == run.run_id)
    if conn.execute(query).first() is not None:
        return
    error = ApprovalRefused(
        f"publish of {run.run_id} was refused; expected release {release_id} of this run, found none",
        state="the live table was not touched",
        hint=f"errata release {run.run_id}",
        run_id=run.run_id,
    )
    raise Refusal(error, run_id=run.run_id, action="publish.intended", body={"release": release_id})


def _find_newest(conn: Connection, run_id: str, candidate_n: int) -> ReleaseRecord | None:
    mine = (released.c.run_id == run_id) & (released.c.candidate_n == candidate_n)
    query = select(released).where(mine).order_by(released.c.id.desc()).limit(1)
    row = conn.execute(query).first()
    return None if row is None else _release_from_row(row)


def _release_identity(release: ReleaseRecord) -> tuple[str, str, str, bool]:
    """What makes two releases the same; an automatic release is not the decision of the person who ran the gate."""
    return release.digest, release.person, release.break_glass, release.kind == _AUTOMATIC


def _release_from_row(row: Row[Any]) -> ReleaseRecord:
    return build_record(ReleaseRecord, row, release_id=row.id, subject=json.loads(row.subject))
