"""The independent checker of holds: reads the ledger's tables, and never product code.

I15 a hold has the state of its last audit entry; a consumer has one at a time; it is acknowledged while it lasts; from
    the first hold of a run for readers on, every intent of the run comes while one is acknowledged that covers its
    partitions, and for a campaign's first intent one of each of its tables; what is settled leaves none behind
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["hold_violations"]

_STATES = {"opened": "open", "skipped": None}  # None: as it was


@dataclass
class _Hold:
    """A hold as the entries tell it."""

    body: dict[str, Any]
    run_id: str
    state: str = "open"
    seq: int = 0

    def covers(self, table: str, partitions: list[str], at: str) -> bool:
        """Whether it is acknowledged, lasts at this time, and has these partitions."""
        lasts = datetime.fromisoformat(at).timestamp() * 1000 < self.body["until"]
        mine = self.body["table"] == table and set(partitions) <= set(self.body["partitions"])
        return self.state == "acknowledged" and lasts and mine


def hold_violations(db: sqlite3.Connection) -> list[str]:
    """What is wrong with holds; rows are read by name."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'hold'").fetchone():
        return []
    found, holds, settled = list[str](), dict[str, _Hold](), dict[str, str]()
    for row in db.execute("SELECT seq, at, run_id, action, body FROM audit ORDER BY seq"):
        kind, _, what = row["action"].partition(".")
        body = json.loads(row["body"])
        if kind == "hold":
            found += _follow(holds, row, what, body)
        elif kind in ("publish", "rollback") and what == "intended":
            found += _check_intent(holds, row, body)
        elif kind in ("publish", "rollback") and what in ("committed", "abandoned"):
            left = [name for name, one in holds.items() if _is_readers(one, row["run_id"]) and _stands(one)]
            settled |= dict.fromkeys(left, body["publication"])  # they end in the same transaction
    found += [f"I15 {name} outlives {publication}" for name, publication in settled.items() if _stands(holds[name])]
    rows = {row["hold_id"]: (row["state"], row["audit_seq"]) for row in db.execute("SELECT * FROM hold")}
    told = {name: (one.state, one.seq) for name, one in holds.items()}
    return found + [
        f"I15 {name} is {rows.get(name)}, the audit says {told.get(name)}"
        for name in sorted({*rows, *told})
        if rows.get(name) != told.get(name)
    ]


def _follow(holds: dict[str, _Hold], row: sqlite3.Row, what: str, body: dict[str, Any]) -> list[str]:
    name, found = body["hold"], list[str]()
    if what == "opened":
        rivals = [one for one in holds.values() if one.body["consumer"] == body["consumer"] and _stands(one)]
        if body["consumer"] and rivals:
            found.append(f"I15 {name} is opened while {body['consumer']} is held by {rivals[0].run_id}")
        holds[name] = _Hold(body, row["run_id"])
    one = holds[name]
    if what == "acknowledged":
        is_late = datetime.fromisoformat(row["at"]).timestamp() * 1000 >= one.body["until"]
        if one.state != "open" or is_late:
            found.append(f"I15 {name} is acknowledged, and was {one.state}{' and over' if is_late else ''}")
    state = _STATES.get(what, what)
    one.state, one.seq = state or one.state, row["seq"]
    return found


def _check_intent(holds: dict[str, _Hold], row: sqlite3.Row, body: dict[str, Any]) -> list[str]:
    if not any(_is_readers(one, row["run_id"]) for one in holds.values()):
        return []  # there was no ready table then, or it was found on the table
    mine = [one for one in holds.values() if _is_readers(one, row["run_id"])]
    found = []
    if not any(one.covers(body["table"], body["partitions"], row["at"]) for one in mine):
        found.append(f"I15 {body['publication']} is intended while readers are not held")
    for name in ((body.get("release") or {}).get("set") or {}).get("holds", ()):
        one = holds[name]
        if not one.covers(one.body["table"], [], row["at"]):
            found.append(f"I15 {body['publication']} is intended while {name} does not hold readers of its campaign")
    return found


def _is_readers(one: _Hold, run_id: str) -> bool:
    return one.run_id == run_id and one.body["consumer"] == ""


def _stands(one: _Hold) -> bool:
    return one.state in ("open", "acknowledged")
