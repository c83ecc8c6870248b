"""Partitions that a run computes again: after a live write that wins, and without subjects who were erased since.

The chunk that computed such a partition before stays done, because it still covers its other partitions. A partition
belongs to the newest chunk that names it. The note and the chunks are recorded in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from errata.canonical import from_plain
from errata.errors import StateRefused
from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.records import RunRecord
from errata.ledger.schema.definition import chunk as chunk_table
from errata.ledger.schema.definition import fact as fact_table
from errata.ledger.store.base import Refusal, Store, find_run, move_run, to_json_text
from errata.ledger.store.candidates import abandon_candidates
from errata.ledger.store.facts import has_fact, load_facts
from errata.ledger.store.parts import load_part, save_parts
from errata.ledger.store.wave_states import find_waves
from errata.model.audit import Actor
from errata.model.manifest import Chunk, InputPin
from errata.model.rebase import Rebase
from errata.model.run import FINAL, ChunkState, RunState
from errata.model.waves import WaveState

REBASE = "rebase."
"""Prefix of the run note of a rebase; its number follows."""
ERASURE = "erasure."
"""Prefix of the run note of chunks that are computed again without erased subjects; its number follows."""
_CAN_REBASE = frozenset({WaveState.STAGED, WaveState.VALIDATED})
_STAYS = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.FAILED})
_COMPUTED = frozenset({WaveState.STAGED, WaveState.VALIDATED, WaveState.REJECTED, WaveState.NEEDS_ACCEPTANCE})


class Rebases(Store):
    """Rebases, which move a staged or validated run back to running."""

    def record(
        self, run_id: str, n: int, value: Mapping[str, Any], chunks: Sequence[Chunk], parts: Mapping[str, bytes],
        actor: Actor,
    ) -> RunRecord:  # fmt: skip
        """Record the rebase, add its chunks, abandon the candidates and move the run to running. Idempotent.

        The ids of ``chunks`` are not used: the ledger numbers its chunks itself.
        """

        def work(tx: Tx) -> RunRecord:
            save_parts(tx, parts.values())
            return compute_again(
                tx, find_run(tx.conn, run_id), f"{REBASE}{n}", {**value, "n": n}, chunks, actor, "run.rebased",
                _CAN_REBASE,
            )  # fmt: skip

        return self._write(actor, work)

    def facts(self, run_id: str) -> tuple[Mapping[str, Any], ...]:
        """Run notes of the run's rebases, oldest first."""
        return self._read(lambda conn: _rebase_facts(conn, run_id))

    def list(self, run_id: str) -> tuple[Rebase, ...]:
        """All rebases of the run with their input pins, oldest first."""
        return self._read(
            lambda conn: tuple(
                _load_rebase(fact, load_part(conn, fact["pins_part"])) for fact in _rebase_facts(conn, run_id)
            )
        )


def _rebase_facts(conn: Connection, run_id: str) -> tuple[Mapping[str, Any], ...]:
    facts = [value for name, value in load_facts(conn, run_id).items() if name.startswith(REBASE)]
    return tuple(sorted(facts, key=lambda fact: int(fact["n"])))


def _load_rebase(fact: Mapping[str, Any], pins: bytes) -> Rebase:
    return Rebase(
        n=fact["n"],
        partitions=tuple(fact["partitions"]),
        written=tuple(fact["written"]),
        snapshots=tuple(fact["snapshots"]),
        base_snapshot_id=fact["base_snapshot_id"],
        expected_part=fact["expected_part"],
        pins_part=fact["pins_part"],
        inputs=tuple(from_plain(InputPin, pin) for pin in json.loads(pins)),
        chunks=tuple(fact["chunks"]),
    )


