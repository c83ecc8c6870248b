"""What must hold after a simulated history: reads the ledger's database and the catalog, never product code."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from faults.simulated_table import EMPTIED
from support.invariants import ledger_violations

if TYPE_CHECKING:
    from faults.simulated_table import State
    from faults.simulation import World


_STARTED = "SELECT run_id, chunk_id, fence, started_at FROM attempt"


def violations(world: World, db: sqlite3.Connection) -> list[str]:
    """What is wrong, in words."""
    db.row_factory = sqlite3.Row
    return [
        *ledger_violations(db),
        *_last_line(db),
        *_leases(db),
        *_adopted(world, db),
        *_carried(world, db),
        *_believed(world, db),
        *_contents(world, db),
        *_deleted(world, db),
        *_kept(world),
        *_accepted(world, db),
        *_at_rest(db),
        *_promised(world),
    ]


def _promised(world: World) -> list[str]:
    """I15: nothing lands while the ready table says that its partitions may be read.

    A publication that an older ledger knows nothing of cannot be kept from landing, which is why heads are exported.
    """
    broken = world.catalog.ready.broken if world.is_held else {}
    return [f"I15 {pub} landed although {told}" for pub, told in broken.items() if pub not in world.lost]


def _last_line(db: sqlite3.Connection) -> list[str]:
    """The database's own rules are the last line: nothing that the product does may get as far as that."""
    rows = db.execute("SELECT seq, run_id, body FROM audit WHERE action = 'refused'").fetchall()
    ruled = [(row["seq"], json.loads(row["body"]).get("rule")) for row in rows]
    return [f"I3 entry {seq}: only a trigger refused it: {rule}" for seq, rule in ruled if rule]


def _leases(db: sqlite3.Connection) -> list[str]:
    """I3, and leases by the ledger's time: nobody is taken over before."""
    found = []
    for row in db.execute("SELECT * FROM attempt WHERE error_code = 'lease-expired'"):
        ended = datetime.fromisoformat(row["ended_at"]).timestamp() * 1000
        if ended + 1 < row["lease_until"]:
            found.append(
                f"I3 {row['run_id']}/{row['chunk_id']}/{row['fence']} was taken over before its lease was over"
            )
    return found


def _adopted(world: World, db: sqlite3.Connection) -> list[str]:
    """I1, I3: what a chunk points at was written by the attempt of its fence."""
    by_snapshot = {s.id: s.summary.get("errata.attempt") for s in world.catalog.snapshots.values()}
    done = db.execute("SELECT * FROM chunk WHERE state = 'done'").fetchall()
    started = {(row[0], row[1], row[2]): row[3] for row in db.execute(_STARTED)}
    keys = {row["snapshot_id"]: (row["run_id"], row["chunk_id"], row["fence"]) for row in done}
    names = {snapshot: "/".join(map(str, (*key, started[key]))) for snapshot, key in keys.items()}
    return [
        f"I3 {name} points at the output of {by_snapshot.get(snapshot)}"
        for snapshot, name in names.items()
        if by_snapshot.get(snapshot) != name
    ]


def _carried(world: World, db: sqlite3.Connection) -> list[str]:
    """I6, I7: a publication is on one commit or on none, and the ledger says which."""
    on = Counter(s.summary["errata.publication"] for s in world.catalog.landed if s.summary)
    at = {s.summary["errata.publication"]: s.id for s in world.catalog.landed if s.summary}
    found = [f"I6 {pub} is on {n} commits" for pub, n in on.items() if n > 1]
    known = {row["pub_id"]: row for row in db.execute("SELECT * FROM publication")}
    found += [
        f"I7 the table carries {pub}, which the ledger does not know" for pub in on if pub not in {*known, *world.lost}
    ]
    for pub, row in known.items():
        expected = ("committed", at[pub]) if pub in at else ("abandoned", None)
        if (row["state"], row["result_snapshot_id"]) != expected:
            found.append(f"I7 the ledger says {row['state']} {row['result_snapshot_id']} of {pub}, found {expected}")
    return found


def _believed(world: World, db: sqlite3.Connection) -> list[str]:
    """I7: a commit that was there before its intent, which happens when a ledger was lost, is recorded only if none of
    ours has touched its partitions since."""
    at = {s.summary["errata.publication"]: n for n, s in enumerate(world.catalog.landed) if s.summary}
    scopes = _scopes(world, db)
    return [
        f"I7 {pub} was recorded as committed, but {later.summary['errata.publication']} had come after it"
        for (pub,) in db.execute("SELECT pub_id FROM publication WHERE state = 'committed'")
        for later in world.catalog.landed[at[pub] + 1 : world.intended.get(pub, 0)]
        if set(scopes[pub]).intersection(scopes.get(later.summary.get("errata.publication", ""), ()))
    ]


def _contents(world: World, db: sqlite3.Connection) -> list[str]:
    """I4, I5, I9, I11: each commit of ours did what was planned, wholly, and lost nobody's write."""
    found: list[str] = []
    by_id = {s.id: s for s in world.catalog.landed}
    before_publication: dict[tuple[str, str], list[frozenset[str]]] = {}
    digests = dict(db.execute("SELECT run_id, manifest_digest FROM run").fetchall())
    scopes = _scopes(world, db)
    for made in world.catalog.landed:
        if not made.summary:
            continue
        pub, run_id, before = made.summary["errata.publication"], made.summary["errata.run"], by_id[made.parent or ""]
        if made.summary["errata.manifest"] != digests[run_id]:
            found.append(f"I9 {pub} was published under another digest")
        changed = {f.partition for path, f in {**before.files, **made.files}.items()
                   if (path in before.files) != (path in made.files)}  # fmt: skip
        if not changed <= set(scopes.get(pub, ())):
            found.append(f"I5 {pub} changed files of {sorted(changed - set(scopes.get(pub, ())))}")
        for name in scopes.get(pub, ()):
            new = frozenset({f"{run_id} {name}"}) if (run_id, name) != EMPTIED else frozenset()
            stack = before_publication.setdefault((run_id, name), [])
            if made.summary["errata.kind"] == "publish":
                stack.append(before.rows(name))
                expected = (world.plans[run_id].rows[name], new)
            else:
                expected = (new, stack.pop() if stack else frozenset())
            found += _rows(pub, name, (before.rows(name), made.rows(name)), expected)
            found += _twice(made, name, pub)
    return found


