"""Outcomes of chunks whose attempt did not succeed: pending again, failed, quarantined, or split into other chunks.

The caller chooses the outcome; this module writes it together with its audit entries. Chunks that replace others cover
exactly their partitions, so that every partition of a run stays in one live chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from errata.errors import AttemptLost, NotFound, StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.records import ChunkRecord, RunRecord
from errata.ledger.schema.definition import chunk as chunk_table
from errata.ledger.store.base import Refusal, Store, find_run, parse_texts, to_json_text
from errata.ledger.store.chunk_rows import select_chunks
from errata.ledger.store.progress import chunk_from_row
from errata.model.audit import Actor
from errata.model.chunk_outcome import ChunkOutcome, FailedAttempt
from errata.model.manifest import Chunk
from errata.model.run import ChunkState, RunState

# a cancelled run lets running chunks finish, so that their output is known and cleaned up with the rest
_ACCEPTS_RESULTS = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.FAILED, RunState.CANCELLED})
_RETRYABLE = (ChunkState.FAILED, ChunkState.QUARANTINED)


class ChunkRetries(Store):
    """Retry of failed chunks, and repacking of pending chunks."""

    def retry(self, run_id: str, chunk_id: str | None, actor: Actor) -> tuple[ChunkRecord, ...]:
        """Make failed and quarantined chunks (default: all of them) pending again; returns them."""

        def work(tx: Tx) -> tuple[ChunkRecord, ...]:
            run = find_run(tx.conn, run_id)
            query = select(chunk_table).where(chunk_table.c.run_id == run_id).order_by(chunk_table.c.position)
            rows = [row for row in tx.conn.execute(query) if chunk_id in (None, row.chunk_id)]
            if chunk_id is not None and not rows:
                raise NotFound(f"run {run_id} has no chunk {chunk_id}", state="nothing was changed")
            if chunk_id is not None and rows[0].state not in _RETRYABLE:
                raise Refusal(
                    _not_failed_error(rows[0]), run_id=run_id, action="chunk.retried", body={"chunk": chunk_id}
                )
            require_accepts_results(run, "chunk.retried", chunk_id)
            chosen = [row.chunk_id for row in rows if row.state in _RETRYABLE]
            if not chosen:
                return ()
            seq = append_entry(tx, actor, "chunk.retried", run_id, {"chunks": chosen}).seq
            where = (chunk_table.c.run_id == run_id) & chunk_table.c.state.in_([state.value for state in _RETRYABLE])
            if chunk_id is not None:
                where &= chunk_table.c.chunk_id == chunk_id
            again = {"state": ChunkState.PENDING.value, "tries": 0, "losses": 0, "not_before": 0, "audit_seq": seq}
            tx.conn.execute(chunk_table.update().where(where).values(again))
            return tuple(chunk_from_row(row) for row in tx.conn.execute(query) if row.chunk_id in set(chosen))

        return self._write(actor, work)

    def repack(self, run_id: str, chunks: Sequence[Chunk], actor: Actor, why: str) -> bool:
        """Replace pending chunks by chunks with exactly the same partitions, wave by wave; False if they are gone.

        The ids of ``chunks`` are not used: the ledger numbers its chunks itself.
        """
        waves: dict[int, list[Chunk]] = {}
        for chunk in chunks:
            waves.setdefault(chunk.wave, []).append(chunk)

        def work(tx: Tx) -> bool:
            waiting = [row for row in tx.conn.execute(select_chunks(run_id, ChunkState.PENDING)) if row.fence == 0]
            old = {wave: _find_replaced(waiting, wave, new) for wave, new in waves.items()}
            if not all(old.values()) or find_run(tx.conn, run_id).state is not RunState.RUNNING:
                return False
            for wave, new in waves.items():
                _replace_chunks(tx, old[wave], new, actor, why)
            return True

        return self._write(actor, work)


def _find_replaced(waiting: Sequence[Row[Any]], wave: int, new: Sequence[Chunk]) -> list[Row[Any]]:
    """The waiting chunks of a wave that have exactly the partitions of the new ones; empty if they have not."""
    wanted = {name for chunk in new for name in chunk.partitions}
    old = [row for row in waiting if row.wave == wave and wanted & set(parse_texts(row.partitions))]
    return old if {name for row in old for name in parse_texts(row.partitions)} == wanted else []


def build_loss(row: Row[Any], reason: str, *, lost_worker: bool, message: str = "") -> FailedAttempt:
    """The failed attempt of this chunk row, from which the caller decides the outcome."""
    chunk = Chunk(row.chunk_id, parse_texts(row.partitions), row.rows, row.bytes)
    return FailedAttempt(chunk, reason, row.tries, row.losses + int(lost_worker), message)


def apply_outcome(tx: Tx, row: Row[Any], loss: FailedAttempt, fate: ChunkOutcome, actor: Actor) -> None:
    """Record the outcome of a running chunk whose attempt has ended."""
    error = {"error_code": loss.reason, "error": loss.message or fate.why or loss.reason}
    body = {"chunk": row.chunk_id, "fence": row.fence, **fate.body()} | error
    values = {"losses": loss.losses, **error}
    if fate.to is ChunkState.REPLACED:
        total = max(1, len(loss.chunk.partitions))
        pieces = [
            Chunk("", names, loss.chunk.rows * len(names) // total, loss.chunk.bytes * len(names) // total)
            for names in fate.pieces
        ]
        _replace_chunks(tx, [row], pieces, actor, fate.why or loss.reason, losses=max(1, loss.losses))
        return
    seq = append_entry(tx, actor, f"chunk.{_ACTIONS[fate.to]}", row.run_id, body).seq
    values |= {"state": fate.to.value, "not_before": tx.now_ms + int(fate.wait_seconds * 1000), "audit_seq": seq}
    where = (chunk_table.c.run_id == row.run_id) & (chunk_table.c.chunk_id == row.chunk_id)
    tx.conn.execute(chunk_table.update().where(where).values(values))


_ACTIONS = {ChunkState.PENDING: "again", ChunkState.FAILED: "failed", ChunkState.QUARANTINED: "quarantined"}


def _replace_chunks(
    tx: Tx, old: Sequence[Row[Any]], new: Sequence[Chunk], actor: Actor, why: str, losses: int = 0
) -> None:
    run_id, first = old[0].run_id, old[0]
    number = _count_chunks(tx.conn, run_id)
    names = [f"c{number + n:03d}" for n in range(1, len(new) + 1)]
    made = {name: len(chunk.partitions) for name, chunk in zip(names, new, strict=True)}
    body = {"chunks": [row.chunk_id for row in old], "by": made, "why": why}
    seq = append_entry(tx, actor, "chunks.replaced", run_id, body).seq
    where = (chunk_table.c.run_id == run_id) & chunk_table.c.chunk_id.in_([row.chunk_id for row in old])
    tx.conn.execute(chunk_table.update().where(where).values(state=ChunkState.REPLACED.value, audit_seq=seq))
    rows = [
        {
            "run_id": run_id,
            "chunk_id": name,
            "position": first.position,
            "partitions": to_json_text(list(chunk.partitions)),
            "rows": chunk.rows,
            "bytes": chunk.bytes,
            "state": ChunkState.PENDING.value,
            "fence": 0,
            "tries": 0,
            "losses": losses,
            "wave": first.wave,
            "origin": ",".join(row.chunk_id for row in old),
            "audit_seq": seq,
        }
        for name, chunk in zip(names, new, strict=True)
    ]
    tx.conn.execute(chunk_table.insert(), rows)


def _count_chunks(conn: Connection, run_id: str) -> int:
    query = select(func.count()).select_from(chunk_table).where(chunk_table.c.run_id == run_id)
    return int(conn.execute(query).scalar() or 0)


def require_accepts_results(run: RunRecord, action: str, chunk_id: str | None) -> None:
    """Refuse unless the run still accepts results."""
    retried = action == "chunk.retried"
    if run.state not in _ACCEPTS_RESULTS or (retried and run.state is RunState.CANCELLED):
        kind = StateRefused if retried else AttemptLost
        deed = "retry" if retried else action
        error = kind(
            f"{deed} was refused for {run.run_id}; expected a run that is running, found {run.state.value}",
            state="nothing was changed",
            run_id=run.run_id,
        )
        body = {"chunk": chunk_id, "found": run.state.value}
        raise Refusal(error, run_id=run.run_id, action=action, body=body)


def _not_failed_error(row: Row[Any]) -> StateRefused:
    return StateRefused(
        f"chunk {row.chunk_id} was not retried; expected a failed or quarantined chunk, found {row.state}",
        state="nothing was changed",
        run_id=row.run_id,
    )
