"""The second opinion: reads the table, the raw files and the ledger without a line of Errata and without Spark.

pyiceberg says which Parquet files the table has, DuckDB computes customer value from the raw files by another road (a
join instead of a window, whole cents instead of decimals) and compares row by row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from examples.clv.lake import CAMPAIGNS, MONTH, VALUE, WEEK, Lake

if TYPE_CHECKING:
    from pyiceberg.table import Table

_EXPECTED = """
WITH orders AS (SELECT * FROM raw WHERE event_type = 'order'),
touches AS (SELECT * FROM raw WHERE event_type = 'touch'),
credited AS (
    SELECT o.event_id, any_value(o.event_date) AS event_date, any_value(o.customer_id) AS customer_id,
           any_value((o.amount * 100)::HUGEINT) AS cents, arg_max(t.campaign_id, (t.event_ts, t.event_id)) AS touched
    FROM orders AS o
    LEFT JOIN touches AS t
        ON t.event_date = o.event_date AND t.customer_id = o.customer_id
        AND (t.event_ts, t.event_id) < (o.event_ts, o.event_id)
    GROUP BY o.event_id
), fees AS (
    SELECT *, cents * (share * 10000)::HUGEINT AS parts  -- ten-thousandths of a cent
    FROM credited JOIN campaigns ON campaigns.campaign_id = coalesce(touched, 'direct')
), expected AS (
    SELECT event_date, customer_id, count(*) AS orders, sum(cents) AS revenue, max(cents) AS largest,
           count(*) FILTER (touched IS NULL) AS direct,
           sum(parts // 10000 + CASE WHEN parts % 10000 > 5000 OR (parts % 10000 = 5000 AND parts // 10000 % 2 = 1)
                                     THEN 1 ELSE 0 END) AS cost
    FROM fees GROUP BY ALL
)
"""
_COMPARED = """
SELECT count(f.customer_id),
       count(*) FILTER (
           f.customer_id IS NULL OR e.customer_id IS NULL OR f.orders IS DISTINCT FROM e.orders
           OR (f.revenue * 100)::HUGEINT IS DISTINCT FROM e.revenue OR (f.cost * 100)::HUGEINT IS DISTINCT FROM e.cost
           OR f.margin IS DISTINCT FROM f.revenue - f.cost
       ),
       count(DISTINCT f.event_date)
FROM expected AS e FULL OUTER JOIN found AS f USING (event_date, customer_id)
"""


FEATURES = ("direct_orders", "largest_order", "margin_rate")
_FEATURES = """
SELECT count(*) FILTER (
           f.direct_orders IS DISTINCT FROM e.direct OR (f.largest_order * 100)::HUGEINT IS DISTINCT FROM e.largest
           OR (f.margin_rate * 10000)::HUGEINT
              IS DISTINCT FROM ((e.revenue - e.cost) * 20000 + e.revenue) // (2 * e.revenue)  -- half up
       )
FROM expected AS e JOIN found AS f USING (event_date, customer_id)
"""


Files = Mapping[date, frozenset[str]]
"""The data files of every day."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A table against the raw files."""

    rows: int
    wrong: int
    days: int  # or months


_MONTHS = """
, months AS (
    SELECT strftime(event_date, '%Y-%m') AS event_month, count(DISTINCT customer_id) AS customers,
           sum(orders) AS orders, sum(revenue) AS revenue, sum(revenue - cost) AS margin
    FROM expected GROUP BY 1
)
SELECT count(f.event_month), count(*) FILTER (
           f.event_month IS NULL OR e.event_month IS NULL OR f.customers IS DISTINCT FROM e.customers
           OR f.orders IS DISTINCT FROM e.orders OR (f.revenue * 100)::HUGEINT IS DISTINCT FROM e.revenue
           OR (f.margin * 100)::HUGEINT IS DISTINCT FROM e.margin
       ), count(DISTINCT f.event_month)
FROM months AS e FULL OUTER JOIN reader AS f USING (event_month)
"""
_WEEKS = """
, daily AS (SELECT event_date, sum(orders) AS orders, sum(revenue - cost) AS margin FROM expected GROUP BY 1)
, weeks AS (
    SELECT d.event_date, sum(b.orders) AS orders, sum(b.margin) AS margin
    FROM daily AS d JOIN daily AS b ON b.event_date BETWEEN d.event_date - 6 AND d.event_date
    GROUP BY 1
)
SELECT count(f.event_date), count(*) FILTER (
           f.event_date IS NULL OR e.event_date IS NULL OR f.orders IS DISTINCT FROM e.orders
           OR (f.margin * 100)::HUGEINT IS DISTINCT FROM e.margin
       ), count(DISTINCT f.event_date)
FROM weeks AS e FULL OUTER JOIN reader AS f USING (event_date)
"""
READERS = {MONTH: _MONTHS, WEEK: _WEEKS}
"""The tables that are computed from customer value, and how they follow from the raw files."""


