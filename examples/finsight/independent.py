"""The independent reader: reads table, raw files, journal and ledger without any code of Errata.

pyiceberg says which Parquet files a snapshot has, DuckDB reads them, and the audit chain is hashed again with the
standard library. Every number in the right column of the demo's last page comes from here.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

REVENUE = "fin.daily_revenue"
RATES = "ref.fx_rates"
KEY = "business_date, account_id, currency"
CONTENT = "gross, fx_rate, revenue_usd, event_count"
COLUMNS = tuple(f"{KEY}, {CONTENT}".split(", "))

Files = Mapping[str, Mapping[str, int]]
"""Per business date: the paths of its data files, with their row counts."""
RevenueRow = tuple[str | None, ...]
"""A row as text, without the lineage columns: what the table in the warehouse has."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows of two versions, matched by key and compared without the lineage columns."""

    before: int
    after: int
    added: int
    removed: int
    changed: int


@dataclass(frozen=True, slots=True)
class Live:
    """What the journal says the live days hold, and what was found different in the table."""

    commits: int
    rows: int
    days: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """An audit chain hashed again; ``first_bad`` is the number of the first entry that does not hold."""

    entries: int
    first_bad: int | None


def open_table(lake: Path, name: str = REVENUE) -> Table:
    """The table as the catalog has it now."""
    where = {"uri": f"sqlite:///{lake / 'catalog.db'}", "warehouse": (lake / "warehouse").as_uri()}
    return load_catalog("lake", type="sql", **where).load_table(name)


def head(lake: Path) -> int:
    """The snapshot that readers see now."""
    current = open_table(lake).current_snapshot()
    assert current is not None
    return current.snapshot_id


def files_at(lake: Path, snapshot_id: int | None = None, name: str = REVENUE) -> Files:
    """The data files of a snapshot (of the newest one if none is named), by business date."""
    found: dict[str, dict[str, int]] = {}
    for task in open_table(lake, name).scan(snapshot_id=snapshot_id).plan_files():
        assert not task.delete_files, f"{task.file.file_path} carries deletes, which this reader does not apply"
        day = str(date(1970, 1, 1) + timedelta(task.file.partition[0])) if name == REVENUE else ""
        found.setdefault(day, {})[_path(task.file.file_path)] = task.file.record_count
    return found


def data_files_on_disk(lake: Path, days: Iterable[str]) -> set[str]:
    """Every Parquet file in the directories of these days, referenced or not."""
    data = lake / "warehouse" / "fin" / "daily_revenue" / "data"
    return {str(path) for day in days for path in (data / f"business_date={day}").glob("*.parquet")}


def difference(before: Files, after: Files, days: Sequence[str]) -> Difference:
    """How two versions of these days differ."""
    with closing(duckdb.connect()) as db:
        _view(db, "old", _paths(before, days))
        _view(db, "new", _paths(after, days))
        columns = CONTENT.split(", ")
        differs = " OR ".join(f"o.{column} IS DISTINCT FROM n.{column}" for column in columns)
        row = _one(
            db,
            f"""
            SELECT count(o.account_id), count(n.account_id),
                   count(*) FILTER (o.account_id IS NULL), count(*) FILTER (n.account_id IS NULL),
                   count(*) FILTER (o.account_id IS NOT NULL AND n.account_id IS NOT NULL AND ({differs}))
            FROM old AS o FULL OUTER JOIN new AS n USING ({KEY})
            """,  # noqa: S608 - the column names are ours
        )
    return Difference(*row)


def copy_revenue(paths: Sequence[str], to: Path, form: str) -> None:
    """Write what data files hold, without the lineage columns, as one file for a warehouse to load."""
    with closing(duckdb.connect()) as db:
        _view(db, "found", paths)
        where = str(to).replace("'", "''")
        db.execute(f"COPY (SELECT {', '.join(COLUMNS)} FROM found) TO '{where}' (FORMAT {form})")  # noqa: S608


def revenue_rows(files: Files, days: Sequence[str]) -> list[RevenueRow]:
    """The rows of these days in the lake, without the lineage columns."""
    with closing(duckdb.connect()) as db:
        _view(db, "found", _paths(files, days))
        return db.execute(f"SELECT {as_text()} FROM found").fetchall()  # noqa: S608


def as_text() -> str:
    """Every column as text, in the SQL of lake and warehouse alike."""
    return ", ".join(f"cast({name} as varchar)" for name in COLUMNS)


def rows_that_differ(one: Iterable[RevenueRow], other: Iterable[RevenueRow]) -> int:
    """How many rows only one of two lists has; a row that one of them has twice counts as well."""
    left, right = Counter(map(tuple, one)), Counter(map(tuple, other))
    return (left - right).total() + (right - left).total()


def wrong_rows(lake: Path, files: Files, days: Sequence[str]) -> tuple[int, int]:
    """Rows of these days, and how many differ from a calculation from the raw files in whole cents (half to even)."""
    raw = [str(path) for day in days for path in (lake / "raw/transactions" / f"business_date={day}").glob("*.parquet")]
    with closing(duckdb.connect()) as db:
        _view(db, "found", _paths(files, days))
        _view(db, "raw", raw)
        _view(db, "rates", [path for paths in files_at(lake, name=RATES).values() for path in paths])
        rows, wrong = _one(db, _RECALCULATION)
    return rows, wrong


