"""The independent checker: reads the ledger database, table metadata and files, and never product code.

I0  every partition of a run is in exactly one chunk that others did not replace; where live won, one later more. A
    reconciliation or a repair of copies computes nothing and has no chunk
I1  at most one adopted attempt per chunk, and a chunk that is done has one
I2  fences of a chunk are 1, 2, 3 …, and the chunk carries the last
I4  an adopted snapshot added exactly the rows and files that the ledger says
I5  a publication changed files in its own partitions only; in mode rewrite, rows of its own partitions only
I6  a publication id is on at most one snapshot
I7  the ledger says committed if and only if the table carries the id
I8  the audit chain is whole, and every run's state is the last move in it
I9  digest approved = digest of the manifest = digest published; a member of a campaign names the digest of a campaign
    that was approved, and has the approval of a member
I11 every file that a publication added was written before it, by an attempt or by an earlier live commit
I10 a run of kind attest or reconcile was never approved, released or published, and ends attested or differs
I12 no lock outlives its publication, and every live file is there and has its size
I14 what is owed: see :mod:`support.outbox_invariants`
I15 holds: see :mod:`support.hold_invariants`
I16 copies in a warehouse: see :mod:`support.copy_invariants`
I17 a repair of copies has no publication, and starts with an approval
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from support.hold_invariants import hold_violations
from support.outbox_invariants import outbox_violations

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

GENESIS = "0" * 64
WIDTHS = {"hour": 13, "day": 10, "month": 7, "year": 4}
"""Units of time, and how long their texts are in a year of four digits."""


def assert_invariants(root: Path, catalog: Mapping[str, str] | None = None, lost: Collection[str] = ()) -> None:
    """Raise when any invariant does not hold; a lake that was never planned for holds them all.

    ``lost``: publications of a ledger that was replaced by an older copy; the table carries them all the same.
    ``catalog`` is how pyiceberg opens the lake; a SQLite database in the project by default.
    """
    carried = [f"I7 the table carries {pub}, which the ledger does not know" for pub in lost]
    problems = [found for found in violations(root, catalog) if found not in carried]
    assert not problems, "\n".join(problems)


def violations(root: Path, catalog: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong, in words."""
    ledger = root / ".errata" / "ledger.db"
    if not ledger.exists():
        return []
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        found = ledger_violations(db)
        for (name,) in db.execute("SELECT DISTINCT table_name FROM run"):
            table = _table(root, name, catalog)
            found += [*_staged(db, table, name), *publication_violations(db, table, name), *_files_exist(table)]
            for shadow in _shadows(db, name):
                with suppress(NoSuchTableError):  # dropped after the run was over
                    beside = _table(root, shadow, catalog)
                    found += [*_staged(db, beside, name), *_files_exist(beside)]
    return found


def ledger_violations(db: sqlite3.Connection) -> list[str]:
    """What is wrong in the ledger's database alone; rows are read by name."""
    found = [*_coverage(db), *_attempts(db), *_audit(db), *_approvals(db), *_checks(db), *_locks(db), *_waves(db)]
    return [*found, *outbox_violations(db), *hold_violations(db)]


def _waves(db: sqlite3.Connection) -> list[str]:
    """I13: a publication is of one wave, a partition is published once, and no wave before the one before it."""
    found = []
    for (run_id,) in db.execute("SELECT run_id FROM run").fetchall():
        wave_of: dict[str, int] = {}
        query = "SELECT partitions, wave FROM chunk WHERE run_id=? AND state != 'replaced' ORDER BY position, chunk_id"
        for chunk in db.execute(query, (run_id,)):
            for name in json.loads(chunk["partitions"]):
                wave_of.setdefault(name, max(1, chunk["wave"]))
        out: set[str] = set()
        query = (
            "SELECT * FROM publication WHERE run_id=? AND kind='publish' AND state='committed' ORDER BY settled_at, n"
        )
        for row in db.execute(query, (run_id,)):
            names = set(json.loads(row["partitions"]))
            found += [f"I13 {row['pub_id']} publishes {name} again" for name in sorted(names & out)]
            told = json.loads(row["release"] or "{}").get("wave")
            if told is None:
                out |= names
                continue
            waves = {wave_of[name] for name in names}
            if len(waves) > 1:
                found.append(f"I13 {row['pub_id']} has partitions of waves {sorted(waves)}")
            skipped = {name for name, wave in wave_of.items() if wave < min(waves)} - out
            if skipped and not told.get("named"):
                found.append(f"I13 {row['pub_id']} went before {sorted(skipped)}, which are of an earlier wave")
            out |= names
    return found


