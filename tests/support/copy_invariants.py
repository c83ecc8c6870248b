"""The independent checker of a copy in PostgreSQL: reads tables of the ledger and the warehouse, and no product code.

I16 every key of the copy is there once; a marker is there once for each attempt, is of a publication that landed, of
    a repair, or of a baseline on the audit, and no attempt of a paid item is open; a partition has the rows that its
    last delivery left, and is never lower than what a receipt says nor higher than what is accepted; every receipt has
    the attempts of the warehouse, and its own was done; nothing is left in staging once nothing is owed
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Any

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Sends a query to the database that has the copy."""


def assert_copy_invariants(
    root: Path, ask: Ask, key: Collection[str] = ("day", "account"), foreign: Collection[str] = ()
) -> None:
    """Raise when any invariant does not hold; in ``foreign`` partitions other jobs have written since."""
    with closing(sqlite3.connect(f"file:{root}/.errata/ledger.db?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        problems = copy_violations(db, ask, key, foreign)
    assert not problems, "\n".join(problems)


def copy_violations(db: sqlite3.Connection, ask: Ask, key: Collection[str], foreign: Collection[str]) -> list[str]:
    """What is wrong with the copy shop.sales, in words."""
    columns = ", ".join(key)
    items = db.execute("SELECT * FROM outbox_item WHERE effect = 'copy' AND consumer GLOB '*:shop.sales'").fetchall()
    there = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('shop.sales') AND NOT attisdropped"
    if not set(key) <= {name for (name,) in ask(there)}:
        return [f"I16 {one['key']} is paid, and the copy is not there" for one in items if one["state"] == "paid"]
    repeated = ask(f"SELECT {columns}, count(*) FROM shop.sales GROUP BY {columns} HAVING count(*) > 1")
    found = [f"I16 the copy has {row[:-1]} {row[-1]} times" for row in repeated]
    if not ask("SELECT 1 FROM pg_class WHERE relname = 'errata_markers_sales'"):
        paid = [one for one in items if one["state"] == "paid" and "attempts" in one["result"]]
        return [*found, *(f"I16 {one['key']} is paid without a marker" for one in paid)]
    markers = ask("SELECT publication, attempt, state FROM shop.errata_markers_sales ORDER BY 1, 2")
    found += [*_markers(db, markers, items), *_receipts(db, ask, markers, items), *_partitions(db, ask, foreign)]
    staged = ask("SELECT relname FROM pg_class WHERE relname LIKE 'errata\\_stage%' AND relkind = 'r'")
    if not any(one["state"] in ("owed", "failed") for one in items):
        found += [f"I16 {name} is left, and nothing is owed" for (name,) in staged]
    return found


def _markers(db: sqlite3.Connection, markers: list[tuple[Any, ...]], items: list[sqlite3.Row]) -> list[str]:
    times = Counter((publication, attempt) for publication, attempt, _ in markers)
    found = [f"I16 marker {one} is there {count} times" for one, count in times.items() if count > 1]
    landed = {row[0] for row in db.execute("SELECT pub_id FROM publication WHERE state = 'committed'")}
    query = "SELECT body FROM audit WHERE action = 'copy.baseline'"
    landed |= {json.loads(body)["marker"] for (body,) in db.execute(query)}
    landed |= {one["key"] for one in items if not one["pub_id"]}  # a repair is planned, and publishes nothing
    found += [f"I16 marker {one} is of nothing that landed" for one in markers if one[0] not in landed]
    paid = {_cause(one) for one in items if one["state"] == "paid"} - {
        _cause(one) for one in items if one["state"] != "paid"
    }
    return found + [
        f"I16 {one} is open, and its item is paid" for one in markers if one[2] == "open" and one[0] in paid
    ]


def _cause(item: sqlite3.Row) -> str:
    """What the markers of an item are called after: its publication, or the item itself for a repair."""
    return str(item["pub_id"] or item["key"])


def _receipts(db: sqlite3.Connection, ask: Ask, markers: list[tuple[Any, ...]], items: list[sqlite3.Row]) -> list[str]:
    """What the receipts say is what the warehouse says."""
    query = "SELECT partition, sequence FROM shop.errata_delivered_sales"
    held, found = dict(ask(query)), []
    for item in items:
        result = json.loads(item["result"])
        if item["state"] != "paid" or "contents" not in result:
            continue
        there = {attempt: state for publication, attempt, state in markers if publication == _cause(item)}
        told = dict(map(tuple, result["attempts"]))
        if any(there.get(attempt) != state for attempt, state in told.items()):
            found.append(f"I16 {item['key']} names attempts {told}, the warehouse has {there}")
        if "attempt" in result and there.get(result["attempt"]) != "done":
            found.append(f"I16 {item['key']} was delivered by an attempt that is {there.get(result['attempt'])}")
        (content,) = db.execute("SELECT content FROM part WHERE digest = ?", (result["contents"],)).fetchone()
        for name, one in json.loads(content).items():
            if held.get(name, 0) < one["sequence"]:
                found.append(f"I16 {name} is at {held.get(name)}, {item['key']} had delivered {one['sequence']}")
    return found


def _partitions(db: sqlite3.Connection, ask: Ask, foreign: Collection[str]) -> list[str]:
    """A partition has the rows that were left there, and no more than was accepted."""
    counted = dict(ask("SELECT day::text, count(*) FROM shop.sales GROUP BY 1"))
    newest = dict(db.execute("SELECT partition, max(seq) FROM acceptance GROUP BY partition").fetchall())
    found = []
    for name, sequence, rows in ask("SELECT partition, sequence, row_count FROM shop.errata_delivered_sales"):
        if sequence > newest.get(name, 0):
            found.append(f"I16 {name} is at {sequence}, only {newest.get(name)} is accepted")
        if name not in foreign and counted.get(name, 0) != rows:
            found.append(f"I16 {name} has {counted.get(name, 0)} rows, {rows} were left there")
    return found
