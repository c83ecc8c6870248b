"""The independent checker of the outbox: reads the ledger's tables, and never product code.

I14 an item is conditional exactly while its publication is open, void exactly if it did not land; every item that the
    audit names is there in the state of its last entry; a publication that landed has the items that its plan makes it
    owe; places in the order are given once; ordered items that share a partition end in their order
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from itertools import combinations

_SETTLED = {"intended": {"conditional"}, "abandoned": {"void"}}
_BESIDE = ("corrections", "version", "swap_view")
_ORDERED = ("corrections", "watermark", "checkpoint")


def outbox_violations(db: sqlite3.Connection) -> list[str]:
    """What is wrong with what is owed; rows are read by name."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox_item'").fetchone():
        return []
    items = db.execute("SELECT * FROM outbox_item ORDER BY item_id").fetchall()
    return [*_settlement(db, items), *_record(db, items), *_owed_by_plans(db, items), *_order(items)]


def _settlement(db: sqlite3.Connection, items: list[sqlite3.Row]) -> list[str]:
    outcomes = dict(db.execute("SELECT pub_id, state FROM publication").fetchall())
    found = []
    for item in items:
        state, outcome = item["state"], outcomes.get(item["pub_id"], "committed")
        wanted = _SETTLED.get(outcome, {"owed", "paid", "failed", "waived"})
        if state not in wanted:
            found.append(f"I14 {item['key']} is {state}, its publication is {outcome}")
        if (item["seq"] is None) != (state in ("conditional", "void")):
            found.append(f"I14 {item['key']} is {state} with place {item['seq']}")
        if item["owner"] and state != "owed":
            found.append(f"I14 {item['key']} is {state} and someone is paying it")
    places = Counter(item["seq"] for item in items if item["seq"] is not None)
    return found + [f"I14 place {place} is given {count} times" for place, count in places.items() if count > 1]


def _record(db: sqlite3.Connection, items: list[sqlite3.Row]) -> list[str]:
    last: dict[int, tuple[str, int]] = {}
    for row in db.execute("SELECT seq, action, body FROM audit WHERE action LIKE 'outbox.%' ORDER BY seq"):
        state = {"retried": "owed"}.get(row["action"][7:], row["action"][7:])
        last |= {one["id"]: (state, row["seq"]) for one in json.loads(row["body"])["items"]}
    there = {item["item_id"]: (item["state"], item["audit_seq"]) for item in items}
    return [
        f"I14 item {item_id} is {there.get(item_id)}, the audit says {last.get(item_id)}"
        for item_id in sorted({*there, *last})
        if there.get(item_id) != last.get(item_id)
    ]


def _owed_by_plans(db: sqlite3.Connection, items: list[sqlite3.Row]) -> list[str]:
    """A publication that landed has the items of its plan, unless an earlier version noted them elsewhere."""
    found = []
    query = (
        "SELECT pub_id, run_id, content FROM publication JOIN run USING (run_id) JOIN manifest ON digest ="
        " manifest_digest WHERE publication.state = 'committed'"
    )
    for row in db.execute(query).fetchall():
        publish = json.loads(row["content"]).get("publish") or {}
        wanted = {"view"} if publish.get("view") else set()
        if publish.get("corrections") and publish.get("mode") not in _BESIDE:
            wanted.add("corrections")
        noted = db.execute(
            "SELECT 1 FROM fact WHERE run_id = ? AND name = ?", (row["run_id"], f"owed.{row['pub_id']}")
        ).fetchone()
        have = {item["effect"] for item in items if item["pub_id"] == row["pub_id"]}
        found += [f"I14 {row['pub_id']} landed and does not owe {name}" for name in wanted - have if not noted]
    return found


def _order(items: list[sqlite3.Row]) -> list[str]:
    """Of ordered items that share a partition the older one is paid first; of messages to a consumer always."""
    found = []
    paid = [item for item in items if item["state"] == "paid" and item["effect"] in (*_ORDERED, "tell")]
    by_queue: dict[str, list[sqlite3.Row]] = {}
    for item in sorted(paid, key=lambda item: item["seq"]):
        by_queue.setdefault(item["queue"], []).append(item)
    for queue in by_queue.values():
        for older, newer in combinations(queue, 2):
            one, other = (set(json.loads(item["partitions"])) for item in (older, newer))
            meet = older["effect"] == "tell" or not one or not other or one & other
            if meet and older["audit_seq"] > newer["audit_seq"]:
                found.append(f"I14 {newer['key']} was paid before {older['key']}")
    return found
