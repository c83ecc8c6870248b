"""Several sessions at once on one copy in a real PostgreSQL database: deliveries, other writers, readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from errata.engines.copies.postgres_copies import PostgresCopies
from errata.errors import AttemptLost, CopyChanged, CopyLocked, CopyOvertaken
from errata.failpoints import arm
from errata.model.copy.delivery import Swap
from errata.model.copy.marker import Content, Marker, MarkerState, expect_contents
from errata.model.copy.measure import measure_rows
from errata.model.copy.table import CopyColumn, CopyTable, name_staging
from errata.model.partition import Grain
from errata.testing.copies.lake_rows import Rows
from support.postgres import PostgresServer

COLUMNS = (CopyColumn("day", "day", "date"), CopyColumn("id", "id", "long"), CopyColumn("v", "v", "decimal(12, 2)"))
COPY = CopyTable("pg", "sales", COLUMNS, COLUMNS[0], Grain.DAY, lock_seconds=5)
DAYS = ("2026-01-01", "2026-01-02")
ROWS = 40
LOOK = "SELECT day::text, count(*), min(v)::int, max(v)::int FROM sales GROUP BY 1"


@pytest.fixture
def address(postgres: PostgresServer, database: str) -> Iterator[str]:
    pytest.importorskip("adbc_driver_postgresql")
    postgres.execute(
        "CREATE TABLE sales (day date, id bigint, v numeric(12,2))", "CREATE INDEX ON sales (day)", database=database
    )
    return postgres.url(database).replace("+psycopg", "")


def connect(address: str, **options: Any) -> Any:
    import psycopg

    return psycopg.connect(address, **options)


def build_rows(version: int, days: Sequence[str] = DAYS) -> list[dict[str, Any]]:
    """The rows of one version: every value names it."""
    from datetime import date

    return [
        {"day": date.fromisoformat(day), "id": n, "v": Decimal(version)} for day in days for n in range(ROWS)
    ]  # fmt: skip


def stage(copies: PostgresCopies, marker: Marker, version: int, days: Sequence[str] = DAYS) -> Swap:
    """Load one version, and expect what is on record."""
    rows = build_rows(version, days)
    staging = name_staging(COPY, marker.publication, marker.attempt)
    copies.load(COPY, staging, Rows(COPY, rows, 1000))
    contents = {name: Content(version, one) for name, one in measure_rows(COPY, rows).items()}
    return Swap(marker, staging, contents, {}, {})


def expect(copies: PostgresCopies, swap: Swap) -> Swap:
    recorded = copies.read_delivered(COPY, swap.partitions)
    return replace(swap, expected=expect_contents(swap.partitions, recorded), delivered=recorded)


def deliver(address: str, publication: str, version: int, days: Sequence[str] = DAYS) -> str:
    """Bring a version into the copy, looking again as long as others come first; returns what became of it."""
    copies = PostgresCopies({"pg": address})
    for attempt in range(1, 200):
        marker = Marker(publication, attempt)
        swap = expect(copies, stage(copies, marker, version, days))
        copies.open_marker(COPY, marker)
        try:
            copies.swap(COPY, swap)
        except CopyOvertaken:
            recorded = copies.read_delivered(COPY, days)
            if any(one.content.sequence > version for one in recorded.values()):
                return "superseded"
        except CopyChanged:
            return "changed"
        else:
            return "delivered"
        finally:
            copies.drop_staging(COPY, swap.staging)
    return "never"


def read(address: str) -> dict[str, list[int]]:
    with connect(address) as conn:
        rows = conn.execute("SELECT day::text, v::int FROM sales").fetchall()
    found: dict[str, list[int]] = {}
    for day, version in rows:
        found.setdefault(day, []).append(version)
    return found


def test_deliveries_at_once_leave_the_newest_once(address: str) -> None:
    """Six processes bring six versions in any order: the highest sequence stays, whole, and each marker ends once."""
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda n: deliver(address, f"bf-{n}-p1", n), (3, 1, 6, 2, 5, 4)))
    assert read(address) == {day: [6] * ROWS for day in DAYS}
    assert outcomes[2] == "delivered"
    assert set(outcomes) <= {"delivered", "superseded"}
    copies = PostgresCopies({"pg": address})
    done = [
        one for n in range(1, 7) for one in copies.list_markers(COPY, f"bf-{n}-p1") if one.state is MarkerState.DONE
    ]
    assert len(done) == outcomes.count("delivered")


def test_the_same_delivery_by_two_processes_lands_once(address: str) -> None:
    """A payer that was thought dead, and the one that took over: both stage, one swaps."""
    copies = PostgresCopies({"pg": address})
    swaps = []
    for attempt in (1, 2):
        swaps.append(stage(copies, Marker("bf-1-p1", attempt), 1))
        copies.open_marker(COPY, swaps[-1].marker)

    def swap(one: Swap) -> str:
        try:
            PostgresCopies({"pg": address}).swap(COPY, expect(copies, one))
        except (CopyOvertaken, AttemptLost) as refused:
            return refused.code
        return "delivered"

    with ThreadPoolExecutor(2) as pool:
        outcomes = sorted(pool.map(swap, swaps))
    assert read(address) == {day: [1] * ROWS for day in DAYS}
    assert outcomes.count("delivered") >= 1
    states = [one.state for one in copies.list_markers(COPY, "bf-1-p1")]
    assert states.count(MarkerState.DONE) == outcomes.count("delivered")


def test_a_zombie_loader_adds_nothing_to_the_copy(address: str) -> None:
    """A loader that stalled wakes up after another one has delivered: its staging is its own, its marker too late."""
    copies = PostgresCopies({"pg": address})
    stalled = stage(copies, Marker("bf-1-p1", 1), 1)
    taken_over = expect(copies, stage(copies, Marker("bf-1-p1", 2), 1))
    copies.open_marker(COPY, taken_over.marker)
    # it loads its rows again, into the table of its own name, between the check of the other one and its swap
    with connect(address, autocommit=True) as conn:
        conn.execute(f"INSERT INTO {stalled.staging} SELECT * FROM {stalled.staging}")
    copies.swap(COPY, taken_over)
    with pytest.raises(AttemptLost):
        copies.open_marker(COPY, stalled.marker)
    with pytest.raises(AttemptLost):
        copies.swap(COPY, expect(copies, stalled))
    assert read(address) == {day: [1] * ROWS for day in DAYS}


def test_rows_that_reach_staging_after_its_check_are_found(address: str) -> None:
    """The count and the checksum of the copy itself decide, after the rows are in it."""
    copies = PostgresCopies({"pg": address})
    deliver(address, "bf-1-p1", 1)
    swap = expect(copies, stage(copies, Marker("bf-2-p1", 1), 2))
    copies.open_marker(COPY, swap.marker)
    with connect(address, autocommit=True) as conn:
        conn.execute(f"INSERT INTO {swap.staging} SELECT * FROM {swap.staging} LIMIT 1")
    with pytest.raises(Exception, match="expected 80 rows to be inserted, found 81"):
        copies.swap(COPY, swap)
    with connect(address, autocommit=True) as conn:
        conn.execute(f"DELETE FROM {swap.staging} WHERE id = 0 AND day = '{DAYS[0]}'")
        conn.execute(f"INSERT INTO {swap.staging} SELECT '{DAYS[1]}', 0, 2 FROM generate_series(1, 1)")
    with pytest.raises(Exception, match=r"not those of the lake|rows to be inserted"):
        copies.swap(COPY, swap)
    assert read(address) == {day: [1] * ROWS for day in DAYS}


@pytest.mark.parametrize("point", ["copy.after_lock", "copy.after_compare", "copy.before_commit"])
def test_a_writer_in_the_scope_waits_for_the_swap_and_is_not_lost(address: str, point: str) -> None:
    """Whenever a live job inserts during the swap: its row is there afterwards, beside the new rows."""
    deliver(address, "bf-1-p1", 1)
    writer = ThreadPoolExecutor(1)
    pending: list[Any] = []

    def insert() -> None:
        with connect(address) as conn:
            conn.execute("INSERT INTO sales VALUES (%s, 999, 99)", (DAYS[0],))

    def write() -> None:
        pending.append(writer.submit(insert))
        time.sleep(0.3)
        # the row is not there yet: what the swap compared is what it replaces
        assert not pending[0].done()

    with arm(point, write):
        assert deliver(address, "bf-2-p1", 2) == "delivered"
    pending[0].result(timeout=10)
    assert read(address) == {DAYS[0]: [2] * ROWS + [99], DAYS[1]: [2] * ROWS}
    # and it is noticed when the partition is to be replaced again
    assert deliver(address, "bf-3-p1", 3) == "changed"
    writer.shutdown()


def test_no_row_of_a_live_job_is_ever_deleted(address: str) -> None:
    """A job inserts into the scope all the time: each delivery replaces only what it knows, or nothing."""
    deliver(address, "bf-0-p1", 1)
    stop, inserted = threading.Event(), [0]

    def write() -> None:
        with connect(address, autocommit=True) as conn:
            while not stop.is_set() and inserted[0] < 2_000:
                conn.execute("INSERT INTO sales VALUES (%s, 999, 99)", (DAYS[0],))
                inserted[0] += 1
                time.sleep(0.002)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        outcomes = [deliver(address, f"bf-{n}-p1", n) for n in range(2, 8)]
        stop.set()
        writing.result(timeout=30)
    found = read(address)
    assert found[DAYS[0]].count(99) == inserted[0]
    # the first may come before the writer; then every one is refused
    assert "changed" in outcomes
    assert len(set(found[DAYS[0]]) - {99}) == 1
    assert len(found[DAYS[0]]) == ROWS + inserted[0]


def test_readers_see_old_or_new_and_never_a_mixture(address: str) -> None:
    """A reader looks all the time, through twelve deliveries: each look shows one version, whole, of all partitions."""
    deliver(address, "bf-0-p1", 1)
    stop = threading.Event()
    looks: list[Mapping[str, list[int]]] = []

    def look() -> None:
        with connect(address, autocommit=True) as conn:
            while not stop.is_set():
                rows = conn.execute(LOOK).fetchall()
                looks.append({day: [count, low, high] for day, count, low, high in rows})

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        for n in range(2, 14):
            assert deliver(address, f"bf-{n}-p1", n) == "delivered"
        stop.set()
        looking.result(timeout=30)
    assert len(looks) > 20
    for found in looks:
        [[count, low, high]] = {tuple(one) for one in found.values()}
        assert (set(found), count, low) == (set(DAYS), ROWS, high)
    assert len({found[DAYS[0]][1] for found in looks}) > 1


def test_readers_are_not_kept_waiting(address: str) -> None:
    """While a swap has its lock, a reader gets its answer, and it is the old one."""
    deliver(address, "bf-1-p1", 1)
    seen: list[list[int]] = []

    def look() -> None:
        with connect(address, autocommit=True, options="-c lock_timeout=500") as conn:
            seen.append([row[0] for row in conn.execute("SELECT DISTINCT v::int FROM sales").fetchall()])

    with arm("copy.before_commit", look):
        assert deliver(address, "bf-2-p1", 2) == "delivered"
    assert seen == [[1]]


def test_a_swap_defines_nothing(address: str) -> None:
    """In some warehouses a definition commits what came before it: between BEGIN and COMMIT there is none."""
    copies = PostgresCopies({"pg": address})
    swap = expect(copies, stage(copies, Marker("bf-1-p1", 1), 1))
    copies.open_marker(COPY, swap.marker)
    with connect(address, autocommit=True) as conn:
        conn.execute("CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''DDL''; END'")
        conn.execute("CREATE EVENT TRIGGER none ON ddl_command_start EXECUTE FUNCTION refuse()")
    copies.swap(COPY, swap)
    assert read(address) == {day: [1] * ROWS for day in DAYS}


def test_disjoint_partitions_are_delivered_side_by_side(address: str) -> None:
    """Each delivery leaves the other's partitions alone."""
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda n: deliver(address, f"bf-{n}-p1", n + 1, DAYS[n : n + 1]), (0, 1)))
    assert outcomes == ["delivered", "delivered"]
    assert read(address) == {DAYS[0]: [1] * ROWS, DAYS[1]: [2] * ROWS}


def test_a_writer_that_holds_the_table_is_named_by_its_process(address: str) -> None:
    """Exit code 5 with the ids that an administrator needs; nothing is written and nothing waits for ever."""
    copies = PostgresCopies({"pg": address})
    swap = expect(copies, stage(copies, Marker("bf-1-p1", 1), 1))
    copies.open_marker(COPY, swap.marker)
    with connect(address) as conn:
        pid = conn.execute("SELECT pg_backend_pid()").fetchone()[0]
        conn.execute("INSERT INTO sales VALUES (%s, 1, 1)", (DAYS[0],))
        with pytest.raises(CopyLocked) as refused:
            copies.swap(replace(COPY, lock_seconds=0.2), swap)
        conn.rollback()
    assert refused.value.exit_code == 5
    assert refused.value.fields["blocked_by"] == [str(pid)]
    assert read(address) == {}
