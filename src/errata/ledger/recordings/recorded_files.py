"""Recorded files: accepted, rejected, superseded and expired, each change with its audit entry in one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.errors import NotFound, StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.schema.definition import recorded_file
from errata.ledger.store.base import Refusal, Store, build_record, to_json_text
from errata.model.audit import Actor
from errata.model.recording.business_range import BusinessRange
from errata.model.recording.recorded_file import (
    FileStatus,
    Inspection,
    Intake,
    RecordedFile,
    StoredContent,
    decide_intake,
    describe_redacted,
    describe_superseded,
)

T = recorded_file
_SHORTEST_ID = 6


class RecordedFiles(Store):
    """One row per file."""

    def list(self, source: str | None = None, status: FileStatus | None = None) -> tuple[RecordedFile, ...]:
        """Files of a source, or of all, in the order in which they were recorded."""
        query = select(T).order_by(T.c.audit_seq, T.c.file_id)
        if source is not None:
            query = query.where(T.c.source == source)
        if status is not None:
            query = query.where(T.c.status == status.value)
        return self._read(lambda conn: tuple(_from_row(row) for row in conn.execute(query)))

    def find(self, file_id: str) -> RecordedFile:
        """The file whose id begins so; raises ``NotFound`` if there is none, or more than one."""
        query = select(T).where(T.c.file_id.startswith(file_id, autoescape=True)).limit(2)
        found = self._read(lambda conn: conn.execute(query).all())
        if len(found) != 1 or len(file_id) < _SHORTEST_ID:
            raise NotFound(
                f"there is no one recorded file {file_id}; expected an id, or its first {_SHORTEST_ID} or more digits",
                state="nothing was changed",
                hint="errata recordings",
            )
        return _from_row(found[0])

    def preview(self, seen: Inspection, duplicates: str) -> Intake:
        """What would become of a file now."""
        return self._read(lambda conn: decide_intake(seen, _list_source(conn, seen.source), duplicates))

    def record(
        self,
        seen: Inspection,
        format: str,  # noqa: A002 - the word of the file
        duplicates: str,
        intake: Intake,
        stored: StoredContent,
        keep_until: str,
        actor: Actor,
        manifest_id: str | None = None,
    ) -> Intake:
        """Add the row of a file that was stored for ``intake``; another process may have recorded it meanwhile.

        Raises ``StateRefused`` if another file came in between and the decision would now be another one.
        """

        def work(tx: Tx) -> Intake:
            now = decide_intake(seen, _list_source(tx.conn, seen.source), duplicates)
            if now.known:
                return now
            if now != intake:
                raise Refusal(
                    StateRefused(
                        f"{seen.name} was not recorded; another file of {seen.source} came in between",
                        state="nothing was recorded",
                        hint="repeat the command",
                    ),
                    run_id=None,
                    action="recording.added",
                    body={"file": intake.file_id},
                )
            _insert(
                tx, actor, f"recording.{intake.status.value}", seen, format, intake, stored, keep_until, manifest_id
            )
            return intake

        return self._write(actor, work)

    def redact(
        self, one: RecordedFile, seen: Inspection, intake: Intake, stored: StoredContent, reason: str, actor: Actor
    ) -> None:
        """Add the row of a file without the rows of erased subjects; it supersedes the one that has them.

        Raises ``StateRefused`` if that one no longer counts.
        """

        def work(tx: Tx) -> None:
            status = tx.conn.execute(select(T.c.status).where(T.c.file_id == one.file_id)).scalar()
            if status != FileStatus.ACCEPTED.value:
                error = StateRefused(
                    f"{one.name} was not redacted; it was superseded or removed meanwhile",
                    state="nothing was changed",
                    hint="repeat the command",
                )
                raise Refusal(error, run_id=None, action="recording.redacted", body={"file": one.file_id})
            told = {"redacted_sha256": one.sha256, "reason": reason}
            _insert(
                tx, actor, "recording.redacted", seen, one.format, intake, stored, one.keep_until, one.manifest_id, told
            )

        self._write(actor, work)

    def note_run(self, run_id: str, file_ids: Sequence[str], actor: Actor) -> None:
        """Record the run that was planned with these files, for those that no run was planned with before."""

        def work(tx: Tx) -> None:
            new = (T.c.file_id.in_(sorted(set(file_ids)))) & T.c.first_run.is_(None)
            ids = tx.conn.execute(select(T.c.file_id).where(new).order_by(T.c.file_id)).scalars().all()
            if ids:
                seq = append_entry(tx, actor, "recording.planned", run_id, {"files": list(ids)}).seq
                values = {"first_run": run_id, "audit_seq": seq}
                tx.conn.execute(T.update().where(T.c.file_id.in_(ids)).values(values))

        if file_ids:
            self._write(actor, work)

    def expire(
        self, file_ids: Collection[str], policy: str, actor: Actor, reason: str | None = None
    ) -> tuple[str, ...]:
        """Record that these files are removed, and under which policy; returns those that changed."""

        def work(tx: Tx) -> tuple[str, ...]:
            old = T.c.file_id.in_(sorted(file_ids)) & (T.c.status != FileStatus.EXPIRED.value)
            found = tx.conn.execute(select(T).where(old).order_by(T.c.file_id)).all()
            if not found:
                return ()
            why = {"reason": reason} if reason else {}
            told = [{"file": row.file_id, "source": row.source, "sha256": row.sha256} for row in found]
            seq = append_entry(tx, actor, "recording.expired", None, {"policy": policy, "files": told} | why).seq
            for row in found:
                values = {"status": FileStatus.EXPIRED.value, "expired_at": tx.at, "why": policy, "audit_seq": seq}
                tx.conn.execute(T.update().where(T.c.file_id == row.file_id).values(values))
            return tuple(row.file_id for row in found)

        return self._write(actor, work) if file_ids else ()


def _insert(
    tx: Tx,
    actor: Actor,
    action: str,
    seen: Inspection,
    format: str,  # noqa: A002 - the word of the file
    intake: Intake,
    stored: StoredContent,
    keep_until: str,
    manifest_id: str | None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Add a row with its audit entry, and change the row that it supersedes."""
    body = {
        "file": intake.file_id, "source": seen.source, "name": seen.name, "sha256": seen.sha256,
        "bytes": seen.bytes, "rows": seen.rows, "bad_rows": seen.bad_rows, "attempt": intake.attempt,
        "range": [seen.range.start, seen.range.end] if seen.range else None, "cause": intake.why,
        "twin": intake.twin, "supersedes": intake.supersedes, "content_sha256": stored.sha256,
        "keep_until": keep_until, **(more or {}),
    }  # fmt: skip
    seq = append_entry(tx, actor, action, None, body).seq
    row = {
        "file_id": intake.file_id, "source": seen.source, "format": format, "name": seen.name,
        "path": seen.path, "bytes": seen.bytes, "sha256": seen.sha256, "identity": seen.identity,
        "rows": seen.rows, "bad_rows": seen.bad_rows,
        "range_start": seen.range.start if seen.range else None,
        "range_end": seen.range.end if seen.range else None,
        "columns": to_json_text(list(seen.columns.items())), "fingerprint": seen.fingerprint,
        "produced_at": seen.produced_at, "seen_at": tx.at, "attempt": intake.attempt,
        "manifest_id": manifest_id, "status": intake.status.value, "why": intake.why, "twin": intake.twin,
        "supersedes": intake.supersedes, "keep_until": keep_until, "place": stored.place,
        "content": stored.content, "content_bytes": stored.bytes, "content_sha256": stored.sha256,
        "audit_seq": seq,
    }  # fmt: skip
    tx.conn.execute(T.insert(), row)
    if intake.supersedes is not None:
        describe = describe_redacted if action == "recording.redacted" else describe_superseded
        changed = {"status": FileStatus.SUPERSEDED.value, "why": describe(intake.file_id), "audit_seq": seq}
        tx.conn.execute(T.update().where(T.c.file_id == intake.supersedes).values(changed))


def _list_source(conn: Connection, source: str) -> list[RecordedFile]:
    query = select(T).where(T.c.source == source).order_by(T.c.audit_seq, T.c.file_id)
    return [_from_row(row) for row in conn.execute(query)]


def _from_row(row: Row[Any]) -> RecordedFile:
    known = BusinessRange(row.range_start, row.range_end) if row.range_start else None
    columns = dict(json.loads(row.columns))
    return build_record(RecordedFile, row, range=known, columns=columns, status=FileStatus(row.status))
