"""A simulated database with a log, and a connector that tells its changes as Debezium does, with all that goes wrong.

Transactions overlap and commit in another order than they wrote, keys change, tables are truncated, columns are added,
the connector starts again and repeats itself, or forgets where it was and reads the whole table again.
"""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Message", "Row", "SimulatedDatabase"]

START_US = 1_767_225_600_000_000
"""When the first record of the log was written."""
TOPIC, ENDS = "cdc.public.orders", "cdc.transaction"

Row = dict[str, str]


@dataclass(frozen=True)
class Message:
    """A record of a topic; offsets are per partition."""

    topic: str
    partition: int
    offset: int
    value: str | None
    key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as a line of a recording."""
        return {**vars(self), "headers": "[]", "timestamp": 1_767_225_600_000 + self.offset}


@dataclass
class _Transaction:
    number: int
    changes: list[dict[str, Any]] = field(default_factory=list)
    pending: dict[str, Row | None] = field(default_factory=dict)


@dataclass
class SimulatedDatabase:
    """One table, its log, and what a connector put into two topics."""

    seed: int
    rows: dict[str, Row] = field(default_factory=dict)
    events: list[Message] = field(default_factory=list)  # of the topic of the table; a tombstone has no value
    transactions: list[Message] = field(default_factory=list)  # of the transaction topic
    states: dict[int, dict[str, Row]] = field(default_factory=dict)  # by commit position
    lost: list[tuple[int, int]] = field(default_factory=list)  # spans of the log that the connector never told
    _position: int = 1_000
    _next: int = 700
    _keys: int = 0
    _column: bool = False
    _is_down: bool = False
    _known: int | None = None  # the last commit that the connector knows; None: it started again

    @classmethod
    def run(cls, seed: int, steps: int = 60) -> SimulatedDatabase:
        """A history of the table, decided by the seed."""
        made, choose = cls(seed), random.Random(seed)  # noqa: S311 - repeatable, no secret
        for _ in range(4):
            made._insert_row(choose)
        made._snapshot()
        open_now: list[_Transaction] = []
        for _ in range(steps):
            made._step(choose, open_now)
        for one in open_now:
            made._finish_one(one)
        last = _Transaction(made._take_number())  # so that every position before has a commit after it
        made._change(choose, last)
        made._finish_one(last)
        return made

    def _step(self, choose: random.Random, open_now: list[_Transaction]) -> None:
        act = choose.random()
        if act < 0.15 and len(open_now) < 3:
            open_now.append(_Transaction(self._take_number()))
        elif act < 0.6:
            if not open_now:
                open_now.append(_Transaction(self._take_number()))
            self._change(choose, choose.choice(open_now), {key for one in open_now for key in one.pending})
        elif act < 0.85 and open_now:
            one = open_now.pop(choose.randrange(len(open_now)))
            if choose.random() < 0.9:
                self._finish_one(one)
        elif act < 0.88 and not open_now:
            self._truncate(choose)
        elif act < 0.91:
            self._column = True
        elif act < 0.96:
            self._repeat(choose)
        elif act < 0.98 and not open_now:
            self._forget(choose)

    def _take_number(self) -> int:
        self._next += 1
        return self._next

    def _advance(self, choose: random.Random | None = None) -> int:
        self._position += choose.randint(8, 90) if choose else 24
        return self._position

    def _build_row(self, key: str, choose: random.Random) -> Row:
        row = {"id": key, "status": f"s{choose.randint(0, 999)}"}
        return {**row, "note": f"n{choose.randint(0, 9)}"} if self._column else row

    def _insert_row(self, choose: random.Random) -> None:
        self._keys += 1
        self.rows[str(self._keys)] = self._build_row(str(self._keys), choose)

    def _change(self, choose: random.Random, one: _Transaction, locked: set[str] | None = None) -> None:
        seen = {**self.rows, **one.pending}
        free = [
            key for key, row in seen.items() if row is not None and (key in one.pending or key not in (locked or ()))
        ]
        act, lsn = choose.random(), self._advance(choose)
        if act < 0.35 or not free:
            self._keys += 1
            key = str(self._keys)
            one.pending[key] = self._build_row(key, choose)
            one.changes.append({"op": "c", "before": None, "after": one.pending[key], "lsn": lsn})
            return
        key = choose.choice(free)
        before = seen[key]
        if act < 0.75:
            one.pending[key] = self._build_row(key, choose)
            one.changes.append({"op": "u", "before": before, "after": one.pending[key], "lsn": lsn})
            return
        one.pending[key] = None
        one.changes.append({"op": "d", "before": before, "after": None, "lsn": lsn})
        if act > 0.9:  # the key of the row changes: two events at one position
            self._keys += 1
            made = self._build_row(str(self._keys), choose)
            one.pending[str(self._keys)] = made
            one.changes.append({"op": "c", "before": None, "after": made, "lsn": lsn})

    def _truncate(self, choose: random.Random) -> None:
        one = _Transaction(self._take_number())
        self._change(choose, one)
        one.changes.append({"op": "t", "before": None, "after": None, "lsn": self._advance(choose)})
        one.pending = dict.fromkeys({*self.rows, *one.pending})
        self._change(choose, one)
        self._finish_one(one)

    def _finish_one(self, one: _Transaction) -> None:
        if not one.changes:
            return
        at = self._advance()
        for key, row in one.pending.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row
        self.states[at] = dict(self.rows)
        if self._is_down:
            return
        self._send_mark("BEGIN", one.number, one.changes[0]["lsn"])
        for n, change in enumerate(one.changes):
            self._send(one.number, change, order=n + 1, commit=at)
        self._send_mark("END", one.number, at, len(one.changes))
        self._known = at

    def _send_mark(self, status: str, number: int, position: int, count: int | None = None) -> None:
        told = {"status": status, "id": f"{number}:{position}", "ts_ms": (START_US + position) // 1000}
        if count is not None:
            told |= {
                "event_count": count,
                "data_collections": [{"data_collection": "public.orders", "event_count": count}],
            }
        self.transactions.append(Message(ENDS, 0, len(self.transactions), json.dumps(told)))

    def _send(
        self, number: int, change: dict[str, Any], *, snapshot: str = "false", order: int = 0, commit: int = 0
    ) -> None:
        lsn = change["lsn"]
        source = {
            "snapshot": snapshot, "txId": number, "lsn": lsn, "name": "cdc", "db": "shop", "schema": "public",
            "table": "orders", "sequence": json.dumps([self._known and str(self._known), str(lsn)]),
            "ts_us": START_US + (commit or lsn),
        }  # fmt: skip
        told = {name: change[name] for name in ("op", "before", "after")}
        row = change["after"] or change["before"]
        key = json.dumps({"id": row["id"]}) if row else None
        self._append(key, json.dumps({**told, "source": source, "transaction": {"total_order": order}}))
        if change["op"] == "d":
            self._append(key, None)

    def _append(self, key: str | None, value: str | None) -> None:
        partition = zlib.crc32(key.encode()) % 2 if key else 0
        offset = sum(one.partition == partition for one in self.events)
        self.events.append(Message(TOPIC, partition, offset, value, key))

    def _snapshot(self) -> None:
        at, number = self._advance(), self._take_number()
        keys = list(self.rows)
        for n, key in enumerate(keys):
            mark = "first" if n == 0 else "last" if n == len(keys) - 1 else "true"
            self._send(number, {"op": "r", "before": None, "after": self.rows[key], "lsn": at}, snapshot=mark)
        self.states[at] = dict(self.rows)

    def _repeat(self, choose: random.Random) -> None:
        """A connector that was killed sends what it had not noted as sent, in the same order."""
        if len(self.transactions) < 2:
            return
        back = choose.randint(1, min(8, len(self.events)))
        for one in self.events[-back:]:
            self._append(one.key, one.value)
        for one in self.transactions[-2:]:
            self.transactions.append(Message(ENDS, 0, len(self.transactions), one.value))

    def _forget(self, choose: random.Random) -> None:
        """A connector without its offsets reads the table again; what was committed meanwhile is never told."""
        if len(self.rows) < 2:
            return
        start, self._is_down = self._position, True
        for _ in range(choose.randint(1, 3)):
            one = _Transaction(self._take_number())
            self._change(choose, one)
            self._finish_one(one)
        if len(self.rows) < 2:
            for _ in range(2):
                self._insert_row(choose)
        self._is_down, self._known = False, None
        self._snapshot()
        self.lost.append((start, self._position))
