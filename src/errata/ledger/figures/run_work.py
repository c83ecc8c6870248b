"""Figures of runs about their work: chunks, attempts, costs, estimates and throttles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Connection, case, cast, func, select, true
from sqlalchemy.types import BigInteger

from errata.ledger.figures.figure_values import DURATION_BUCKETS, Durations, Pace, RunFigures
from errata.ledger.schema.definition import attempt, audit, chunk, fact
from errata.model.run import AttemptState, ChunkState, RunState

_LATELY_MS = 3_600_000
"""A pace is that of the last hour: a night's pause says nothing about the morning."""
_LEVELS = ("throttle.go", "throttle.slow", "throttle.pause")
_WRITE = "write_ms"


def add_chunks(conn: Connection, runs: Mapping[str, RunFigures], now_ms: int) -> None:
    """Chunks by state, rows, and when a run that is computed will be done."""
    keys, c = (chunk.c.run_id, chunk.c.state), chunk.c
    sums = [func.coalesce(func.sum(column), 0) for column in (c.output_rows, c.bytes)]
    query = select(*keys, func.count().label("n"), sums[0].label("rows_out"), sums[1].label("size"))
    remaining: dict[str, dict[str, float]] = {}
    for row in conn.execute(query.where(c.run_id.in_(runs), c.state != ChunkState.REPLACED.value).group_by(*keys)):
        found = runs[row.run_id]
        found.chunks[row.state] = int(row.n)
        found.output_rows += int(row.rows_out)
        if row.state in (ChunkState.PENDING, ChunkState.RUNNING):
            left = remaining.setdefault(row.run_id, {"bytes": 0.0, "chunks": 0.0})
            left["bytes"] += float(row.size)
            left["chunks"] += float(row.n)
    _add_finish(conn, runs, remaining, now_ms)


def _add_finish(
    conn: Connection, runs: Mapping[str, RunFigures], remaining: Mapping[str, Mapping[str, float]], now_ms: int
) -> None:
    running = [run_id for run_id in remaining if runs[run_id].state == RunState.RUNNING]
    if not running:
        return
    # instants of the database are texts of one length, so they compare as texts
    since = _to_instant(now_ms - _LATELY_MS)
    done = (attempt.c.state == AttemptState.ADOPTED.value) & (attempt.c.ended_at > since)
    joined = attempt.join(chunk, (chunk.c.run_id == attempt.c.run_id) & (chunk.c.chunk_id == attempt.c.chunk_id))
    query = (
        select(
            attempt.c.run_id, func.count().label("n"), func.coalesce(func.sum(chunk.c.bytes), 0).label("size"),
            func.min(attempt.c.started_at).label("began"),
        )
        .select_from(joined).where(attempt.c.run_id.in_(running), done).group_by(attempt.c.run_id)
    )  # fmt: skip
    for row in conn.execute(query):
        left = remaining[row.run_id]
        is_sized = bool(row.size) and bool(left["bytes"])
        began = max(_to_ms(row.began), now_ms - _LATELY_MS)
        pace = Pace(left["bytes"] if is_sized else left["chunks"], float(row.size if is_sized else row.n), began)
        runs[row.run_id].finish = pace.find_finish(now_ms)


def add_attempts(conn: Connection, runs: Mapping[str, RunFigures]) -> None:
    """How long adopted attempts took, and how many were lost or failed."""
    c = attempt.c
    within = [func.sum(case((c.seconds <= end, 1), else_=0)).label(f"b{n}") for n, end in enumerate(DURATION_BUCKETS)]
    query = select(
        c.run_id, c.state, func.count().label("n"), func.coalesce(func.sum(c.seconds), 0).label("seconds"),
        func.max(c.ended_at).label("newest"), *within,
    )  # fmt: skip
    for row in conn.execute(query.where(c.run_id.in_(runs)).group_by(c.run_id, c.state)):
        found = runs[row.run_id]
        match AttemptState(row.state):
            case AttemptState.ADOPTED:
                buckets = tuple(int(getattr(row, f"b{n}")) for n in range(len(DURATION_BUCKETS)))
                found.durations = Durations(int(row.n), float(row.seconds), buckets)
                found.progress_at = row.newest
            case AttemptState.LOST:
                found.lost_attempts = int(row.n)
            case AttemptState.FAILED:
                found.failed_attempts = int(row.n)
            case AttemptState.RUNNING:
                pass


def add_costs(conn: Connection, runs: Mapping[str, RunFigures]) -> None:
    """Sums of what adopted attempts recorded about themselves: rows and bytes read, times, rows set aside."""
    if conn.dialect.name == "sqlite":
        entries = func.json_each(attempt.c.cost).table_valued("key", "value", name="entry")
    else:
        entries = func.json_each_text(cast(attempt.c.cost, JSON)).table_valued("key", "value", name="entry")
    total = func.sum(cast(entries.c.value, BigInteger)).label("total")
    adopted = attempt.c.run_id.in_(runs) & (attempt.c.state == AttemptState.ADOPTED.value)
    query = (
        select(attempt.c.run_id, entries.c.key, total, func.count().label("n"))
        .select_from(attempt.join(entries, true()))
        .where(adopted, attempt.c.cost.is_not(None))
        .group_by(attempt.c.run_id, entries.c.key)
    )
    for row in conn.execute(query):
        # rows by outcome are recorded for each input, as ``<outcome>:<input>``
        name = row.key.partition(":")[0]
        found = runs[row.run_id]
        found.cost[name] = found.cost.get(name, 0) + int(row.total)
        if name == _WRITE:
            found.writes = int(row.n)


def add_audited(conn: Connection, runs: Mapping[str, RunFigures]) -> None:
    """What only the audit log and the notes of a run know: estimate, deadline, decisions of the throttle."""
    planned = select(audit.c.run_id, audit.c.body).where(audit.c.run_id.in_(runs), audit.c.action == "run.planned")
    for row in conn.execute(planned):
        body = json.loads(row.body)
        runs[row.run_id].estimate_usd, runs[row.run_id].deadline = body.get("estimated_usd"), body.get("deadline")
    for row in conn.execute(_select_canaries(runs)):
        usd = json.loads(row.value).get("usd")
        runs[row.run_id].estimate_usd = str(usd) if usd is not None else runs[row.run_id].estimate_usd
    keys = (audit.c.run_id, audit.c.action)
    decided = select(*keys, func.count().label("n")).where(audit.c.run_id.in_(runs), audit.c.action.in_(_LEVELS))
    for row in conn.execute(decided.group_by(*keys)):
        runs[row.run_id].throttle[row.action.removeprefix("throttle.")] = int(row.n)


def _select_canaries(runs: Mapping[str, RunFigures]) -> Any:
    return select(fact.c.run_id, fact.c.value).where(fact.c.run_id.in_(runs), fact.c.name == "canary")


def _to_ms(instant: str) -> int:
    return int(datetime.fromisoformat(instant).timestamp() * 1000)


def _to_instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
