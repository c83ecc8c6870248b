"""Chunks and attempts: who computes what, under which fence, and whose result counts.

A claim is an optimisation; the fence is the safety. Every change an attempt makes is a compare-and-set on the fence of
its chunk, so a worker that was taken over can neither prolong, finish nor fail anything. Leases are judged by the
database's clock. A chunk that lost too many workers in a row is quarantined and waits for a person.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.errors import AttemptLost, NotFound, StateRefused
from errata.ledger.audit import append
from errata.ledger.chunk_rows import (
    attempt_query,
    attempt_row,
    chunk_query,
    chunks_in,
    find_chunk,
    holds,
    update_attempt,
    update_chunk,
)
from errata.ledger.database import Tx
from errata.ledger.owners import owner_is_dead
from errata.ledger.progress import attempt_record, chunk_record
from errata.ledger.records import AttemptRecord, ChunkRecord, Owner, RunRecord
from errata.ledger.schema import attempt as attempt_table
from errata.ledger.schema import chunk as chunk_table
from errata.ledger.store import Refusal, Store, find_run
from errata.model.audit import Actor
from errata.model.run import AttemptState, ChunkState, RunState

__all__ = ["Chunks"]

_ACCEPTS_RESULTS = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.FAILED})
_MAX_ERROR = 20_000


class Chunks(Store):
    """Claims, heartbeats and results."""

    def claim(
        self,
        run_id: str,
        owner: Owner,
        *,
        lease_seconds: float,
        actor: Actor,
        is_dead: Callable[[Owner], bool] = owner_is_dead,
        max_attempts: int = 5,
    ) -> AttemptRecord | None:
        """Take the next chunk: pending ones first, then those whose worker's lease is over or who is dead.

        None when there is nothing to take now, or the run is not running.
        """
        if not self._read(lambda conn: _has_work(conn, run_id, self._database.clock(conn)[1], is_dead)):
            return None

        def work(tx: Tx) -> AttemptRecord | None:
            if find_run(tx.conn, run_id).state is not RunState.RUNNING:
                return None
            row = tx.conn.execute(chunks_in(run_id, ChunkState.PENDING)).first()
            if row is not None:
                return _begin(tx, row, owner, lease_seconds, actor)
            for running in tx.conn.execute(chunks_in(run_id, ChunkState.RUNNING)).all():
                reason = _lost_because(tx.conn, running, tx.now_ms, is_dead)
                if reason is None:
                    continue
                _lose(tx, running, reason, actor)
                if running.tries < max_attempts:
                    return _begin(tx, running, owner, lease_seconds, actor)
                _quarantine(tx, running, reason, actor)
            return None

        return self._write(actor, work)

    def heartbeat(self, attempt: AttemptRecord, lease_seconds: float) -> bool:
        """Prolong the lease; False when the attempt was taken over or is over."""

        def work(tx: Tx) -> bool:
            if not holds(tx.conn, attempt):
                return False
            values = {"lease_until": tx.now_ms + int(lease_seconds * 1000), "heartbeat_at": tx.at}
            tx.conn.execute(update_attempt(attempt).values(values))
            return True

        return self._database.write(work)

    def adopt(
        self,
        attempt: AttemptRecord,
        *,
        snapshot_id: str,
        rows: int,
        files: int,
        bytes: int,  # noqa: A002
        seconds: float,
        actor: Actor,
    ) -> ChunkRecord:
        """Make this attempt's output the chunk's; the same again changes nothing, a stale fence is refused."""

        def work(tx: Tx) -> ChunkRecord:
            known = attempt_row(tx.conn, attempt)
            if known is not None and known.state == AttemptState.ADOPTED and known.snapshot_id == snapshot_id:
                return find_chunk(tx.conn, attempt)
            _need_hold(tx, attempt, "chunk.adopted")
            body = {
                "chunk": attempt.chunk_id, "fence": attempt.fence, "snapshot_id": snapshot_id,
                "rows": rows, "files": files, "bytes": bytes, "owner": attempt.owner.name,
            }  # fmt: skip
            seq = append(tx, actor, "chunk.adopted", attempt.run_id, body).seq
            output = {"snapshot_id": snapshot_id, "seconds": seconds, "audit_seq": seq}
            ended = {
                "rows": rows,
                "files": files,
                "bytes": bytes,
                "state": AttemptState.ADOPTED.value,
                "ended_at": tx.at,
            }
            tx.conn.execute(update_attempt(attempt).values(output | ended))
            counted = {
                "output_rows": rows,
                "output_files": files,
                "output_bytes": bytes,
                "state": ChunkState.DONE.value,
            }
            tx.conn.execute(update_chunk(attempt).values(output | counted | {"error_code": None, "error": None}))
            return find_chunk(tx.conn, attempt)

        return self._write(actor, work)

    def fail(
        self, attempt: AttemptRecord, *, error_code: str, message: str, actor: Actor, quarantine: bool = False
    ) -> ChunkRecord:
        """Record that this attempt failed, and its chunk with it."""

        def work(tx: Tx) -> ChunkRecord:
            _need_hold(tx, attempt, "chunk.failed")
            error = {"error_code": error_code, "error": tx.redact(message)[:_MAX_ERROR]}
            to = ChunkState.QUARANTINED if quarantine else ChunkState.FAILED
            body = {"chunk": attempt.chunk_id, "fence": attempt.fence, "owner": attempt.owner.name} | error
            seq = append(tx, actor, f"chunk.{to.value}", attempt.run_id, body).seq
            values = error | {"audit_seq": seq}
            tx.conn.execute(
                update_attempt(attempt).values(values | {"state": AttemptState.FAILED.value, "ended_at": tx.at})
            )
            tx.conn.execute(update_chunk(attempt).values(values | {"state": to.value}))
            return find_chunk(tx.conn, attempt)

        return self._write(actor, work)

    def release(self, attempt: AttemptRecord, *, actor: Actor, reason: str = "interrupted") -> bool:
        """Give the chunk back, as an interrupted worker does; False when it was no longer this attempt's."""

        def work(tx: Tx) -> bool:
            if not holds(tx.conn, attempt):
                return False
            row = tx.conn.execute(chunk_query(attempt.run_id, attempt.chunk_id)).one()
            seq = _lose(tx, row, reason, actor)
            # Being interrupted is not the chunk's fault.
            values = {"state": ChunkState.PENDING.value, "tries": row.tries - 1, "audit_seq": seq}
            tx.conn.execute(update_chunk(attempt).values(values))
            return True

        return self._write(actor, work)

    def retry(self, run_id: str, chunk_id: str | None, actor: Actor) -> tuple[ChunkRecord, ...]:
        """Make failed and quarantined chunks (or this one) pending again; returns them."""
        again = (ChunkState.FAILED, ChunkState.QUARANTINED)

        def work(tx: Tx) -> tuple[ChunkRecord, ...]:
            run = find_run(tx.conn, run_id)
            query = select(chunk_table).where(chunk_table.c.run_id == run_id).order_by(chunk_table.c.position)
            rows = [row for row in tx.conn.execute(query) if chunk_id in (None, row.chunk_id)]
            if chunk_id is not None and not rows:
                raise NotFound(f"run {run_id} has no chunk {chunk_id}", state="nothing was changed")
            if chunk_id is not None and rows[0].state not in again:
                raise Refusal(_not_failed(rows[0]), run_id=run_id, action="chunk.retried", body={"chunk": chunk_id})
            _need_results(run, "chunk.retried", chunk_id)
            chosen = [row.chunk_id for row in rows if row.state in again]
            if not chosen:
                return ()
            seq = append(tx, actor, "chunk.retried", run_id, {"chunks": chosen}).seq
            where = (chunk_table.c.run_id == run_id) & chunk_table.c.state.in_([state.value for state in again])
            if chunk_id is not None:
                where &= chunk_table.c.chunk_id == chunk_id
            values = {"state": ChunkState.PENDING.value, "tries": 0, "audit_seq": seq}
            tx.conn.execute(chunk_table.update().where(where).values(values))
            return tuple(chunk_record(row) for row in tx.conn.execute(query) if row.chunk_id in set(chosen))

        return self._write(actor, work)


