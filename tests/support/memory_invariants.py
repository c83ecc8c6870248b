"""The independent checker for lakes in memory: reads the ledger's database and table metadata, and no product code.

The names are those of :mod:`support.invariants`; what is about files on disk has no counterpart here.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from errata.testing import Lake
from support.invariants import WIDTHS, ledger_violations

__all__ = ["assert_memory_invariants", "memory_violations"]


def assert_memory_invariants(root: Path, lake: Lake) -> None:
    """Raise when any invariant does not hold."""
    problems = memory_violations(root, lake)
    assert not problems, "\n".join(problems)


def memory_violations(root: Path, lake: Lake) -> list[str]:
    """What is wrong, in words."""
    with closing(sqlite3.connect(f"file:{root}/.errata/ledger.db?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        found = ledger_violations(db)
        for (name,) in db.execute("SELECT DISTINCT table_name FROM run").fetchall():
            metadata = lake.tables[name].metadata
            found += [*_staged(db, metadata, name), *_publications(db, metadata, name)]
            found += [
                f"I12 ref {ref} points at a snapshot that is gone"
                for ref, held in metadata.refs.items()
                if held.snapshot_id not in metadata.snapshots
            ]
    return found


def _staged(db: sqlite3.Connection, metadata: Any, name: str) -> list[str]:
    """I4: an adopted snapshot belongs to its attempt and added exactly the rows and files that the ledger says."""
    found = []
    query = "SELECT chunk.* FROM chunk JOIN run USING (run_id) WHERE table_name=? AND chunk.state='done'"
    for chunk in db.execute(query, (name,)):
        snapshot = metadata.snapshots.get(chunk["snapshot_id"])
        if snapshot is None:
            continue  # swept after the run was over, or staged on a shadow
        keys = (chunk["run_id"], chunk["chunk_id"], chunk["fence"])
        query = "SELECT started_at FROM attempt WHERE run_id=? AND chunk_id=? AND fence=?"
        attempt = "/".join(map(str, (*keys, *db.execute(query, keys).fetchone())))
        if snapshot.summary.get("errata.attempt") != attempt:
            found.append(f"I4 adopted snapshot {snapshot.snapshot_id} does not belong to {attempt}")
        added = [file for file in snapshot.files.values() if file.snapshot_id == snapshot.snapshot_id]
        if (sum(len(file.rows) for file in added), len(added)) != (chunk["output_rows"], chunk["output_files"]):
            found.append(f"I4 {attempt} added {len(added)} files, the ledger says {chunk['output_files']}")
    return found


def _publications(db: sqlite3.Connection, metadata: Any, name: str) -> list[str]:
    """I5, I6, I7, I9: a publication is on one commit or none, as the ledger says, and touched only its partitions."""
    carried = Counter(one.summary.get("errata.publication") for one in metadata.snapshots.values())
    found = [f"I6 {pub} is on {count} snapshots" for pub, count in carried.items() if pub and count > 1]
    at = {one.summary.get("errata.publication"): one for one in metadata.snapshots.values()}
    known = {row["pub_id"]: row for row in db.execute("SELECT * FROM publication WHERE table_name=?", (name,))}
    found += [f"I7 the table carries {pub}, which the ledger does not know" for pub in at if pub and pub not in known]
    for pub, row in known.items():
        snapshot = at.get(pub)
        if snapshot is None or row["state"] == "intended":
            continue
        if row["state"] != "committed":
            found.append(f"I7 the ledger says {row['state']} of {pub}, the table carries it")
        (digest,) = db.execute("SELECT manifest_digest FROM run WHERE run_id=?", (row["run_id"],)).fetchone()
        if snapshot.summary.get("errata.manifest") != digest or snapshot.summary.get("errata.run") != row["run_id"]:
            found.append(f"I9 {pub} was published under another digest or run")
        parent = metadata.snapshots.get(snapshot.parent_id or "")
        (content,) = db.execute("SELECT content FROM manifest WHERE digest=?", (digest,)).fetchone()
        target, scope = json.loads(content)["target"], set(json.loads(row["partitions"]))
        if parent is None:
            continue
        if target.get("mode") == "rewrite":
            old, new = (_rows_outside(metadata, one, target, scope) for one in (parent, snapshot))
            found += [f"I5 {pub} changed rows outside its scope: {old - new} became {new - old}"] if old != new else []
            continue
        both = {**parent.files, **snapshot.files}
        moved = {file.partition for path, file in both.items() if (path in parent.files) != (path in snapshot.files)}
        outside = moved - scope - {None}
        found += [f"I5 {pub} changed files of {sorted(outside)}, outside its scope"] if outside else []
    return found


def _rows_outside(metadata: Any, snapshot: Any, target: dict[str, Any], scope: set[str]) -> Counter[str]:
    """Every row that is in none of the partitions, and how often it is there."""
    assert not snapshot.deletes, "rows that delete files hide are not told apart here"
    source = next(one.field_id for one in metadata.schemas[-1].fields if one.name == target["column"])
    rows = [row for file in snapshot.files.values() for row in file.rows]
    return Counter(
        repr(sorted(row.items())) for row in rows if str(row[source])[: WIDTHS[target["grain"]]] not in scope
    )
