"""Chunks and attempts: claims, heartbeats, fences, and adoption of results.

A claim is an optimisation; the fence is the safety. Every change an attempt makes is a compare-and-set on the fence of
its chunk, so a worker whose chunk was taken over can neither renew its lease nor adopt or fail the chunk. Leases are
compared with the database's clock. The caller decides the outcome of a chunk whose attempt did not succeed (a
:class:`~errata.model.chunk_outcome.ChunkOutcome`), and it is applied in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, func, select

from errata.errors import AttemptLost
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.records import AttemptRecord, ChunkRecord, Owner
from errata.ledger.schema.definition import attempt as attempt_table
from errata.ledger.schema.definition import chunk as chunk_table
from errata.ledger.store.base import Refusal, Store, find_run, parse_texts, to_json_text
from errata.ledger.store.chunk_outcomes import apply_outcome, build_loss, require_accepts_results
from errata.ledger.store.chunk_rows import (
    find_attempt_row,
    find_chunk,
    has_current_fence,
    select_attempt,
    select_chunk,
    select_chunks,
    update_attempt,
    update_chunk,
)
from errata.ledger.store.facts import has_fact
from errata.ledger.store.progress import attempt_from_row
from errata.ledger.store.wave_states import has_rejected_wave
from errata.ledger.store.workers import is_owner_dead
from errata.model.audit import Actor
from errata.model.chunk_outcome import ChunkOutcome, FailedAttempt
from errata.model.partition import NULL
from errata.model.run import AttemptState, ChunkState, RunState

CANARY = "canary"
"""Name of the run note that lets the chunks after the canary start."""
_MAX_ERROR = 20_000


def _requeue(_: FailedAttempt) -> ChunkOutcome:
    return ChunkOutcome(ChunkState.PENDING)


class Chunks(Store):
    """Claims, heartbeats and results."""

    def claim(
        self,
        run_id: str,
        owner: Owner,
        *,
        lease_seconds: float,
        actor: Actor,
        is_dead: Callable[[Owner], bool] = is_owner_dead,
        after_loss: Callable[[FailedAttempt], ChunkOutcome] = _requeue,
        max_running: int | None = None,
        in_order: bool = False,
        up_to_wave: int | None = None,
    ) -> AttemptRecord | None:
        """Claim the next chunk that may start, after applying ``after_loss`` to chunks whose worker is gone.

        With ``in_order`` a chunk starts only when all chunks before it are done; ``up_to_wave`` leaves out later waves.
        None when no chunk can start now, or the run is not running.
        """
        rules = _ClaimRules(run_id, is_dead, max_running, in_order, up_to_wave)
        # only a hint: the same rules decide again inside the write transaction
        if not self._read(lambda conn: rules.has_work(conn, self._database.clock(conn)[1])):
            return None

        def work(tx: Tx) -> AttemptRecord | None:
            if find_run(tx.conn, run_id).state is not RunState.RUNNING:
                return None
            for row, reason in rules.lost(tx.conn, tx.now_ms):
                held = attempt_from_row(tx.conn.execute(select_attempt(run_id, row.chunk_id, row.fence)).one())
                loss = build_loss(row, reason, lost_worker=True)
                _end_attempt(tx, held, AttemptState.LOST, reason, actor)
                apply_outcome(tx, row, loss, after_loss(loss), actor)
            chosen = rules.find_next_chunk(tx.conn, tx.now_ms)
            return None if chosen is None else _begin_attempt(tx, chosen, owner, lease_seconds, actor)

        return self._write(actor, work)

    def find_next_wave(self, run_id: str, *, in_order: bool = False) -> int | None:
        """The wave of the chunk that would be claimed next; None if none can start now."""
        rules = _ClaimRules(run_id, is_owner_dead, None, in_order)

        def work(conn: Connection) -> int | None:
            found = rules.find_next_chunk(conn, self._database.clock(conn)[1])
            return None if found is None else int(found.wave)

        return self._read(work)

    def heartbeat(self, attempt: AttemptRecord, lease_seconds: float) -> bool:
        """Renew the lease; False when the chunk was taken over or the attempt has ended."""

        def work(tx: Tx) -> bool:
            if not has_current_fence(tx.conn, attempt):
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
        cost: Mapping[str, int] | None = None,
        erasure_snapshot_id: str | None = None,
    ) -> ChunkRecord:
        """Adopt this attempt's output as the chunk's; idempotent, and refused with a stale fence."""
        listed = {"erasure_snapshot_id": erasure_snapshot_id} if erasure_snapshot_id else {}

        def work(tx: Tx) -> ChunkRecord:
            known = find_attempt_row(tx.conn, attempt)
            if known is not None and known.state == AttemptState.ADOPTED and known.snapshot_id == snapshot_id:
                return find_chunk(tx.conn, attempt)
            _require_fence(tx, attempt, "chunk.adopted")
            body = {
                "chunk": attempt.chunk_id, "fence": attempt.fence, "snapshot_id": snapshot_id,
                "rows": rows, "files": files, "bytes": bytes, "owner": attempt.owner.name, **listed,
            }  # fmt: skip
            seq = append_entry(tx, actor, "chunk.adopted", attempt.run_id, body).seq
            output = {"snapshot_id": snapshot_id, "seconds": seconds, "audit_seq": seq}
            ended = {
                "rows": rows,
                "files": files,
                "bytes": bytes,
                "state": AttemptState.ADOPTED.value,
                "ended_at": tx.at,
                "cost": to_json_text(cost) if cost else None,
            }
            # the attempt first: a trigger refuses a done chunk without an adopted attempt
            tx.conn.execute(update_attempt(attempt).values(output | ended | listed))
            counted = {
                "output_rows": rows,
                "output_files": files,
                "output_bytes": bytes,
                "state": ChunkState.DONE.value,
                "losses": 0,
            }
            tx.conn.execute(update_chunk(attempt).values(output | counted | {"error_code": None, "error": None}))
            return find_chunk(tx.conn, attempt)

        return self._write(actor, work)

    def fail(
        self,
        attempt: AttemptRecord,
        *,
        error_code: str,
        message: str,
        actor: Actor,
        fate: Callable[[FailedAttempt], ChunkOutcome] = lambda _: ChunkOutcome(ChunkState.FAILED),
        lost_worker: bool = False,
    ) -> ChunkOutcome:
        """Record that this attempt failed and apply the outcome of its chunk; returns the outcome."""

        def work(tx: Tx) -> ChunkOutcome:
            _require_fence(tx, attempt, "chunk.failed")
            row = tx.conn.execute(select_chunk(attempt.run_id, attempt.chunk_id)).one()
            told = tx.redact(message)[:_MAX_ERROR]
            loss = build_loss(row, error_code, lost_worker=lost_worker, message=told)
            decided = fate(loss)
            _end_attempt(tx, attempt, AttemptState.FAILED, error_code, actor, told)
            apply_outcome(tx, row, loss, decided, actor)
            return decided

        return self._write(actor, work)

    def give_back(self, attempt: AttemptRecord, *, actor: Actor, reason: str = "interrupted") -> bool:
        """Return the chunk of an interrupted worker to pending; False when it was no longer this attempt's."""

        def work(tx: Tx) -> bool:
            if not has_current_fence(tx.conn, attempt):
                return False
            row = tx.conn.execute(select_chunk(attempt.run_id, attempt.chunk_id)).one()
            seq = _end_attempt(tx, attempt, AttemptState.LOST, reason, actor)
            # An interruption is not the chunk's fault, so it does not count as a try.
            values = {"state": ChunkState.PENDING.value, "tries": row.tries - 1, "audit_seq": seq}
            tx.conn.execute(update_chunk(attempt).values(values))
            return True

        return self._write(actor, work)

    def reclaim(self, run_id: str, *, actor: Actor, reason: str) -> int:
        """Take every running chunk from its worker, which notices at its next heartbeat; returns their number."""

        def work(tx: Tx) -> int:
            running = tx.conn.execute(select_chunks(run_id, ChunkState.RUNNING)).all()
            for row in running:
                held = attempt_from_row(tx.conn.execute(select_attempt(run_id, row.chunk_id, row.fence)).one())
                seq = _end_attempt(tx, held, AttemptState.LOST, reason, actor)
                values = {"state": ChunkState.PENDING.value, "tries": row.tries - 1, "audit_seq": seq}
                tx.conn.execute(update_chunk(held).values(values))
            return len(running)

        return self._write(actor, work)


