"""Progress of a run: its chunks, attempts and counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, func, select, true

from errata.ledger.records import AttemptRecord, ChunkCounts, ChunkRecord, Owner, RunPace
from errata.ledger.schema.definition import attempt as attempt_table
from errata.ledger.schema.definition import chunk as chunk_table
from errata.ledger.store.base import Store, build_record, parse_texts
from errata.model.run import AttemptState, ChunkState

_MAX_RECENT = 500
"""Number of attempts that a rate takes into account."""
_HOUR_MS = 3_600_000


class RunProgress(Store):
    """Reads only."""

    def chunks(self, run_id: str) -> tuple[ChunkRecord, ...]:
        """Chunks in the order they run, without replaced ones."""
        where = (chunk_table.c.run_id == run_id) & (chunk_table.c.state != ChunkState.REPLACED.value)
        order = (chunk_table.c.position, func.length(chunk_table.c.chunk_id), chunk_table.c.chunk_id)
        query = select(chunk_table).where(where).order_by(*order)
        return self._read(lambda conn: tuple(chunk_from_row(row) for row in conn.execute(query)))

    def attempts(self, run_id: str) -> tuple[AttemptRecord, ...]:
        """All attempts, ordered by chunk and fence."""
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
        return self._read(lambda conn: tuple(attempt_from_row(row, row.partitions) for row in conn.execute(query)))

    def counts(self, run_id: str) -> ChunkCounts:
        """Chunks by state."""
        return self._load_counts(chunk_table.c.run_id == run_id).get(run_id, ChunkCounts())

    def counts_by_run(self) -> dict[str, ChunkCounts]:
        """Chunks by state for every run that has chunks, in one grouped query."""
        return self._load_counts(true())

    def pace(self, run_id: str) -> RunPace:
        """Recent pace of the run over all its workers, for run-wide limits."""
        return self._read(lambda conn: _load_pace(conn, run_id, self._database.clock(conn)[1]))

    def _load_counts(self, where: ColumnElement[bool]) -> dict[str, ChunkCounts]:
        replaced = chunk_table.c.state == ChunkState.REPLACED.value
        again = (chunk_table.c.fence > 1) | (replaced & (chunk_table.c.fence > 0))
        recomputed = func.sum(case((again, 1), else_=0)).label("again")
        rows = func.coalesce(func.sum(chunk_table.c.output_rows), 0).label("output")
        keys = (chunk_table.c.run_id, chunk_table.c.state)
        query = select(*keys, func.count().label("chunks"), recomputed, rows).where(where).group_by(*keys)
        found = self._read(lambda conn: conn.execute(query.order_by(*keys)).all())
        return {run_id: _build_counts(list(group)) for run_id, group in groupby(found, lambda row: row.run_id)}


def _build_counts(states: Sequence[Row[Any]]) -> ChunkCounts:
    by_state = {row.state: int(row.chunks) for row in states if row.state != ChunkState.REPLACED}
    return ChunkCounts(
        total=sum(by_state.values()),
        recomputed=sum(int(row.again) for row in states),
        rows=sum(int(row.output) for row in states),
        **{state.value: by_state.get(state.value, 0) for state in ChunkState if state is not ChunkState.REPLACED},
    )


def _load_pace(conn: Connection, run_id: str, now_ms: int) -> RunPace:
    mine = attempt_table.c.run_id == run_id
    live = attempt_table.c.state.in_([AttemptState.RUNNING.value, AttemptState.ADOPTED.value])
    joined = attempt_table.join(
        chunk_table,
        (chunk_table.c.run_id == attempt_table.c.run_id) & (chunk_table.c.chunk_id == attempt_table.c.chunk_id),
    )
    wanted = (attempt_table.c.state, attempt_table.c.started_at, attempt_table.c.ended_at)
    newest = (
        select(*wanted, chunk_table.c.bytes.label("input_bytes"), chunk_table.c.rows.label("input_rows"))
        .select_from(joined)
        .where(mine & live)
        .order_by(attempt_table.c.started_at.desc())
        .limit(_MAX_RECENT)
    )
    rows = list(reversed(conn.execute(newest).all()))
    ended = attempt_table.c.ended_at
    adopted = mine & (attempt_table.c.state == AttemptState.ADOPTED.value)
    # the database's instants are ISO texts of one length, so they compare as texts
    hour_ago = datetime.fromtimestamp((now_ms - _HOUR_MS) / 1000, UTC).isoformat(timespec="milliseconds")
    lately = select(ended).where(adopted & (ended > hour_ago.replace("+00:00", "Z"))).order_by(ended)
    counted = select(attempt_table.c.state, func.count().label("n")).where(mine & live)
    counts = {row.state: int(row.n) for row in conn.execute(counted.group_by(attempt_table.c.state))}
    ends = sorted(_to_ms(row.ended_at) for row in rows if row.state == AttemptState.ADOPTED)
    return RunPace(
        now_ms=now_ms,
        running=counts.get(AttemptState.RUNNING.value, 0),
        adopted=counts.get(AttemptState.ADOPTED.value, 0),
        last_ended_ms=ends[-1] if ends else None,
        recent=tuple((_to_ms(row.started_at), row.input_rows, row.input_bytes) for row in rows),
        adopted_last_hour=tuple(_to_ms(end) for end in conn.execute(lately).scalars()),
    )


def _to_ms(instant: str) -> int:
    return int(datetime.fromisoformat(instant).timestamp() * 1000)


def attempt_from_row(row: Row[Any], partitions: str | None = None) -> AttemptRecord:
    """A row of ``attempt`` as a record."""
    return build_record(
        AttemptRecord,
        row,
        owner=Owner(row.owner, row.host, row.pid, row.process_started),
        state=AttemptState(row.state),
        partitions=parse_texts(partitions) if partitions else (),
        cost=json.loads(row.cost) if row.cost else {},
    )


def chunk_from_row(row: Row[Any]) -> ChunkRecord:
    """A row of ``chunk`` as a record."""
    return build_record(ChunkRecord, row, partitions=parse_texts(row.partitions), state=ChunkState(row.state))
