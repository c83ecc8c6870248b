"""The project that earlier code left behind: where it is unpacked, what its runs are, and what its rows should be.

Iceberg's metadata name files by absolute paths, so the project can only be at the place where it was made. One process
at a time has that place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pyiceberg.catalog import load_catalog

__all__ = [
    "ARCHIVE", "BUNDLES", "DAYS", "GOLDENS", "KEY", "PLACE", "PRODUCT", "RUNS", "TABLE", "WARNING",
    "Row", "Run", "alone", "bad", "commands", "events", "right", "rows", "unpacked", "wrong",
]  # fmt: skip

PLACE = Path("/tmp/errata-old-project")  # noqa: S108  the paths in the metadata name it; see ``alone``
HERE = Path(__file__).parent
ARCHIVE = HERE / "old-project.tar.gz"
GOLDENS = HERE / "goldens"

PRODUCT, TABLE = "fin.sales", "lake.fin.sales"
WARNING = "gross moved"
"""The check that warns about every correction of this project: the history is twice as high as it should be."""
KEY = "test-only-signing.key"
DAYS = tuple(f"2026-01-{n:02d}" for n in range(1, 20))

Row = tuple[str, str, Decimal, int]


@dataclass(frozen=True)
class Run:
    """One run as it was left: its reason, which is its name here, its first and last day, and its state."""

    name: str
    first: int
    last: int
    state: str

    @property
    def days(self) -> tuple[str, ...]:
        return DAYS[self.first - 1 : self.last]

    @property
    def scope(self) -> str:
        return f"{self.days[0]}..{self.days[-1]}"


RUNS = {
    run.name: run
    for run in (
        Run("published", 7, 8, "published"),  # its warning accepted, released by a person, published by a program
        Run("taken-back", 9, 10, "rolled_back"),
        Run("approved", 1, 2, "approved"),
        Run("staged", 3, 4, "staged"),
        Run("validated", 5, 6, "validated"),  # its warning accepted and released, by the second person
        Run("cancelled", 11, 11, "cancelled"),
        Run("failed", 12, 12, "failed"),
        Run("rejected", 13, 13, "rejected"),
        Run("half-done", 14, 15, "running"),  # one chunk of two
        Run("half-published", 16, 17, "part_published"),  # the first day of two
        Run("planned", 18, 18, "planned"),
    )
}
"""In the order in which they were made; the last day belongs to none of them."""
BUNDLES = {name: f"evidence/{name}.errata" for name in ("published", "taken-back")}


def events(day: str) -> list[tuple[str, Decimal]]:
    """The raw events of a day; one of them is bad on a day that was staged and on one that was published."""
    number = int(day[-2:])
    found = [(f"a{n}", amount) for n in range(2) for amount in (Decimal(number + n), Decimal("0.50"))]
    return [*found, ("a0", Decimal("-1.00"))] if bad(day) else found


def bad(day: str) -> bool:
    """Whether the day has a row that goes into quarantine."""
    return day in (DAYS[2], DAYS[6])


def right(*days: str) -> list[Row]:
    """What the days should hold."""
    return [(day, f"a{n}", int(day[-2:]) + n + Decimal("0.50"), 2) for day in days for n in range(2)]


def wrong(*days: str) -> list[Row]:
    """What the days held before any correction."""
    return [(day, account, gross * 2, n) for day, account, gross, n in right(*days)]


def rows(*days: str) -> list[Row]:
    """What main holds, of these days or of all, by pyiceberg."""
    home = PLACE / ".errata"
    lake = {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}
    with closing(load_catalog("lake", **lake)) as catalog:
        found = catalog.load_table("fin.sales").scan().to_arrow().to_pylist()
    held = sorted((str(row["day"]), row["account"], row["gross"], row["n"]) for row in found)
    return [row for row in held if not days or row[0] in days]


def commands(name: str, run_id: str) -> dict[str, tuple[str, ...]]:
    """What is asked about a run, by the name of the golden text that holds the answer."""
    day = RUNS[name].days[0]
    return {
        f"{name}.status.json": ("status", run_id),
        f"{name}.show.json": ("show", run_id),
        f"{name}.why.json": ("why", TABLE, day),
        f"{name}.history.json": ("history", TABLE, day),
    }


@contextmanager
def alone() -> Iterator[Path]:
    """The place for one process: empty and its own at first, gone in the end, whoever left something there before."""
    lock = os.open(PLACE.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove()
        PLACE.mkdir(mode=0o700)
        try:
            yield PLACE
        finally:
            _remove()
    finally:
        os.close(lock)


@contextmanager
def unpacked() -> Iterator[Path]:
    """The project as it was left."""
    with alone() as place:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(place, filter="data")
        yield place


def _remove() -> None:
    if PLACE.exists():
        shutil.rmtree(PLACE)