@dataclass(frozen=True, slots=True)
class Visible:
    """What readers of the table see at one moment, in the middle of a correction."""

    corrected: tuple[date, ...]  # days with other files than before, oldest first
    wrong: int  # their rows that differ from the calculation from raw files, features included
    untouched: int  # days with the files that they had before
    columns: frozenset[str]
    commits: int  # on main since the table was made


def compare(lake: Lake) -> Compared:
    """Every row of the table against the calculation from raw files."""
    with closing(_open(lake)) as db:
        return Compared(*_one(db, _EXPECTED + _COMPARED))


def compare_reader(lake: Lake, table: str) -> Compared:
    """Every row of a table that is computed from customer value, against the calculation from raw files."""
    with closing(_open(lake, found=())) as db:
        _view(db, "reader", _files(lake, table), hive=False)
        return Compared(*_one(db, _EXPECTED + READERS[table]))


def look(lake: Lake, before: Files, snapshot_id: int | None = None) -> Visible:
    """One snapshot of the table (default: the newest): the days that were replaced, and whether they are right."""
    table = lake.catalog().load_table(VALUE)
    snapshot = table.snapshot_by_id(snapshot_id) if snapshot_id is not None else table.current_snapshot()
    files = _files_of_days(table, snapshot_id)
    names = frozenset(field.name for field in table.scan(snapshot_id=snapshot_id).projection().fields)
    corrected = tuple(sorted(day for day in files.keys() | before.keys() if files.get(day) != before.get(day)))
    wrong = 0
    if corrected:
        paths = [path for day in corrected for path in files.get(day, ())]
        with closing(_open(lake, found=paths, among=corrected)) as db:
            wrong = Compared(*_one(db, _EXPECTED + _COMPARED)).wrong + int(_one(db, _EXPECTED + _FEATURES)[0])
    commits = 0
    while snapshot is not None:
        commits += 1
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent is not None else None
    return Visible(corrected, wrong, len(files) - len(corrected), names, commits)


def snapshots(lake: Lake) -> dict[str, tuple[int | None, datetime | None]]:
    """What readers of each table read now, and since when."""
    found: dict[str, tuple[int | None, datetime | None]] = {}
    for name in (VALUE, *READERS):
        now = lake.catalog().load_table(name).current_snapshot()
        since = datetime.fromtimestamp(now.timestamp_ms / 1000, UTC) if now else None
        found[name] = (now.snapshot_id if now else None, since)
    return found


def find_run(ledger: Path, product: str) -> str:
    """The newest run of a product; empty if there is none."""
    query = "SELECT run_id FROM run WHERE product = ? ORDER BY planned_at DESC LIMIT 1"
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        row = db.execute(query, [product]).fetchone()
    return str(row[0]) if row else ""


def files_of_days(lake: Lake) -> Files:
    """The data files of every day that readers see now."""
    return _files_of_days(lake.catalog().load_table(VALUE))


def _files_of_days(table: Table, snapshot_id: int | None = None) -> Files:
    found: dict[date, set[str]] = {}
    for task in table.scan(snapshot_id=snapshot_id).plan_files():
        value = task.file.partition[0]
        day = value if isinstance(value, date) else date(1970, 1, 1) + timedelta(value)
        found.setdefault(day, set()).add(_local(task.file.file_path))
    return {day: frozenset(paths) for day, paths in found.items()}


def columns(lake: Lake) -> set[str]:
    """The columns that readers of the table see now."""
    return {field.name for field in lake.catalog().load_table(VALUE).schema().fields}