class Erasures(Store):
    """Chunks that are computed again because the list of erased subjects has grown."""

    def record(self, run_id: str, snapshot_id: str, chunks: Sequence[Chunk], actor: Actor) -> RunRecord:
        """Add these chunks, abandon the candidates with their partitions and move the run to running.

        The ids of ``chunks`` are not used: the ledger numbers its chunks itself.
        """

        def work(tx: Tx) -> RunRecord:
            run = find_run(tx.conn, run_id)
            n = 1 + sum(name.startswith(ERASURE) for name in load_facts(tx.conn, run_id))
            names = [name for chunk in chunks for name in chunk.partitions]
            value = {"n": n, "partitions": names, "list": snapshot_id}
            return compute_again(tx, run, f"{ERASURE}{n}", value, chunks, actor, "run.erased", _COMPUTED)

        return self._write(actor, work)


def compute_again(
    tx: Tx,
    run: RunRecord,
    name: str,
    value: Mapping[str, Any],
    chunks: Sequence[Chunk],
    actor: Actor,
    action: str,
    states: Collection[WaveState],
) -> RunRecord:
    """Note why, add the chunks, abandon the candidates with their partitions and move the run to running. Idempotent.

    ``name`` is that of the run note, ``states`` are those that the waves may be in.
    """
    run_id = run.run_id
    if has_fact(tx.conn, run_id, name):
        return run
    waves = _find_waves_of(tx, run, chunks, action, states)
    where = chunk_table.c.run_id == run_id
    number, last = tx.conn.execute(
        select(func.count(), func.max(chunk_table.c.position)).select_from(chunk_table).where(where)
    ).one()
    names = [f"c{number + at:03d}" for at in range(1, len(chunks) + 1)]
    told = {**value, "chunks": names}
    seq = append_entry(tx, actor, f"fact.{name}", run_id, told).seq
    row = {"run_id": run_id, "name": name, "value": to_json_text(told), "at": tx.at, "audit_seq": seq}
    tx.conn.execute(fact_table.insert(), row)
    by = {made: len(chunk.partitions) for made, chunk in zip(names, chunks, strict=True)}
    seq = append_entry(tx, actor, "chunks.added", run_id, {"chunks": [], "by": by, "origin": name}).seq
    rows = [
        {
            "run_id": run_id, "chunk_id": made, "position": (last or 0) + 1,
            "partitions": to_json_text(list(chunk.partitions)), "rows": chunk.rows, "bytes": chunk.bytes,
            "state": ChunkState.PENDING.value, "fence": 0, "tries": 0, "wave": waves[chunk.partitions[0]],
            "origin": name, "audit_seq": seq,
        }
        for made, chunk in zip(names, chunks, strict=True)
    ]  # fmt: skip
    tx.conn.execute(chunk_table.insert(), rows)
    abandon_candidates(tx, run_id, actor, name, {one for chunk in chunks for one in chunk.partitions})
    body = {name.partition(".")[0]: value["n"]}
    if run.state in _STAYS:
        append_entry(tx, actor, action, run_id, body)
        return find_run(tx.conn, run_id)
    return move_run(tx, run, RunState.RUNNING, actor, action, body)


def _find_waves_of(
    tx: Tx, run: RunRecord, chunks: Sequence[Chunk], action: str, states: Collection[WaveState]
) -> Mapping[str, int]:
    """The wave of each partition; refuses unless all their waves are computed and nothing of them is published."""
    waves = find_waves(tx.conn, run)
    names = {one for chunk in chunks for one in chunk.partitions}
    found = [wave for wave in waves if not names.isdisjoint(wave.partitions)]
    wrong = [wave for wave in found if wave.state not in states]
    if not wrong and run.state not in FINAL:
        return {name: wave.n for wave in found for name in wave.partitions}
    state = wrong[0].state.value if wrong else run.state.value
    error = StateRefused(
        f"{action} of {run.run_id} was refused; expected {_list_states(states)} partitions, found {state}",
        state="nothing was changed",
        run_id=run.run_id,
        found=state,
    )
    raise Refusal(error, run_id=run.run_id, action=action, body={"found": state})


def _list_states(states: Collection[WaveState]) -> str:
    *first, last = sorted(state.value.replace("_", " ") for state in states)
    return f"{', '.join(first)} or {last}"
