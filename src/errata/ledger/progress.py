"""How far a run is: its chunks, attempts and their counts, read from the ledger."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, case, func, select

from errata.ledger.records import AttemptRecord, ChunkRecord, Counts, Owner
from errata.ledger.schema import attempt as attempt_table
from errata.ledger.schema import chunk as chunk_table
from errata.ledger.store import Store, texts
from errata.model.run import AttemptState, ChunkState

__all__ = ["Progress", "attempt_record", "chunk_record"]


class Progress(Store):
    """Reads only."""

    def chunks(self, run_id: str) -> tuple[ChunkRecord, ...]:
        """The chunks in the order they run."""
        query = select(chunk_table).where(chunk_table.c.run_id == run_id).order_by(chunk_table.c.position)
        return self._read(lambda conn: tuple(chunk_record(row) for row in conn.execute(query)))

    def attempts(self, run_id: str) -> tuple[AttemptRecord, ...]:
        """Every attempt, by chunk and fence."""
        return self._attempts(run_id, open_only=False)

    def open_attempts(self, run_id: str) -> tuple[AttemptRecord, ...]:
        """Attempts that still hold a chunk, be their worker alive or not."""
        return self._attempts(run_id, open_only=True)

    def counts(self, run_id: str) -> Counts:
        """Chunks by state, in one grouped query."""
        recomputed = func.sum(case((chunk_table.c.fence > 1, 1), else_=0))
        rows = func.coalesce(func.sum(chunk_table.c.output_rows), 0)
        query = (
            select(chunk_table.c.state, func.count().label("chunks"), recomputed.label("again"), rows.label("output"))
            .where(chunk_table.c.run_id == run_id)
            .group_by(chunk_table.c.state)
        )
        found = self._read(lambda conn: conn.execute(query).all())
        by_state = {row.state: int(row.chunks) for row in found}
        return Counts(
            total=sum(by_state.values()),
            recomputed=sum(int(row.again) for row in found),
            rows=sum(int(row.output) for row in found),
            **{state.value: by_state.get(state.value, 0) for state in ChunkState},
        )

    def _attempts(self, run_id: str, *, open_only: bool) -> tuple[AttemptRecord, ...]:
        joined = attempt_table.join(
            chunk_table,
            (chunk_table.c.run_id == attempt_table.c.run_id) & (chunk_table.c.chunk_id == attempt_table.c.chunk_id),
        )
        query = (
            select(attempt_table, chunk_table.c.partitions)
            .select_from(joined)
            .where(attempt_table.c.run_id == run_id)
            .order_by(chunk_table.c.position, attempt_table.c.fence)
        )
        if open_only:
            query = query.where(attempt_table.c.state == AttemptState.RUNNING.value)
        return self._read(lambda conn: tuple(attempt_record(row, row.partitions) for row in conn.execute(query)))


def attempt_record(row: Row[Any], partitions: str | None = None) -> AttemptRecord:
    """A row of ``attempt`` as a value."""
    return AttemptRecord(
        run_id=row.run_id,
        chunk_id=row.chunk_id,
        fence=row.fence,
        owner=Owner(row.owner, row.host, row.pid, row.process_started),
        state=AttemptState(row.state),
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        lease_until=row.lease_until,
        ended_at=row.ended_at,
        snapshot_id=row.snapshot_id,
        rows=row.rows,
        files=row.files,
        bytes=row.bytes,
        seconds=row.seconds,
        error_code=row.error_code,
        error=row.error,
        partitions=texts(partitions) if partitions else (),
    )


def chunk_record(row: Row[Any]) -> ChunkRecord:
    """A row of ``chunk`` as a value."""
    return ChunkRecord(
        run_id=row.run_id,
        chunk_id=row.chunk_id,
        position=row.position,
        partitions=texts(row.partitions),
        rows=row.rows,
        bytes=row.bytes,
        state=ChunkState(row.state),
        fence=row.fence,
        tries=row.tries,
        snapshot_id=row.snapshot_id,
        output_rows=row.output_rows,
        output_files=row.output_files,
        output_bytes=row.output_bytes,
        seconds=row.seconds,
        error_code=row.error_code,
        error=row.error,
    )
