"""Run notes (table ``fact``): findings recorded once, by the first worker, and valid for all workers of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from errata.ledger.audit.chain import append_entry
from errata.ledger.db.database import Tx
from errata.ledger.schema.definition import fact as fact_table
from errata.ledger.store.base import Store, find_run, to_json_text
from errata.model.audit import Actor


class RunFacts(Store):
    """Run notes by name; written once, never changed."""

    def record(self, run_id: str, name: str, value: Mapping[str, Any], actor: Actor) -> tuple[Mapping[str, Any], bool]:
        """Record a run note; if the name is taken, returns the recorded value and True."""

        def work(tx: Tx) -> tuple[Mapping[str, Any], bool]:
            known = load_facts(tx.conn, find_run(tx.conn, run_id).run_id)
            if name in known:
                return known[name], True
            seq = append_entry(tx, actor, f"fact.{name}", run_id, value).seq
            row = {"run_id": run_id, "name": name, "value": to_json_text(value), "at": tx.at, "audit_seq": seq}
            tx.conn.execute(fact_table.insert(), row)
            return value, False

        return self._write(actor, work)

    def list(self, run_id: str) -> dict[str, Mapping[str, Any]]:
        """All notes of a run, by name."""
        return self._read(lambda conn: load_facts(conn, run_id))


def load_facts(conn: Connection, run_id: str) -> dict[str, Mapping[str, Any]]:
    """All notes of a run, by name."""
    rows = conn.execute(select(fact_table.c.name, fact_table.c.value).where(fact_table.c.run_id == run_id))
    return {row.name: json.loads(row.value) for row in rows}


def has_fact(conn: Connection, run_id: str, name: str) -> bool:
    """Whether the run has a note of this name."""
    where = (fact_table.c.run_id == run_id) & (fact_table.c.name == name)
    return conn.execute(select(fact_table.c.name).where(where)).first() is not None
