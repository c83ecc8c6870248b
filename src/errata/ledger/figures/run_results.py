"""Figures of runs about what came of their work: verdicts, publications, waves, copies."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, case, func, select

from errata.ledger.figures.figure_values import Durations, RunFigures
from errata.ledger.schema.definition import attempt, chunk, outbox_item, publication, verdict
from errata.ledger.store.base import parse_texts
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.run import AttemptState, ChunkState, PublicationState
from errata.model.waves import wave_of_chunk

LAKE = "lake"
"""The place where the readers of the table itself look."""


def add_verdicts(conn: Connection, runs: Mapping[str, RunFigures]) -> None:
    """Verdicts that did not pass."""
    failed = verdict.c.run_id.in_(runs) & verdict.c.passed.is_(False)
    query = select(verdict.c.run_id, func.count().label("n")).where(failed).group_by(verdict.c.run_id)
    for row in conn.execute(query):
        runs[row.run_id].rejections = int(row.n)


def add_publications(conn: Connection, runs: Mapping[str, RunFigures]) -> None:
    """How long commits took, which waves are out, and how long what was computed had to wait for that."""
    p = publication.c
    committed = p.run_id.in_(runs) & (p.state == PublicationState.COMMITTED.value)
    query = select(p.run_id, p.kind, p.partitions, p.intended_at, p.settled_at).where(committed)
    rows = conn.execute(query.order_by(p.run_id, p.n)).all()
    computed = _load_computed(conn, {row.run_id for row in rows})
    visible: dict[str, set[str]] = {}
    for row in rows:
        found, settled, names = runs[row.run_id], _to_seconds(row.settled_at), parse_texts(row.partitions)
        took = max(0.0, settled - _to_seconds(row.intended_at))
        found.publications[row.kind] = found.publications.get(row.kind, Durations()).add(took)
        if row.kind != "publish":
            visible.get(row.run_id, set()).difference_update(names)
            continue
        visible.setdefault(row.run_id, set()).update(names)
        known = computed.get(row.run_id, {})
        ends = [known[name].ended for name in names if name in known and known[name].ended]
        # what was computed after a live write took its partitions back is newer than the publication before
        if ends and (waited := settled - max(ends)) >= 0:
            found.visible[LAKE] = found.visible.get(LAKE, Durations()).add(waited)
    _add_waves(conn, runs, visible, computed)


class _Computed(NamedTuple):
    """A partition in the chunk that computes it."""

    wave: int
    ended: float  # 0 if it is not computed


def _load_computed(conn: Connection, run_ids: Collection[str]) -> dict[str, dict[str, _Computed]]:
    """The partitions of these runs; one that was computed again is in its newest chunk."""
    same = (chunk.c.run_id == attempt.c.run_id) & (chunk.c.chunk_id == attempt.c.chunk_id)
    joined = chunk.outerjoin(attempt, same & (attempt.c.state == AttemptState.ADOPTED.value))
    query = select(chunk.c.run_id, chunk.c.wave, chunk.c.partitions, attempt.c.ended_at).select_from(joined)
    wanted = chunk.c.run_id.in_(run_ids) & (chunk.c.state != ChunkState.REPLACED.value)
    found: dict[str, dict[str, _Computed]] = {}
    for row in conn.execute(query.where(wanted).order_by(chunk.c.position)):
        one = _Computed(wave_of_chunk(row.wave), _to_seconds(row.ended_at) if row.ended_at else 0.0)
        found.setdefault(row.run_id, {}).update(dict.fromkeys(parse_texts(row.partitions), one))
    return found


def _add_waves(
    conn: Connection,
    runs: Mapping[str, RunFigures],
    visible: Mapping[str, Collection[str]],
    computed: Mapping[str, Mapping[str, _Computed]],
) -> None:
    """How many waves readers see as a whole, and how many they do not see."""
    wave = case((chunk.c.wave < 1, 1), else_=chunk.c.wave)  # the canary goes with the first
    counted = select(chunk.c.run_id, func.count(wave.distinct()).label("n")).where(chunk.c.run_id.in_(runs))
    for row in conn.execute(counted.group_by(chunk.c.run_id)):
        mine, out = computed.get(row.run_id, {}), visible.get(row.run_id, ())
        waiting = {one.wave for name, one in mine.items() if name not in out}
        seen = len({one.wave for one in mine.values()} - waiting) if out else 0
        runs[row.run_id].waves = {"visible": seen, "waiting": int(row.n) - seen}


def add_deliveries(conn: Connection, runs: Mapping[str, RunFigures]) -> None:
    """How long the transactions that write copies took, and how long after the commit their readers saw it."""
    c = outbox_item.c
    paid = c.run_id.in_(runs) & (c.state == ItemState.PAID.value) & (c.effect == Effect.COPY.value)
    for row in conn.execute(select(c.run_id, c.consumer, c.result).where(paid)):
        result, found = json.loads(row.result), runs[row.run_id]
        _add_duration(found.deliveries, row, result.get("seconds"))
        _add_duration(found.visible, row, result.get("seconds_since_commit"))


def _add_duration(durations: dict[str, Durations], row: Row[Any], seconds: Any) -> None:
    if isinstance(seconds, int | float):
        durations[row.consumer] = durations.get(row.consumer, Durations()).add(float(seconds))


def _to_seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