def _has_work(conn: Connection, run_id: str, now_ms: int, is_dead: Callable[[Owner], bool]) -> bool:
    """Look without the write lock, so that idle workers do not hold up busy ones."""
    if find_run(conn, run_id).state is not RunState.RUNNING:
        return False
    if conn.execute(chunks_in(run_id, ChunkState.PENDING)).first() is not None:
        return True
    running = conn.execute(chunks_in(run_id, ChunkState.RUNNING)).all()
    return any(_lost_because(conn, row, now_ms, is_dead) for row in running)


def _lost_because(conn: Connection, chunk: Row[Any], now_ms: int, is_dead: Callable[[Owner], bool]) -> str | None:
    held = conn.execute(attempt_query(chunk.run_id, chunk.chunk_id, chunk.fence)).one()
    if held.lease_until <= now_ms:
        return "lease-expired"
    return "owner-dead" if is_dead(attempt_record(held).owner) else None


def _begin(tx: Tx, chunk: Row[Any], owner: Owner, lease_seconds: float, actor: Actor) -> AttemptRecord:
    fence = chunk.fence + 1
    body = {"chunk": chunk.chunk_id, "fence": fence, "owner": owner}
    seq = append(tx, actor, "chunk.claimed", chunk.run_id, body).seq
    where = (chunk_table.c.run_id == chunk.run_id) & (chunk_table.c.chunk_id == chunk.chunk_id)
    claimed = {"state": ChunkState.RUNNING.value, "fence": fence, "tries": chunk.tries + 1, "audit_seq": seq}
    tx.conn.execute(chunk_table.update().where(where).values(claimed))
    row = {
        "run_id": chunk.run_id,
        "chunk_id": chunk.chunk_id,
        "fence": fence,
        "owner": owner.name,
        "host": owner.host,
        "pid": owner.pid,
        "process_started": owner.started,
        "state": AttemptState.RUNNING.value,
        "started_at": tx.at,
        "heartbeat_at": tx.at,
        "lease_until": tx.now_ms + int(lease_seconds * 1000),
        "audit_seq": seq,
    }
    tx.conn.execute(attempt_table.insert(), row)
    made = tx.conn.execute(attempt_query(chunk.run_id, chunk.chunk_id, fence)).one()
    return attempt_record(made, chunk.partitions)