class _ClaimRules:
    """Which chunk may start now, and which running chunks have lost their worker."""

    def __init__(
        self,
        run_id: str,
        is_dead: Callable[[Owner], bool],
        max_running: int | None,
        in_order: bool,
        up_to_wave: int | None = None,
    ) -> None:
        self._run_id = run_id
        self._up_to_wave = up_to_wave
        self._is_dead = is_dead
        self._max_running = max_running
        self._in_order = in_order

    def has_work(self, conn: Connection, now_ms: int) -> bool:
        """Check without the write lock, so that idle workers do not block busy ones."""
        if find_run(conn, self._run_id).state is not RunState.RUNNING:
            return False
        return bool(self.lost(conn, now_ms)) or self.find_next_chunk(conn, now_ms) is not None

    def lost(self, conn: Connection, now_ms: int) -> list[tuple[Row[Any], str]]:
        found = []
        for row in conn.execute(select_chunks(self._run_id, ChunkState.RUNNING)).all():
            held = conn.execute(select_attempt(row.run_id, row.chunk_id, row.fence)).one()
            if held.lease_until <= now_ms:
                found.append((row, "lease-expired"))
            elif self._is_dead(attempt_from_row(held).owner):
                found.append((row, "owner-dead"))
        return found

    def find_next_chunk(self, conn: Connection, now_ms: int) -> Row[Any] | None:
        if self._max_running is not None and self._count_running(conn) >= self._max_running:
            return None
        if has_rejected_wave(conn, self._run_id):
            return None
        passed = self._has_canary_passed(conn)
        if self._in_order:
            first = self._find_first_undone(conn)
            if first is not None and self._up_to_wave is not None and first.wave > self._up_to_wave:
                return None
            ready = first is not None and first.state == ChunkState.PENDING and (passed or first.wave == 0)
            return first if ready and first is not None and first.not_before <= now_ms else None
        query = select_chunks(self._run_id, ChunkState.PENDING)
        if not passed:
            query = query.where(chunk_table.c.wave == 0)
        if self._up_to_wave is not None:
            query = query.where(chunk_table.c.wave <= self._up_to_wave)
        return conn.execute(query.where(chunk_table.c.not_before <= now_ms).limit(1)).first()

    def _count_running(self, conn: Connection) -> int:
        where = (chunk_table.c.run_id == self._run_id) & (chunk_table.c.state == ChunkState.RUNNING.value)
        return int(conn.execute(select(func.count()).select_from(chunk_table).where(where)).scalar() or 0)

    def _has_canary_passed(self, conn: Connection) -> bool:
        where = (chunk_table.c.run_id == self._run_id) & (chunk_table.c.wave == 0)
        has_canary = conn.execute(select(chunk_table.c.chunk_id).where(where).limit(1)).first() is not None
        return not has_canary or has_fact(conn, self._run_id, CANARY)

    def _find_first_undone(self, conn: Connection) -> Row[Any] | None:
        over = [ChunkState.DONE.value, ChunkState.REPLACED.value]
        undone = select(chunk_table).where(chunk_table.c.run_id == self._run_id, chunk_table.c.state.not_in(over))
        first = conn.execute(undone.order_by(chunk_table.c.position).limit(1)).first()
        if first is None:
            return None
        # split chunks keep the position of the original, and a piece split again gets higher numbers than its later
        # siblings, so within a position only the partitions give the order
        there: list[Row[Any]] = list(conn.execute(undone.where(chunk_table.c.position == first.position)))
        return min(there, key=lambda row: (NULL not in parse_texts(row.partitions), parse_texts(row.partitions)[0]))