def _deleted(world: World, db: sqlite3.Connection) -> list[str]:
    """I4: no commit of ours goes over a delete file that came after the state it was made for."""
    scopes, found = _scopes(world, db), list[str]()
    ages = {one.id: one.age for one in world.catalog.landed}
    made_on: dict[tuple[str, str], list[int]] = {}  # run and partition → ages of the states it was published on
    for made in world.catalog.landed:
        run_id, pub = made.summary.get("errata.run", ""), made.summary.get("errata.publication", "")
        for name in scopes.get(pub, ()):
            if made.summary["errata.kind"] == "publish":
                since = ages[world.plans[run_id].base]
                made_on.setdefault((run_id, name), []).append(made.age)
            else:
                since = made_on[run_id, name].pop()
            later = [one.row for one in made.deletes if one.partition == name and one.age > since]
            found += [f"I4 {pub} {name}: goes over deletes of {later}"] if later else []
    return found


def _kept(world: World) -> list[str]:
    """I12: when a commit of ours landed, a branch held what it put in, another exactly what it took out, and the guard
    was there; an expiry takes what nothing holds."""
    found, by_id = list[str](), {s.id: s for s in world.catalog.landed}
    for made in (one for one in world.catalog.landed if one.summary):
        pub, run_id, before = made.summary["errata.publication"], made.summary["errata.run"], by_id[made.parent or ""]
        stood, removed = world.catalog.stood[pub], before.files.keys() - made.files.keys()
        # staged output is on no branch of the commit's; the tags on main are not about files
        of = ("_undo", "_rows1") if made.summary["errata.kind"] == "rollback" else ()
        holders = [files for ref, files in stood.items() if ref.startswith(f"errata_{run_id}_c") or ref.endswith(of)]
        if not made.files.keys() - before.files.keys() <= frozenset().union(*holders):
            found.append(f"I12 {pub} put in files that no branch held")
        if stood.get(f"errata_{pub}_undo") != removed:
            found.append(f"I12 {pub} took out {sorted(removed)}, kept are {stood.get(f'errata_{pub}_undo')}")
        if "errata_guard" not in stood:
            found.append(f"I12 {pub} landed without a guard")
    return found


def _rows(
    pub: str, name: str, seen: tuple[frozenset[str], ...], expected: tuple[frozenset[str], ...]
) -> list[str]:  # fmt: skip
    if seen == expected:
        return []
    told = [[sorted(rows) for rows in pair] for pair in (seen, expected)]
    return [f"I4 {pub} {name}: before and after {told[0]}, expected {told[1]}"]


def _twice(made: State, name: str, pub: str) -> list[str]:
    rows = [row for f in made.files.values() if f.partition == name for row in f.rows]
    return [f"I4 {pub} {name}: rows twice"] if len(rows) != len(set(rows)) else []


def _accepted(world: World, db: sqlite3.Connection) -> list[str]:
    """What the ledger calls the truth of a partition is what stands on top of our commits; of partitions in which
    something was lost with a ledger, and not found again, it cannot know."""
    scopes, known = _scopes(world, db), {row["pub_id"] for row in db.execute("SELECT pub_id FROM publication")}
    stacks: dict[str, list[str]] = {}
    unknown: set[str] = set()
    for made in world.catalog.landed:
        pub = made.summary.get("errata.publication", "")
        for name in scopes.get(pub, ()):
            stack = stacks.setdefault(name, [])
            unknown |= {name} if pub not in known else set()
            if made.summary["errata.kind"] == "publish":
                stack.append(made.summary["errata.run"])
            else:
                del stack[-1:]
    query = "SELECT partition, run_id FROM acceptance WHERE seq IN (SELECT max(seq) FROM acceptance GROUP BY partition)"
    says = {row["partition"]: row["run_id"] for row in db.execute(query)}
    return [
        f"I7 the truth of {name} is {says.get(name)}, the table says {stack[-1:]}"
        for name, stack in stacks.items()
        if name not in unknown and says.get(name) != (stack[-1] if stack else None)
    ]


def _scopes(world: World, db: sqlite3.Connection) -> dict[str, list[str]]:
    """Publication → its partitions, by the ledger and by those that it took the place of."""
    rows = db.execute("SELECT * FROM publication")
    return world.lost | {row["pub_id"]: json.loads(row["partitions"]) for row in rows}


def _at_rest(db: sqlite3.Connection) -> list[str]:
    """I12: no chunk in flight, no open intent, no lock."""
    counts = {
        "chunks in flight": "SELECT count(*) FROM chunk WHERE state = 'running'",
        "open intents": "SELECT count(*) FROM publication WHERE state = 'intended'",
        "locks": "SELECT count(*) FROM scope_lock",
    }
    return [f"I12 {n} {what} are left" for what, sql in counts.items() if (n := db.execute(sql).fetchone()[0])]