def _lose(tx: Tx, chunk: Row[Any], reason: str, actor: Actor) -> int:
    held = attempt_record(tx.conn.execute(attempt_query(chunk.run_id, chunk.chunk_id, chunk.fence)).one())
    body = {"chunk": chunk.chunk_id, "fence": chunk.fence, "reason": reason, "owner": held.owner}
    seq = append(tx, actor, "attempt.lost", chunk.run_id, body).seq
    values = {"state": AttemptState.LOST.value, "ended_at": tx.at, "error_code": reason, "audit_seq": seq}
    tx.conn.execute(update_attempt(held).values(values))
    return seq


def _quarantine(tx: Tx, chunk: Row[Any], reason: str, actor: Actor) -> None:
    message = f"{chunk.tries} attempts in a row lost their worker, the last one by {reason}"
    body = {"chunk": chunk.chunk_id, "fence": chunk.fence, "error_code": "attempts", "error": message}
    seq = append(tx, actor, "chunk.quarantined", chunk.run_id, body).seq
    where = (chunk_table.c.run_id == chunk.run_id) & (chunk_table.c.chunk_id == chunk.chunk_id)
    values = {"state": ChunkState.QUARANTINED.value, "error_code": "attempts", "error": message, "audit_seq": seq}
    tx.conn.execute(chunk_table.update().where(where).values(values))


def _need_hold(tx: Tx, attempt: AttemptRecord, action: str) -> None:
    if not holds(tx.conn, attempt):
        row = tx.conn.execute(chunk_query(attempt.run_id, attempt.chunk_id)).first()
        found = f"fence {row.fence}, chunk {row.state}" if row is not None else "no such chunk"
        error = AttemptLost(
            f"{action} was refused for attempt {attempt.attempt_id}; expected its fence to be current, found {found}",
            state="what the attempt wrote is not adopted and will not be read",
            hint="nothing to do: another attempt has the chunk",
            attempt=attempt.attempt_id,
        )
        body = {"chunk": attempt.chunk_id, "fence": attempt.fence, "found": found, "owner": attempt.owner}
        raise Refusal(error, run_id=attempt.run_id, action=action, body=body, code="STALE_FENCE")
    _need_results(find_run(tx.conn, attempt.run_id), action, attempt.chunk_id)


def _need_results(run: RunRecord, action: str, chunk_id: str | None) -> None:
    if run.state not in _ACCEPTS_RESULTS:
        kind = StateRefused if action == "chunk.retried" else AttemptLost
        error = kind(
            f"{action} was refused for {run.run_id}; expected a run that is running, found {run.state.value}",
            state="nothing was changed",
            hint=f"errata status {run.run_id}",
            run_id=run.run_id,
        )
        body = {"chunk": chunk_id, "found": run.state.value}
        raise Refusal(error, run_id=run.run_id, action=action, body=body)


def _not_failed(row: Row[Any]) -> StateRefused:
    return StateRefused(
        f"chunk {row.chunk_id} was not retried; expected a failed or quarantined chunk, found {row.state}",
        state="nothing was changed",
        hint=f"errata status {row.run_id}",
    )
