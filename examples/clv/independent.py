"""The second opinion: reads the table, the raw files and the ledger without a line of Errata and without Spark.

pyiceberg says which Parquet files the table has, DuckDB computes customer value from the raw files by another road (a
join instead of a window, whole cents instead of decimals) and compares row by row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from examples.clv.lake import CAMPAIGNS, VALUE, Lake

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


@dataclass(frozen=True, slots=True)
class Compared:
    """The table against the raw files."""

    rows: int
    wrong: int
    days: int


def compare(lake: Lake) -> Compared:
    """Every row of the table against the calculation from raw files."""
    with closing(_open(lake)) as db:
        return Compared(*_one(db, _EXPECTED + _COMPARED))


def columns(lake: Lake) -> set[str]:
    """The columns that readers of the table see now."""
    return {field.name for field in lake.catalog().load_table(VALUE).schema().fields}


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


def data_files_on_disk(lake: Lake) -> set[str]:
    """Every Parquet file in the directories of the table and of what stages for it, referenced or not."""
    return {str(path) for path in (lake.warehouse / "crm").rglob("*.parquet")}


def partitions_done(ledger: Path, run: str) -> int:
    """Days whose chunk is done, read from the ledger's file while workers write to it."""
    query = "SELECT sum(json_array_length(partitions)) FROM chunk WHERE run_id = ? AND state = 'done'"
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        return int(db.execute(query, [run]).fetchone()[0] or 0)


def attempts(ledger: Path, run: str) -> list[tuple[str, int, str, str]]:
    """Every attempt at every chunk of a run: chunk, fence, worker, how it ended."""
    query = "SELECT chunk_id, fence, owner, state FROM attempt WHERE run_id = ? ORDER BY chunk_id, fence"
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        return db.execute(query, [run]).fetchall()


def _open(lake: Lake) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    for name, table in (("found", VALUE), ("campaigns", CAMPAIGNS)):
        _view(db, name, _files(lake, table), hive=False)
    _view(db, "raw", [str(lake.events / "*" / "*.parquet")], hive=True)
    return db


def _files(lake: Lake, table: str) -> list[str]:
    tasks = list(lake.catalog().load_table(table).scan().plan_files())
    assert not any(task.delete_files for task in tasks), "this reader does not apply deletes"
    return ["/" + task.file.file_path.removeprefix("file:").lstrip("/") for task in tasks]


def _view(db: duckdb.DuckDBPyConnection, name: str, paths: Sequence[str], *, hive: bool) -> None:
    # A view takes no parameters, so the paths are written as SQL text.
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    kind = "hive_partitioning = true, hive_types = {'event_date': DATE}" if hive else "hive_partitioning = false"
    db.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], {kind})")  # noqa: S608


def _one(db: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
    row = db.execute(query, list(parameters)).fetchone()
    assert row is not None
    return tuple(row)