def features_on(lake: Lake, day: date) -> int:
    """How many values the new columns have on a day, as a reader of the table finds them."""
    scan = lake.catalog().load_table(VALUE).scan(f"event_date = '{day.isoformat()}'", selected_fields=FEATURES)
    return sum(len(column) - column.null_count for column in scan.to_arrow().columns)


def wrong_features(lake: Lake) -> int:
    """Rows whose features differ from the calculation from raw files."""
    with closing(_open(lake)) as db:
        return int(_one(db, _EXPECTED + _FEATURES)[0])


def lifetime_value(lake: Lake, customer: str) -> Decimal:
    """The margin of one customer over all days: what the dashboard shows."""
    with closing(_open(lake)) as db:
        (value,) = _one(db, "SELECT sum(margin) FROM found WHERE customer_id = ?", [customer])
    return Decimal(value)


def hardest_hit(lake: Lake) -> tuple[str, str]:
    """The customer whose value is most wrong on one day, and the day: somebody noticed."""
    query = """
    SELECT f.customer_id, f.event_date::VARCHAR
    FROM found AS f JOIN raw AS r ON r.event_date = f.event_date AND r.customer_id = f.customer_id
    GROUP BY ALL HAVING bool_and(campaign_id IS NULL OR campaign_id = 'retargeting') AND count(campaign_id) > 0
        AND max(event_ts) FILTER (event_type = 'order') < min(event_ts) FILTER (event_type = 'touch')
    ORDER BY any_value(cost) DESC, 1, 2 LIMIT 1
    """
    with closing(_open(lake)) as db:
        customer, day = _one(db, query)
    return str(customer), str(day)


def partitions_done(ledger: Path, run: str) -> int:
    """Days whose chunk is done, read from the ledger's file while workers write to it."""
    query = "SELECT sum(json_array_length(partitions)) FROM chunk WHERE run_id = ? AND state = 'done'"
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        return int(db.execute(query, [run]).fetchone()[0] or 0)


def chunks_done(ledger: Path, run: str) -> tuple[int, int]:
    """Chunks that are done, and all of them."""
    query = "SELECT count(*) FILTER (WHERE state = 'done'), count(*) FROM chunk WHERE run_id = ?"
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        done, total = db.execute(query, [run]).fetchone()
        return int(done), int(total)


def verdicts(ledger: Path, run: str) -> int:
    """How many verdicts the gate has given on candidates of a run."""
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        return int(db.execute("SELECT count(*) FROM verdict WHERE run_id = ?", [run]).fetchone()[0])


def attempts(ledger: Path, run: str) -> list[tuple[str, int, str, str]]:
    """Every attempt at every chunk of a run: chunk, fence, worker, how it ended."""
    query = "SELECT chunk_id, fence, owner, state FROM attempt WHERE run_id = ? ORDER BY chunk_id, fence"
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        return db.execute(query, [run]).fetchall()


def _open(
    lake: Lake, *, found: Sequence[str] | None = None, among: Collection[date] | None = None
) -> duckdb.DuckDBPyConnection:
    """A connection to the table and the raw files; with ``among`` only these days of the latter."""
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    if paths := _files(lake, VALUE) if found is None else found:
        _view(db, "found", paths, hive=False)
    _view(db, "campaigns", _files(lake, CAMPAIGNS), hive=False)
    raw = [str(lake.events / "*")] if among is None else [str(lake.events_of(day)) for day in among]
    _view(db, "raw", [f"{path}/*.parquet" for path in raw], hive=True)
    return db


def _files(lake: Lake, table: str) -> list[str]:
    tasks = list(lake.catalog().load_table(table).scan().plan_files())
    assert not any(task.delete_files for task in tasks), "this reader does not apply deletes"
    return [_local(task.file.file_path) for task in tasks]


def _local(path: str) -> str:
    return "/" + path.removeprefix("file:").lstrip("/")


def _view(db: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str], *, hive: bool) -> None:
    # A view takes no parameters, so the paths are written as SQL text.
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    # by name: files from before a publication lack the columns that came with it
    kind = (
        "hive_partitioning = true, hive_types = {'event_date': DATE}"
        if hive
        else "hive_partitioning = false, union_by_name = true"
    )
    db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], {kind})")  # noqa: S608


def _one(db: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
    row = db.execute(query, list(parameters)).fetchone()
    assert row is not None
    return tuple(row)