_RECALCULATION = """
WITH sums AS (
    SELECT business_date, account_id, currency, sum(amount)::DECIMAL(18,2) AS gross, count(*) AS event_count
    FROM raw GROUP BY ALL
), priced AS (
    SELECT sums.*, usd_per_unit, (gross * 100)::HUGEINT * (usd_per_unit * 1000000)::HUGEINT AS millionths
    FROM sums JOIN rates ON rate_date = business_date AND rates.currency = sums.currency
), expected AS (
    SELECT *, millionths // 1000000 AS whole, millionths % 1000000 AS rest FROM priced
), cents AS (
    SELECT *, whole + CASE WHEN rest > 500000 OR (rest = 500000 AND whole % 2 = 1) THEN 1 ELSE 0 END AS usd_cents
    FROM expected
)
SELECT count(f.account_id),
       count(*) FILTER (
           f.account_id IS NULL OR c.account_id IS NULL
           OR f.gross IS DISTINCT FROM c.gross OR f.event_count IS DISTINCT FROM c.event_count
           OR f.fx_rate IS DISTINCT FROM c.usd_per_unit OR (f.revenue_usd * 100)::HUGEINT IS DISTINCT FROM c.usd_cents
       )
FROM cents AS c FULL OUTER JOIN found AS f USING (business_date, account_id, currency)
"""


def one_number(lake: Path, files: Files, day: str, account: str, currency: str) -> dict[str, Decimal]:
    """Gross, rate and revenue of one account on one day, and the rate that the reference table has."""
    with closing(duckdb.connect()) as db:
        _view(db, "found", _paths(files, [day]))
        _view(db, "rates", [path for paths in files_at(lake, name=RATES).values() for path in paths])
        row = _one(
            db,
            """
            SELECT gross, fx_rate, revenue_usd, usd_per_unit
            FROM found JOIN rates ON rate_date = business_date AND rates.currency = found.currency
            WHERE account_id = ? AND found.currency = ?
            """,
            [account, currency],
        )
    return dict(zip(("gross", "fx_rate", "revenue_usd", "usd_per_unit"), row, strict=True))


def live_rows(lake: Path, journal: Path) -> Live:
    """Replay the journal and compare the table with it, batch by batch: rows and gross."""
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    expected: dict[str, dict[str, tuple[int, Decimal]]] = {}
    for line in lines:
        day = expected.setdefault(line["partition"], {})
        if line["operation"] == "overwrite":
            day.clear()
        day[line["batch"]] = (line["rows"], Decimal(line["gross"]))
    files = files_at(lake)
    history = _ancestors(open_table(lake))
    problems = [f"{line['batch']} is not in the history" for line in lines if int(line["snapshot_id"]) not in history]
    for name, batches in sorted(expected.items()):
        found = _batches(files, name)
        problems += [
            f"{batch}: {batches.get(batch)} in the journal, {found.get(batch)} in the table"
            for batch in sorted(batches.keys() | found.keys())
            if batches.get(batch) != found.get(batch)
        ]
    rows = sum(count for day in expected.values() for count, _ in day.values())
    return Live(len(lines), rows, tuple(sorted(expected)), tuple(problems))


def _batches(files: Files, day: str) -> dict[str, tuple[int, Decimal]]:
    if day not in files:
        return {}
    with closing(duckdb.connect()) as db:
        _view(db, "found", _paths(files, [day]))
        rows = db.execute("SELECT produced_by_run_id, count(*), sum(gross) FROM found GROUP BY 1").fetchall()
    return {batch: (count, gross) for batch, count, gross in rows}


def _ancestors(table: Table) -> set[int]:
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in table.snapshots()}
    current = table.current_snapshot()
    at = current.snapshot_id if current else None
    found: set[int] = set()
    while at is not None and at in parents:
        found.add(at)
        at = parents[at]
    return found


def verify_chain(ledger: Path) -> Chain:
    """Hash the audit log again, entry by entry, from the database file."""
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        rows = db.execute("SELECT * FROM audit ORDER BY seq").fetchall()
    previous = "0" * 64
    for number, row in enumerate(rows, 1):
        if row["seq"] != number or row["previous"] != previous or row["hash"] != _entry_hash(row):
            return Chain(number - 1, number)
        previous = row["hash"]
    return Chain(len(rows), None)


def _entry_hash(row: sqlite3.Row) -> str:
    content = {name: row[name] for name in ("at", "action", "run_id")}
    content["actor"] = {name: row[name] for name in ("person", "os_user", "host")}
    content["actor"]["single_user"] = bool(row["single_user"])
    content["body"] = json.loads(row["body"])
    link = {"content": _sha256(_canonical(content)), "previous": row["previous"], "seq": row["seq"]}
    link["run"] = None if row["run_id"] is None else _sha256(row["run_id"].encode())
    return _sha256(_canonical(link))


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _paths(files: Files, days: Sequence[str]) -> list[str]:
    return [path for day in days for path in files.get(day, ())]


def _path(location: str) -> str:
    return "/" + location.removeprefix("file:").lstrip("/")


def _view(db: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str]) -> None:
    # A view takes no parameters, so the paths are written as SQL text.
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], hive_partitioning = false)")  # noqa: S608


def _one(db: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
    row = db.execute(query, list(parameters)).fetchone()
    assert row is not None
    return tuple(row)