def _begin_attempt(tx: Tx, chunk: Row[Any], owner: Owner, lease_seconds: float, actor: Actor) -> AttemptRecord:
    fence = chunk.fence + 1
    body = {"chunk": chunk.chunk_id, "fence": fence, "owner": owner}
    seq = append_entry(tx, actor, "chunk.claimed", chunk.run_id, body).seq
    where = (chunk_table.c.run_id == chunk.run_id) & (chunk_table.c.chunk_id == chunk.chunk_id)
    claimed = {"state": ChunkState.RUNNING.value, "fence": fence, "tries": chunk.tries + 1, "audit_seq": seq}
    # the chunk first: a trigger refuses an attempt whose fence is not the chunk's
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
    made = tx.conn.execute(select_attempt(chunk.run_id, chunk.chunk_id, fence)).one()
    return attempt_from_row(made, chunk.partitions)


def _end_attempt(
    tx: Tx, attempt: AttemptRecord, state: AttemptState, reason: str, actor: Actor, message: str | None = None
) -> int:
    body = {"chunk": attempt.chunk_id, "fence": attempt.fence, "reason": reason, "owner": attempt.owner}
    body |= {"error": message} if message else {}
    seq = append_entry(tx, actor, f"attempt.{state.value}", attempt.run_id, body).seq
    values = {"state": state.value, "ended_at": tx.at, "error_code": reason, "error": message, "audit_seq": seq}
    tx.conn.execute(update_attempt(attempt).values(values))
    return seq


def _require_fence(tx: Tx, attempt: AttemptRecord, action: str) -> None:
    if not has_current_fence(tx.conn, attempt):
        row = tx.conn.execute(select_chunk(attempt.run_id, attempt.chunk_id)).first()
        found = f"fence {row.fence}, chunk {row.state}" if row is not None else "no such chunk"
        error = AttemptLost(
            f"{action} was refused for attempt {attempt.attempt_id}; expected its fence to be current, found {found}",
            state="what the attempt wrote is not adopted and will not be read",
            hint="nothing to do: another attempt has the chunk",
            attempt=attempt.attempt_id,
        )
        body = {"chunk": attempt.chunk_id, "fence": attempt.fence, "found": found, "owner": attempt.owner}
        raise Refusal(error, run_id=attempt.run_id, action=action, body=body, code="STALE_FENCE")
    require_accepts_results(find_run(tx.conn, attempt.run_id), action, attempt.chunk_id)
