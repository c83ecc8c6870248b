"""Facts of a run: what was found out once, by whichever worker came first, and holds for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from errata.ledger.audit import append
from errata.ledger.database import Tx
from errata.ledger.schema import fact as fact_table
from errata.ledger.store import Store, find_run, json_text
from errata.model.audit import Actor

__all__ = ["Facts", "has_fact"]


class Facts(Store):
    """Written once, never changed."""

    def record_fact(
        self, run_id: str, name: str, value: Mapping[str, Any], actor: Actor
    ) -> tuple[Mapping[str, Any], bool]:
        """Keep a fact; whoever comes second gets the first one's and True."""

        def work(tx: Tx) -> tuple[Mapping[str, Any], bool]:
            known = _facts(tx.conn, find_run(tx.conn, run_id).run_id)
            if name in known:
                return known[name], True
            seq = append(tx, actor, f"fact.{name}", run_id, value).seq
            row = {"run_id": run_id, "name": name, "value": json_text(value), "at": tx.at, "audit_seq": seq}
            tx.conn.execute(fact_table.insert(), row)
            return value, False

        return self._write(actor, work)

    def facts(self, run_id: str) -> dict[str, Mapping[str, Any]]:
        """Every fact of a run, by name."""
        return self._read(lambda conn: _facts(conn, run_id))


def _facts(conn: Connection, run_id: str) -> dict[str, Mapping[str, Any]]:
    rows = conn.execute(select(fact_table.c.name, fact_table.c.value).where(fact_table.c.run_id == run_id))
    return {row.name: json.loads(row.value) for row in rows}


def has_fact(conn: Connection, run_id: str, name: str) -> bool:
    """Whether this was found out."""
    where = (fact_table.c.run_id == run_id) & (fact_table.c.name == name)
    return conn.execute(select(fact_table.c.name).where(where)).first() is not None