def _checks(db: sqlite3.Connection) -> list[str]:
    found = []
    for run in db.execute("SELECT run_id, state, content FROM run JOIN manifest ON digest = manifest_digest"):
        is_check = json.loads(run["content"]).get("kind") in ("attest", "reconcile")
        decided = [
            table
            for table in ("publication", "released", "approval")
            if db.execute(f"SELECT 1 FROM {table} WHERE run_id=?", (run["run_id"],)).fetchone()
        ]
        is_repair = json.loads(run["content"]).get("kind") == "repair_copies"
        started = run["state"] in ("running", "publishing", "published")
        if is_repair and ("publication" in decided or (started and "approval" not in decided)):
            found.append(f"I17 {run['run_id']} repairs copies, and is {run['state']} with {decided}")
        if is_check and (decided or run["state"] in ("validated", "published", "publishing", "part_published")):
            found.append(f"I10 {run['run_id']} changes nothing, and is {run['state']} with {decided}")
        if not is_check and run["state"] in ("attested", "differs"):
            found.append(f"I10 {run['run_id']} may change its table, and is {run['state']}")
    return found


def _shadows(db: sqlite3.Connection, name: str) -> list[str]:
    """Tables that hold the staged output of runs with new columns."""
    query = "SELECT content FROM run JOIN manifest ON digest = manifest_digest WHERE table_name=?"
    found = [json.loads(content)["target"].get("shadow") for (content,) in db.execute(query, (name,))]
    return [shadow for shadow in found if shadow]


