"""What a copy in PostgreSQL costs: deliveries against a bare load, rows outside the scope, memory."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from tests.support.postgres import INSTALL, PostgresServer, server_programs

from benchmarks import process
from benchmarks.clock import Sample, sample
from benchmarks.lake import TABLE, Lake, Shape, make
from benchmarks.report import Goal, cases, goals, heading, lines, note
from benchmarks.rounds import QUICK, REPS, WARM, Ratio, Rounds
from errata.engines.copies.postgres_copies import PostgresCopies
from errata.ledger import OutboxItem
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain

__all__ = ["main"]

_VARIABLE = "ERRATA_BENCH_COPY"
_COLUMNS = "day date, account bigint, total numeric(18,2), n bigint, low numeric(12,2), high numeric(12,2)"
# as it comes, except that nothing cleans up in the background of a measurement
_SETTINGS = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "autovacuum=off", "timezone=UTC")
_DAYS = 5
_WHY = (
    "every row is written twice, once to staging, where nobody is kept waiting, and once in the transaction that "
    "replaces it. Each row is hashed twice as all engines do it: in Python while it is loaded, and in PostgreSQL in "
    "staging. PostgreSQL reads the rows three more times for its own hash: before they are deleted, after they are "
    "inserted, and after the commit. The bare load compares nothing."
)


def main(root: Path, *, quick: bool) -> None:
    """Deliveries of many rows, and of few rows next to many others."""
    rows = 20_000 if quick else 5_000_000
    heading(
        f"Copies in PostgreSQL: {rows:,} rows in {_DAYS} days",
        "`errata deliver` after a publication or a rollback of all days, as a process. The bare load is a process as "
        "well: in one transaction it deletes the same days of a table with the same index and copies the same files by "
        "binary COPY (ADBC). It compares nothing. PostgreSQL has its default settings, without autovacuum; both tables "
        "are vacuumed before each act. CPU includes PostgreSQL.",
    )
    if server_programs() is None or find_spec("adbc_driver_postgresql") is None or find_spec("psycopg") is None:
        told = INSTALL if server_programs() is None else 'a driver is missing (pip install "errata[postgres-copy]")'
        note(f"Not measured: {told}.")
        return
    with _open_server() as server:
        big = _make_world(root, server, rows, {"big": 0})
        small = _make_world(root, server, 10_000, {"once": rows // 20, "ten": rows // 2})
        found, peaks, locked = _measure_deliveries(server, big)
        parts = {"the transaction, which keeps other writers waiting": median(locked)} | _measure_hashes(server, big)
        swaps, base = _measure_swaps(server, small)
        _report(found, parts, peaks, swaps, base)
        big.close()
        small.close()


@contextmanager
def _open_server() -> Iterator[PostgresServer]:
    process.adopt_orphans()  # so that its CPU is counted
    server = PostgresServer.start(settings=_SETTINGS)
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(server.directory)


def _make_world(root: Path, server: PostgresServer, rows: int, outside: Mapping[str, int]) -> Lake:
    """A lake, and its copies by name, which have this many rows of other days already."""
    copies = ", ".join(f"{{warehouse: pg, table: {name}}}" for name in outside)
    project = f'warehouses:\n  pg: {{type: postgres, uri: "${{{_VARIABLE}}}"}}\n'
    per_day = rows // _DAYS
    lake = make(root / next(iter(outside)), Shape(_DAYS, per_day, per_day * 1_000, copy=copies, extra=project))
    for name, others in outside.items():
        for table in (name, f"{name}_bare"):
            server.execute(f"CREATE TABLE {table} ({_COLUMNS})", f"CREATE INDEX ON {table} (day)")
        days = f"SELECT date '2010-01-01' + n % 1000, n, n, 1, 1, 1 FROM generate_series(1, {others}) n"  # noqa: S608
        server.execute(f"INSERT INTO {name} {days}")
    return lake


def _address(server: PostgresServer) -> str:
    return server.url().replace("+psycopg", "")


def _turn(lake: Lake, number: int) -> None:
    """Publish, and the next time roll back: each leaves every day owed to the copies, out of reach from here."""
    if number % 2:
        lake.client.rollback(lake.last, reason="bench")
    else:
        lake.governed()


def _deliver(server: PostgresServer, lake: Lake) -> process.Done:
    command = [sys.executable, "-m", "errata", "-C", str(lake.root), "--json", "-y", "deliver", "--timeout", "1h"]
    return process.run(command, env={_VARIABLE: _address(server)})


def _load(server: PostgresServer, lake: Lake, table: str) -> process.Done:
    metadata = lake.engines.lake_rows.list_metadata(TABLE)[-1]
    words = (metadata, _address(server), table, lake.shape.names[0], lake.shape.names[-1])
    return process.run([sys.executable, "-m", "benchmarks.bare_copy", *words], cwd=Path(__file__).parents[1])


def _measure_deliveries(server: PostgresServer, lake: Lake) -> tuple[Rounds, list[float], list[float]]:
    """Deliveries and bare loads in turn; memory and the seconds of the transaction of each delivery."""
    found, peaks, locked = Rounds(), list[float](), list[float]()
    table = lake.root.name
    for number in range(WARM + REPS):
        _turn(lake, number)
        taken: dict[str, Sample] = {}
        acts = {
            "deliver": lambda: peaks.append(_deliver(server, lake).megabytes),
            "bare": lambda: _load(server, lake, f"{table}_bare"),
        }
        for name, act in acts.items() if number % 4 < 2 else reversed(acts.items()):
            server.execute(f"VACUUM ANALYZE {table}", f"VACUUM ANALYZE {table}_bare", "CHECKPOINT")
            taken[name] = sample(act)
        _require_equal(server, table)
        told = ", ".join(f"{n} {one.wall:.1f}/{one.cpu:.1f}" for n, one in taken.items())
        print(f"round {number}: {told}", file=sys.stderr, flush=True)
        if number >= WARM:
            found.rounds.append(taken)
            locked.append(_read_items(lake, 1)[0].result["seconds"])
    return found, peaks, locked


def _read_items(lake: Lake, last: int) -> tuple[OutboxItem, ...]:
    return lake.client._workspace.ledger.outbox.list()[-last:]  # noqa: SLF001 - a benchmark may look inside


def _measure_hashes(server: PostgresServer, lake: Lake) -> dict[str, float]:
    """Seconds of PostgreSQL for the hash of all engines and for its own, of all rows of the copy."""
    kinds = {"day": "date", "account": "long", "total": "decimal(18, 2)", "n": "long"}
    kinds |= dict.fromkeys(("low", "high"), "decimal(12, 2)")
    columns = tuple(CopyColumn(name, name, kind) for name, kind in kinds.items())
    copy = CopyTable("pg", lake.root.name, columns, columns[0], Grain.DAY)
    copies, days = PostgresCopies({"pg": _address(server)}), lake.shape.names
    started = time.monotonic()
    known = copies.measure(copy, days)
    between = time.monotonic()
    copies.measure(copy, days, known=known)
    return {
        "a look at all rows by the hash of all engines": between - started,
        "a look at all rows by PostgreSQL's own hash": time.monotonic() - between,
    }


def _require_equal(server: PostgresServer, table: str) -> None:
    """Both ways must have brought the same rows."""
    sums = "count(*), sum(account), sum(total), sum(n), sum(low), sum(high)"
    both = [server.execute(f"SELECT {sums} FROM {one}") for one in (table, f"{table}_bare")]  # noqa: S608 - our own
    if both[0] != both[1]:
        sys.exit(f"the copy has {both[0]}, the bare load {both[1]}")


def _measure_swaps(server: PostgresServer, lake: Lake) -> tuple[dict[str, list[float]], list[float]]:
    """Seconds of the transactions by copy, and the memory of deliveries of few rows."""
    seconds: dict[str, list[float]] = {"once": [], "ten": []}
    base: list[float] = []
    for number in range(WARM + (1 if QUICK else 2 * REPS)):
        _turn(lake, number)
        server.execute("VACUUM ANALYZE once", "VACUUM ANALYZE ten", "CHECKPOINT")
        base.append(_deliver(server, lake).megabytes)
        for item in _read_items(lake, 2) if number >= WARM else ():
            seconds[item.consumer.removeprefix("pg:")].append(item.result["seconds"])
    return seconds, base


def _report(
    found: Rounds,
    parts: Mapping[str, float],
    peaks: list[float],
    swaps: Mapping[str, list[float]],
    base: list[float],
) -> None:
    cases(found, "bare", {"deliver": "errata deliver", "bare": "DELETE and COPY in one transaction"})
    note("Parts of a delivery:\n")
    lines(("part", "wall s"), [(name, f"{seconds:.1f}") for name, seconds in parts.items()])
    note("The transaction that replaces 10,000 rows, next to others that it leaves alone:\n")
    lines(
        ("rows outside", "swap s"),
        [("once", f"{median(swaps['once']):.3f}"), ("ten times as many", f"{median(swaps['ten']):.3f}")],
    )
    grown = [ten / once for once, ten in zip(swaps["once"], swaps["ten"], strict=True)]
    note(f"Memory at its peak: {max(peaks):.0f} MB, and {median(base):.0f} MB for 10,000 rows.")
    goals(
        Goal("deliver ÷ bare load, wall", found.ratio("deliver", "bare"), at_most=1.25, why=_WHY),
        Goal("swap next to ten times the rows ÷ once", Ratio.of(grown), at_most=1.2),
        Goal(
            "memory above a delivery of few rows, MB",
            Ratio.of([max(peaks) - median(base)]),
            at_most=100,
            digits=0,
        ),
    )
