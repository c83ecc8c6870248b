"""Queries and updates of ``chunk`` and ``attempt`` by key and fence."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, Update, func, select

from errata.ledger.records import AttemptRecord, ChunkRecord
from errata.ledger.schema.definition import attempt as attempt_table
from errata.ledger.schema.definition import chunk as chunk_table
from errata.ledger.store.progress import chunk_from_row
from errata.model.run import AttemptState, ChunkState

RUN_ORDER = (
    chunk_table.c.wave,
    chunk_table.c.position,
    func.length(chunk_table.c.chunk_id),
    chunk_table.c.chunk_id,
)
"""Order in which chunks run; chunks that replaced another have its position and are ordered by number.

By wave first: a wave that is computed again holds up those behind it.
"""


def select_chunks(run_id: str, state: ChunkState) -> Select[Any]:
    """The chunks of a run in this state, in the order they run."""
    where = (chunk_table.c.run_id == run_id) & (chunk_table.c.state == state.value)
    return select(chunk_table).where(where).order_by(*RUN_ORDER)


def select_attempt(run_id: str, chunk_id: str, fence: int) -> Select[Any]:
    """One attempt, by its key."""
    keys = (attempt_table.c.run_id == run_id) & (attempt_table.c.chunk_id == chunk_id)
    return select(attempt_table).where(keys & (attempt_table.c.fence == fence))


def find_attempt_row(conn: Connection, attempt: AttemptRecord) -> Row[Any] | None:
    """The row of this attempt, if there is one."""
    found: Row[Any] | None = conn.execute(select_attempt(attempt.run_id, attempt.chunk_id, attempt.fence)).first()
    return found


def select_chunk(run_id: str, chunk_id: str) -> Select[Any]:
    """One chunk, by its key."""
    return select(chunk_table).where(chunk_table.c.run_id == run_id, chunk_table.c.chunk_id == chunk_id)


def find_chunk(conn: Connection, attempt: AttemptRecord) -> ChunkRecord:
    """The chunk of this attempt as a record."""
    return chunk_from_row(conn.execute(select_chunk(attempt.run_id, attempt.chunk_id)).one())


def update_attempt(attempt: AttemptRecord) -> Update:
    """An update of this attempt only."""
    keys = (attempt_table.c.run_id == attempt.run_id) & (attempt_table.c.chunk_id == attempt.chunk_id)
    return attempt_table.update().where(keys & (attempt_table.c.fence == attempt.fence))


def update_chunk(attempt: AttemptRecord) -> Update:
    """An update of this attempt's chunk that takes effect only while the chunk has this attempt's fence."""
    keys = (chunk_table.c.run_id == attempt.run_id) & (chunk_table.c.chunk_id == attempt.chunk_id)
    return chunk_table.update().where(keys & (chunk_table.c.fence == attempt.fence))


def has_current_fence(conn: Connection, attempt: AttemptRecord) -> bool:
    """Whether the attempt is running under the current fence of its chunk."""
    held, chunk = find_attempt_row(conn, attempt), conn.execute(select_chunk(attempt.run_id, attempt.chunk_id)).first()
    return (
        held is not None
        and chunk is not None
        # after the ledger was restored from a backup, another attempt may have the same fence
        and held.started_at == attempt.started_at
        and (held.state, chunk.state, chunk.fence) == (AttemptState.RUNNING, ChunkState.RUNNING, attempt.fence)
    )
