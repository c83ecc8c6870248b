"""Partitions that are computed again because live wrote them: recorded with their chunks, in one transaction.

The chunk that computed such a partition before stays as it is, done for good: it still holds its other partitions. A
partition belongs to the newest chunk that names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select

from errata.ledger.audit import append
from errata.ledger.candidates import abandon_all
from errata.ledger.database import Tx
from errata.ledger.facts import has_fact
from errata.ledger.parts import save_parts
from errata.ledger.records import RunRecord
from errata.ledger.schema import chunk as chunk_table
from errata.ledger.schema import fact as fact_table
from errata.ledger.store import Store, find_run, json_text, move_run, need_state
from errata.model.audit import Actor
from errata.model.manifest import Chunk
from errata.model.run import ChunkState, RunState

__all__ = ["REBASE", "Rebases"]

REBASE = "rebase."
"""The name of such a fact, before its number."""
_FROM = (RunState.STAGED, RunState.VALIDATED)


class Rebases(Store):
    """Runs that go back to work."""

    def record_rebase(
        self, run_id: str, n: int, value: Mapping[str, Any], chunks: Sequence[Chunk], parts: Mapping[str, bytes],
        actor: Actor,
    ) -> RunRecord:  # fmt: skip
        """Keep the fact, add the chunks, give up the candidate, and let workers claim; the same again changes nothing.

        The ids of ``chunks`` are not used: the ledger numbers its chunks.
        """
        name = f"{REBASE}{n}"

        def work(tx: Tx) -> RunRecord:
            run = find_run(tx.conn, run_id)
            if has_fact(tx.conn, run_id, name):
                return run
            need_state(run, _FROM, "run.rebased")
            save_parts(tx, parts.values())
            where = chunk_table.c.run_id == run_id
            number, last = tx.conn.execute(
                select(func.count(), func.max(chunk_table.c.position)).select_from(chunk_table).where(where)
            ).one()
            names = [f"c{number + at:03d}" for at in range(1, len(chunks) + 1)]
            told = {**value, "n": n, "chunks": names}
            seq = append(tx, actor, f"fact.{name}", run_id, told).seq
            row = {"run_id": run_id, "name": name, "value": json_text(told), "at": tx.at, "audit_seq": seq}
            tx.conn.execute(fact_table.insert(), row)
            by = {made: len(chunk.partitions) for made, chunk in zip(names, chunks, strict=True)}
            seq = append(tx, actor, "chunks.added", run_id, {"chunks": [], "by": by, "origin": name}).seq
            rows = [
                {
                    "run_id": run_id, "chunk_id": made, "position": (last or 0) + 1,
                    "partitions": json_text(list(chunk.partitions)), "rows": chunk.rows, "bytes": chunk.bytes,
                    "state": ChunkState.PENDING.value, "fence": 0, "tries": 0, "wave": 1, "origin": name,
                    "audit_seq": seq,
                }
                for made, chunk in zip(names, chunks, strict=True)
            ]  # fmt: skip
            tx.conn.execute(chunk_table.insert(), rows)
            abandon_all(tx, run_id, actor, name)
            return move_run(tx, run, RunState.RUNNING, actor, "run.rebased", {"rebase": n})

        return self._write(actor, work)
