"""The waves of a run and their states.

The only wave of a run is as far as the run itself. Of several, each state is read from its chunks, verdicts and
partitions, and the state of the run, which the database enforces the moves of, is the one that follows from them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, case, select

from errata.ledger.records import CandidateState, PartitionState, RunRecord, WaveRecord, covers
from errata.ledger.schema.definition import candidate, chunk, publication, verdict
from errata.ledger.store.base import Store, find_run, parse_texts
from errata.ledger.store.partition_history import find_touched_states
from errata.model.run import JUDGED, ChunkState, PublicationState, RunState, find_judged_state
from errata.model.waves import WaveState, derive_run_state, derive_wave_state, wave_of_chunk

_COMPUTING = (RunState.RUNNING, RunState.PAUSED, RunState.FAILED)
_AFTER_GATE = (RunState.PUBLISHING, RunState.PART_PUBLISHED)


class Waves(Store):
    """Reads only."""

    def list(self, run_id: str) -> tuple[WaveRecord, ...]:
        """The waves of the run, in the order in which they go; a run without waves is one."""
        return self._read(lambda conn: find_waves(conn, find_run(conn, run_id)))


def find_waves(conn: Connection, run: RunRecord) -> tuple[WaveRecord, ...]:
    """The waves of the run with their states."""
    rows = conn.execute(
        select(chunk.c.chunk_id, chunk.c.wave, chunk.c.partitions, chunk.c.state)
        .where(chunk.c.run_id == run.run_id, chunk.c.state != ChunkState.REPLACED.value)
        .order_by(chunk.c.position, chunk.c.chunk_id)
    ).all()
    # a partition that was computed again belongs to its newest chunk, and to the wave it always was in
    wave_of: dict[str, int] = {}
    undone = set(run.partitions)
    held = [(row, parse_texts(row.partitions)) for row in rows]
    for row, names in held:
        (undone.difference_update if row.state == ChunkState.DONE.value else undone.update)(names)
    for row, names in reversed(held):
        wave_of |= dict.fromkeys(names, wave_of_chunk(row.wave))
    touched = find_touched_states(conn, run)
    open_partitions = _find_open_partitions(conn, run.run_id)
    judged = _load_judged(conn, run.run_id)
    found: dict[int, list[str]] = {}
    for name in run.partitions:
        found.setdefault(wave_of.get(name, 1), []).append(name)
    waves = tuple(
        _build_wave(n, tuple(names), undone, touched, judged, open_partitions) for n, names in sorted(found.items())
    )
    return (_follow_run(waves[0], run.state, touched, open_partitions),) if len(waves) == 1 else waves


def _list_states(names: Collection[str], touched: Mapping[str, PartitionState]) -> set[str]:
    """The states that these partitions have."""
    return {one.value if one else PartitionState.UNPUBLISHED.value for one in set(map(touched.get, names))}


def _follow_run(
    only: WaveRecord, state: RunState, touched: Mapping[str, PartitionState], open_partitions: Collection[str]
) -> WaveRecord:
    """The only wave of a run, as far as the run is."""
    judged = state if state in JUDGED else RunState.VALIDATED if state in _AFTER_GATE else None
    found = derive_wave_state(
        is_computed=judged is not None or state is RunState.STAGED,
        judged=judged,
        partitions=_list_states(only.partitions, touched),
        is_publishing=bool(open_partitions),
    )
    if found is WaveState.VALIDATED and state is RunState.PART_PUBLISHED:
        found = WaveState.PART_PUBLISHED
    return replace(only, state=found, judged=judged)


def has_rejected_wave(conn: Connection, run_id: str) -> bool:
    """Whether a wave did not pass its gate, so that computing more would be in vain."""
    failed = select(verdict.c.id).where(verdict.c.run_id == run_id, verdict.c.passed.is_(False)).limit(1)
    if conn.execute(failed).first() is None:
        return False
    return any(wave.state is WaveState.REJECTED for wave in find_waves(conn, find_run(conn, run_id)))


def _build_wave(
    n: int,
    names: tuple[str, ...],
    undone: Collection[str],
    touched: Mapping[str, PartitionState],
    judged: Collection[tuple[Row[Any], Mapping[str, Any]]],
    open_partitions: Collection[str],
) -> WaveRecord:
    scope = frozenset(names)
    newest = next((row for row, detail in judged if covers(detail, scope)), None)
    verdict_state = _find_verdict_state(newest) if newest else None
    state = derive_wave_state(
        is_computed=scope.isdisjoint(undone),
        judged=verdict_state,
        partitions=_list_states(names, touched),
        is_publishing=not scope.isdisjoint(open_partitions),
    )
    return WaveRecord(
        n,
        names,
        state,
        candidate_n=newest.candidate_n if newest else None,
        judged=verdict_state,
        judged_at=newest.at if newest else None,
    )


def _find_verdict_state(judged: Row[Any]) -> RunState:
    checks = () if judged.passed else json.loads(judged.checks)
    return find_judged_state(checks, passed=bool(judged.passed))


def _load_judged(conn: Connection, run_id: str) -> list[tuple[Row[Any], Mapping[str, Any]]]:
    """Verdicts on candidates that may still be published, each with the detail of its candidate, newest first."""
    usable = (candidate.c.run_id == verdict.c.run_id) & (candidate.c.n == verdict.c.candidate_n)
    # thousands of checks, and they only matter where one of them did not pass
    checks = case((verdict.c.passed.is_(False), verdict.c.checks)).label("checks")
    query = (
        select(verdict.c.candidate_n, verdict.c.passed, checks, verdict.c.at, candidate.c.detail)
        .join(candidate, usable)
        .where(verdict.c.run_id == run_id, candidate.c.state != CandidateState.ABANDONED.value)
        .order_by(verdict.c.id.desc())
    )
    return [(row, json.loads(row.detail)) for row in conn.execute(query)]


def _find_open_partitions(conn: Connection, run_id: str) -> frozenset[str]:
    query = select(publication.c.partitions).where(
        publication.c.run_id == run_id,
        publication.c.kind == "publish",
        publication.c.state == PublicationState.INTENDED.value,
    )
    return frozenset(name for stored in conn.execute(query).scalars() for name in parse_texts(stored))


def follow_waves(state: RunState, waves: Collection[WaveState]) -> RunState:
    """The state of a run in ``state`` whose waves are these; a pause or a failure ends with a command of its own.

    >>> follow_waves(RunState.PAUSED, [WaveState.PUBLISHED, WaveState.COMPUTING])
    <RunState.PAUSED: 'paused'>
    """
    found = derive_run_state(tuple(waves))
    return state if found is RunState.RUNNING and state in _COMPUTING else found
