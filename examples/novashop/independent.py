"""An independent reader of the lake and the ledger: pyiceberg, DuckDB and SQLite alone, nothing of Errata."""

from __future__ import annotations

import gzip
import sqlite3
from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples.finsight.lake import Lake
from examples.novashop import shop

LOST = frozenset(shop.list_lost_hours())
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """An event in the table."""

    event_id: str
    hour: str
    user_id: str
    action: str
    product_id: str
    origin: str | None
    rule: str | None

    @property
    def key(self) -> Key:
        """What happened, without when exactly."""
        return (self.hour, self.user_id, self.action, self.product_id)


def read_events(lake: Lake, snapshot: int | None = None) -> list[Row]:
    """Every event of today, at a snapshot or now."""
    table = lake.catalog().load_table("raw.events")
    rows = table.scan(snapshot_id=snapshot, row_filter=f"ts >= '{shop.MONDAY.isoformat()}'").to_arrow().to_pylist()
    return [_to_row(row) for row in rows]


def _to_row(row: dict[str, Any]) -> Row:
    at: datetime = row["ts"]
    hour = f"{at.astimezone(UTC):%Y-%m-%dT%H}"
    rule = f"{row['rule']} {row['rule_version']}" if row["rule"] else None
    return Row(row["event_id"], hour, row["user_id"], row["action"], row["product_id"], row["origin"], rule)


@dataclass(frozen=True, slots=True)
class Compared:
    """The lost hours beside what really happened."""

    twice: int  # events that are there more often than they happened
    missing: int
    rows: int


def compare(rows: list[Row], without: Collection[str] = ()) -> Compared:
    """Compare the lost hours, event by event, with what the generator says happened, without some users."""
    happened = [event for event in shop.live_monday().truth if event.user_id not in without]
    truth = Counter({key: n for key, n in shop.count_rows(happened).items() if key[0] in LOST})
    found = Counter(row.key for row in rows if row.hour in LOST)
    return Compared((found - truth).total(), (truth - found).total(), found.total())


def count_repeated_ids(rows: list[Row]) -> int:
    """Ids that are there more than once."""
    return sum(1 for count in Counter(row.event_id for row in rows).values() if count > 1)


def count_origins(rows: list[Row]) -> dict[str, int]:
    """Events of the lost hours by rule."""
    return dict(Counter(row.rule or "recorded" for row in rows if row.hour in LOST))


def read_funnel(lake: Lake) -> tuple[int, int]:
    """Users that saw a product and users that bought, summed over the lost hours, by DuckDB."""
    import duckdb

    with duckdb.connect() as connection:
        rows = lake.catalog().load_table("app.funnels").scan().to_arrow()  # noqa: F841 - DuckDB finds it by name
        found = connection.execute(
            "SELECT sum(viewed), sum(bought) FROM rows WHERE hour >= ? AND hour < ?",
            [shop.MONDAY.replace(hour=shop.LOST.start), shop.MONDAY.replace(hour=shop.LOST.stop)],
        ).fetchone()
    assert found is not None
    return int(found[0] or 0), int(found[1] or 0)


def read_attribution(lake: Lake) -> tuple[int, int]:
    """Purchases of today, and those that are attributed."""
    rows = lake.catalog().load_table("app.attribution").scan().to_arrow().to_pylist()
    (today,) = [row for row in rows if row["day"] == shop.MONDAY.date()]
    return today["purchases"], today["attributed"]


@dataclass(frozen=True, slots=True)
class WaveTimes:
    """When a wave was visible in the lake and in the warehouse, and when the last chunk of the run was computed."""

    visible: list[datetime]
    delivered: list[datetime]
    computed: list[datetime]


def read_wave_times(project: Path, run: str) -> WaveTimes:
    """From the ledger's own file."""
    with closing(sqlite3.connect(f"file:{project / '.errata' / 'ledger.db'}?mode=ro", uri=True)) as ledger:
        visible = _times(ledger, "SELECT settled_at FROM publication WHERE run_id = ? AND kind = 'publish' "
                                 "AND state = 'committed' ORDER BY settled_at", run)  # fmt: skip
        computed = _times(ledger, "SELECT ended_at FROM attempt WHERE run_id = ? AND state = 'adopted' "
                                  "ORDER BY ended_at", run)  # fmt: skip
        delivered = _times(ledger, "SELECT ended_at FROM outbox_item WHERE run_id = ? AND effect = 'copy' "
                                   "AND state = 'paid' ORDER BY ended_at", run)  # fmt: skip
    return WaveTimes(visible, delivered, computed)


def _times(ledger: sqlite3.Connection, query: str, run: str) -> list[datetime]:
    return [datetime.fromisoformat(at) for (at,) in ledger.execute(query, [run])]


@dataclass(frozen=True, slots=True)
class Traces:
    """Where rows of users are: rows of each branch and tag of each table, and recorded files."""

    states: dict[str, int]  # table@ref → rows
    searched: int
    files: list[str]
    searched_files: int

    @property
    def visible(self) -> int:
        """Rows at the head of a table."""
        return sum(rows for name, rows in self.states.items() if name.endswith("@main"))

    @property
    def kept(self) -> list[str]:
        """Branches and tags with rows, which readers of the tables do not see."""
        return sorted(name for name, rows in self.states.items() if rows and not name.endswith("@main"))


def find_traces(project: Path, lake: Lake, users: Collection[str]) -> Traces:
    """Count rows of these users in every branch and tag of every table, by DuckDB, and look into recorded files."""
    states, files = {}, [path for path in sorted((project / "recordings").rglob("*")) if path.is_file()]
    catalog = lake.catalog()
    for namespace in catalog.list_namespaces():
        for name in catalog.list_tables(namespace):
            table = catalog.load_table(name)
            for ref, head in table.metadata.refs.items():
                rows = table.scan(snapshot_id=head.snapshot_id).to_arrow()
                states[f"{'.'.join(name)}@{ref}"] = count_rows_of(rows, users)
    found = [path.name for path in files if count_file_rows_of(path, users)]
    return Traces(states, len(states), found, len(files))


def count_rows_of(rows: Any, users: Collection[str]) -> int:
    """Rows in which some text contains one of the ids, whatever the column is called."""
    import duckdb

    texts = [field.name for field in rows.schema if str(field.type) in ("string", "large_string")]
    if not texts:
        return 0
    whole = " || ' ' || ".join(f"coalesce(\"{name}\", '')" for name in texts)
    with duckdb.connect() as connection:
        query = f"SELECT count(*) FROM rows WHERE regexp_matches({whole}, ?)"  # noqa: S608 - names of columns
        found = connection.execute(query, ["\\b(" + "|".join(users) + ")\\b"]).fetchone()
    assert found is not None
    return int(found[0])


def count_file_rows_of(path: Path, users: Collection[str]) -> int:
    """Rows of a recorded file with one of the ids."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return count_rows_of(pq.read_table(path), users)
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return sum(data.count(f'"{user}"'.encode()) for user in users)