def _table(root: Path, name: str, catalog: Mapping[str, str] | None) -> Table:
    place = root / ".errata"
    default = {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/warehouse"}
    lake, _, identifier = name.partition(".")
    with closing(load_catalog(lake, **(catalog or default))) as found:
        return found.load_table(identifier)


def _attempts(db: sqlite3.Connection) -> list[str]:
    found = []
    for chunk in db.execute("SELECT * FROM chunk"):
        rows = db.execute(
            "SELECT fence, state, snapshot_id FROM attempt WHERE run_id=? AND chunk_id=? ORDER BY fence",
            (chunk["run_id"], chunk["chunk_id"]),
        ).fetchall()
        name = f"{chunk['run_id']}/{chunk['chunk_id']}"
        adopted = [row for row in rows if row["state"] == "adopted"]
        if len(adopted) > 1 or (chunk["state"] == "done") != (len(adopted) == 1):
            found.append(f"I1 {name} is {chunk['state']} with {len(adopted)} adopted attempts")
        if adopted and adopted[0]["snapshot_id"] != chunk["snapshot_id"]:
            found.append(f"I1 {name} points at {chunk['snapshot_id']}, adopted was {adopted[0]['snapshot_id']}")
        if [row["fence"] for row in rows] != list(range(1, len(rows) + 1)) or chunk["fence"] != len(rows):
            found.append(f"I2 {name} has fences {[row['fence'] for row in rows]} and says {chunk['fence']}")
        if sum(row["state"] == "running" for row in rows) != (chunk["state"] == "running"):
            found.append(f"I1 {name} is {chunk['state']} and its attempts are {[row['state'] for row in rows]}")
    return found


def _coverage(db: sqlite3.Connection) -> list[str]:
    found = []
    for run in db.execute("SELECT run_id, partitions, content FROM run JOIN manifest ON digest = manifest_digest"):
        chunks = db.execute(
            "SELECT partitions FROM chunk WHERE run_id=? AND state != 'replaced'", (run["run_id"],)
        ).fetchall()
        rebases = "SELECT value FROM fact WHERE run_id=? AND (name LIKE 'rebase.%' OR name LIKE 'erasure.%')"
        again = Counter(
            name for (fact,) in db.execute(rebases, (run["run_id"],)) for name in json.loads(fact)["partitions"]
        )
        have = Counter(name for chunk in chunks for name in json.loads(chunk["partitions"]))
        computes = json.loads(run["content"]).get("kind") not in ("reconcile", "repair_copies")
        if have != (Counter(json.loads(run["partitions"])) + again if computes else Counter()):
            found.append(f"I0 the chunks of {run['run_id']} do not have its partitions once each")
    return found


def _audit(db: sqlite3.Connection) -> list[str]:
    previous, found, states = GENESIS, [], {}
    for seq, row in enumerate(db.execute("SELECT * FROM audit ORDER BY seq"), 1):
        body = json.loads(row["body"])
        content = {
            "at": row["at"],
            "actor": {
                "person": row["person"],
                "os_user": row["os_user"],
                "host": row["host"],
                "single_user": bool(row["single_user"]),
            },
            "action": row["action"],
            "run_id": row["run_id"],
            "body": body,
        }
        link = {"seq": row["seq"], "previous": row["previous"], "content": _sha(_canonical(content))}
        link["run"] = _sha(row["run_id"].encode()) if row["run_id"] is not None else None
        digest = _sha(_canonical(link))
        if (row["seq"], row["previous"], row["hash"]) != (seq, previous, digest):
            found.append(f"I8 audit entry {row['seq']} does not fit the chain")
            break
        previous = row["hash"]
        if "move" in body:
            if states.get(row["run_id"]) != body["move"]["from"]:
                found.append(f"I8 audit entry {seq} moves {row['run_id']} from {body['move']['from']}")
            states[row["run_id"]] = body["move"]["to"]
    runs = db.execute("SELECT run_id, state FROM run").fetchall()
    unlogged = [run for run in runs if states.get(run["run_id"]) != run["state"]]
    return found + [
        f"I8 {run['run_id']} is {run['state']}, the audit says {states.get(run['run_id'])}" for run in unlogged
    ]


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(value: Any) -> bytes:
    # the same bytes as RFC 8785 for what audit bodies hold: objects with plain keys, text, integers
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _approvals(db: sqlite3.Connection) -> list[str]:
    found = []
    for run in db.execute("SELECT run.*, manifest.content FROM run JOIN manifest ON digest = manifest_digest"):
        if hashlib.sha256(run["content"]).hexdigest() != run["manifest_digest"]:
            found.append(f"I9 the manifest of {run['run_id']} was changed")
        published = db.execute("SELECT count(*) FROM publication WHERE run_id=?", (run["run_id"],)).fetchone()[0]
        approved = db.execute(
            "SELECT count(*) FROM approval WHERE run_id=? AND decision='approved' AND digest=?",
            (run["run_id"], run["manifest_digest"]),
        ).fetchone()[0]
        if (over := json.loads(run["content"]).get("campaign")) is not None:
            approved = db.execute(
                "SELECT count(*) FROM member_approval m JOIN campaign_approval a USING (campaign_id) WHERE m.run_id=?"
                " AND m.digest=? AND m.campaign_digest=? AND a.digest=m.campaign_digest AND a.decision='approved'",
                (run["run_id"], run["manifest_digest"], over),
            ).fetchone()[0]
        if published and not approved:
            found.append(f"I9 {run['run_id']} was published without an approval of its digest")
    return found


def _locks(db: sqlite3.Connection) -> list[str]:
    query = "SELECT pub_id FROM scope_lock JOIN publication USING (pub_id) WHERE state != 'intended'"
    return [f"I12 {row['pub_id']} is settled and still holds a lock" for row in db.execute(query)]


def _entries(table: Table, snapshot: Snapshot | None) -> dict[str, tuple[int, Any, int]]:
    """Path → (spec, partition values, size) of the live files of a snapshot."""
    return {
        entry.data_file.file_path: (
            manifest.partition_spec_id,
            entry.data_file.partition,
            entry.data_file.file_size_in_bytes,
        )
        for manifest in (snapshot.manifests(table.io) if snapshot else ())
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


class Partitions:
    """How files and values say which partition of a product they are in, by the manifest's ``target`` of a run."""

    def __init__(self, table: Table, target: Mapping[str, Any]) -> None:
        self._table, self._width = table, WIDTHS.get(target["grain"])
        # a column that was renamed since has its old name in an old schema
        schemas = [table.schema(), *table.schemas().values()]
        field = next(field for schema in schemas for field in schema.fields if field.name == target["column"])
        self._source, self._kind = field.field_id, str(field.field_type)
        self.names = {one.name for schema in schemas for one in schema.fields if one.field_id == self._source}

    def of_file(self, spec_id: int, values: Any) -> str | None:
        """The partition of a file; None when its spec does not say."""
        texts = [
            self._stored(str(part.transform), values[position])
            for position, part in enumerate(self._table.specs()[spec_id].fields)
            if part.source_id == self._source
        ]
        return max((text for text in texts if text is not None), key=len, default=None)

    def _stored(self, transform: str, value: Any) -> str | None:
        unit = "day" if transform == "identity" and self._kind == "date" else transform
        if unit in WIDTHS:
            if self._width is None or WIDTHS[unit] < self._width:
                return None
            return "null" if value is None else self._cut(_time_text(unit, int(value)), WIDTHS[unit])
        return _value_text(value) if transform == "identity" else None

    def of_value(self, value: Any) -> str:
        """The partition of a row, by its value: days for a date, microseconds for an instant, else as it is."""
        if value is None or self._width is None or self._kind == "string":
            return _value_text(value)
        unit, number = ("day", value) if self._kind == "date" else ("hour", value // 3_600_000_000)
        return self._cut(_time_text(unit, number), WIDTHS[unit])

    def _cut(self, text: str, width: int) -> str:
        return text[: len(text) - max(0, width - (self._width or width))]


def _time_text(unit: str, number: int) -> str:
    """Hours, days, months or years since 1970, in any year, as Spark writes them."""
    if unit in ("month", "year"):
        year, month = divmod(number, 12) if unit == "month" else (number, 0)
        return _year_text(1970 + year) + (f"-{month + 1:02d}" if unit == "month" else "")
    days, hour = divmod(number, 24) if unit == "hour" else (number, 0)
    cycles, rest = divmod(days, 146_097)  # days of 400 years, after which the calendar repeats
    found = date(1970, 1, 1) + timedelta(days=rest)
    return _year_text(found.year + 400 * cycles) + found.strftime("-%m-%d") + (f"T{hour:02d}" if unit == "hour" else "")


def _year_text(year: int) -> str:
    return f"{'+' if year > 9999 else '-' if year < 0 else ''}{abs(year):04d}"


def _value_text(value: Any) -> str:
    """A value as people write it; text that would read as NULL, or begins like a quoted one, is quoted."""
    if value is None:
        return "null"
    return json.dumps(value) if value in ("", "null") or str(value).startswith('"') else str(value)


def _staged(db: sqlite3.Connection, table: Table, name: str) -> list[str]:
    found = []
    query = "SELECT chunk.* FROM chunk JOIN run USING (run_id) WHERE table_name=? AND chunk.state='done'"
    for chunk in db.execute(query, (name,)):
        snapshot = table.snapshot_by_id(int(chunk["snapshot_id"]))
        if snapshot is None:
            continue  # swept after the run was over
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        keys = (chunk["run_id"], chunk["chunk_id"], chunk["fence"])
        query = "SELECT started_at FROM attempt WHERE run_id=? AND chunk_id=? AND fence=?"
        attempt = "/".join(map(str, (*keys, *db.execute(query, keys).fetchone())))
        if summary.get("errata.attempt") != attempt:
            found.append(
                f"I4 adopted snapshot {snapshot.snapshot_id} belongs to {summary.get('errata.attempt')}, not {attempt}"
            )
        added = (int(summary.get("added-records", 0)), int(summary.get("added-data-files", 0)))
        if added != (chunk["output_rows"], chunk["output_files"]):
            found.append(f"I4 {attempt} added {added}, the ledger says {chunk['output_rows'], chunk['output_files']}")
    return found


def publication_violations(db: sqlite3.Connection, table: Table, name: str) -> list[str]:
    """What is wrong between the publications that the ledger knows and those that a table carries."""
    found = []
    carried: Counter[str] = Counter()
    snapshots = {}
    for snapshot in table.snapshots():
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if "errata.publication" in summary:
            carried[summary["errata.publication"]] += 1
            snapshots[summary["errata.publication"]] = (snapshot, summary)
    found += [f"I6 {pub} is on {count} snapshots" for pub, count in carried.items() if count > 1]
    known = {row["pub_id"]: row for row in db.execute("SELECT * FROM publication WHERE table_name=?", (name,))}
    for pub, row in known.items():
        landed = row["state"] == "committed"
        if row["state"] != "intended" and pub in snapshots and not landed:
            found.append(f"I7 the ledger says {row['state']} of {pub}, the table carries it")
        if landed and pub in snapshots:
            found += _one_publication(db, table, row, *snapshots[pub])
        result = table.snapshot_by_id(int(row["result_snapshot_id"])) if landed and pub not in snapshots else None
        # its own snapshot may have expired before anyone looked; then its files are there
        if result is not None and not _added(db, pub) <= set(_entries(table, result)):
            found.append(f"I7 snapshot {row['result_snapshot_id']} does not carry {pub}")
    found += [f"I7 the table carries {pub}, which the ledger does not know" for pub in snapshots if pub not in known]
    return found


def _added(db: sqlite3.Connection, pub: str) -> set[str]:
    """What the last intent of a publication was to add; what was never said cannot be there."""
    query = "SELECT content FROM publication_detail d JOIN part p ON p.digest = d.part_digest WHERE pub_id=? ORDER BY n"
    detail = json.loads(db.execute(query, (pub,)).fetchall()[-1][0])
    return {file[1] for files in detail["add"].values() for file in files} or {"nothing"}


def _one_publication(
    db: sqlite3.Connection, table: Table, row: sqlite3.Row, snapshot: Snapshot, summary: dict[str, str]
) -> list[str]:
    found = []
    pub = row["pub_id"]
    (digest,) = db.execute("SELECT manifest_digest FROM run WHERE run_id=?", (row["run_id"],)).fetchone()
    if summary.get("errata.manifest") != digest or summary.get("errata.run") != row["run_id"]:
        found.append(f"I9 {pub} was published under another digest or run")
    parent = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    if parent is None:
        return found
    before, after = _entries(table, parent), _entries(table, snapshot)
    scope = set(json.loads(row["partitions"]))
    query = "SELECT content FROM manifest WHERE digest=?"
    target = json.loads(db.execute(query, (digest,)).fetchone()[0])["target"]
    if target.get("mode") == "rewrite":
        old, new = (_rows_outside(table, one.snapshot_id, target, scope) for one in (parent, snapshot))
        if old != new:
            found.append(f"I5 {pub} changed rows outside its scope: {old - new} became {new - old}")
    elif changed := _changed(table, target, before, after, _outdated(table, parent, snapshot)) - scope:
        found.append(f"I5 {pub} changed files of {sorted(changed)}, outside its scope")
    made_at = snapshot.timestamp_ms / 1000
    for path in set(after) - set(before):
        place = _local(path)
        if place.exists() and place.stat().st_mtime > made_at + 2:
            found.append(f"I11 {pub} added {path}, which was written after it")
    return found


def _outdated(table: Table, before: Snapshot, after: Snapshot) -> set[str]:
    """Delete files older than all data of a later snapshot: Iceberg drops them in any commit; no reader can tell."""
    ages: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for snapshot, kind in ((before, 1), (after, 0)):
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if bool(entry.data_file.content) == bool(kind):
                    ages[kind][entry.data_file.file_path] = entry.sequence_number or 0
    oldest = min(ages[0].values(), default=0)
    return {path for path, age in ages[1].items() if age < oldest}


def _changed(
    table: Table, target: Mapping[str, Any], before: dict[str, Any], after: dict[str, Any], outdated: set[str]
) -> set[str]:
    """The partitions of files that came or went, as far as their specs say; outdated ones do not count."""
    partitions = Partitions(table, target)
    moved = {path: entry for path, entry in {**before, **after}.items() if (path in before) != (path in after)}
    moved = {path: entry for path, entry in moved.items() if path not in outdated}
    found = {partitions.of_file(spec, values) for spec, values, _ in moved.values()}
    return {name for name in found if name is not None}


def _rows_outside(table: Table, snapshot_id: int, target: Mapping[str, Any], scope: set[str]) -> Counter[str]:
    """Every row that is in none of the partitions, with all its columns, and how often it is there."""
    partitions = Partitions(table, target)
    with suppress(ValueError):  # a deletion vector, which this reader does not know
        # times as numbers, because there are more of them than Python has dates
        found = table.scan(snapshot_id=snapshot_id).to_arrow()
        numbers = [field.with_type(_plain(field.type)) for field in found.schema]
        rows = found.cast(pa.schema(numbers)).to_pylist()
        column = next(name for name in found.schema.names if name in partitions.names)
        outside = Counter()
        for row in rows:
            if partitions.of_value(row[column]) not in scope:
                outside[json.dumps(row, default=str, sort_keys=True)] += 1
        return outside
    return Counter()


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _files_exist(table: Table) -> list[str]:
    found = []
    for name, ref in table.metadata.refs.items():
        snapshot = table.snapshot_by_id(ref.snapshot_id)
        if snapshot is None:
            found.append(f"I12 ref {name} points at a snapshot that is gone")
            continue
        for path, (_, _, size) in _entries(table, snapshot).items():
            there = _size(table, path)
            if there is None:
                found.append(f"I12 {name}: {path} is live and gone")
            elif there != size:
                found.append(f"I12 {name}: {path} has {there} bytes, metadata says {size}")
    return found


def _size(table: Table, path: str) -> int | None:
    if not path.startswith("s3"):
        return _local(path).stat().st_size if _local(path).exists() else None
    file = table.io.new_input(path)
    return len(file) if file.exists() else None


def _local(path: str) -> Path:
    parsed = urlparse(path)
    # Iceberg escapes nothing but what partition paths already escaped; the name on disk is the name in the metadata
    return Path(parsed.path) if Path(parsed.path).exists() else Path(unquote(parsed.path))
