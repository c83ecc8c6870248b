"""A process that asks before it reads, over and over: ``python -m support.ready_reader SETTINGS``.

``SETTINGS`` is a file with JSON: root, catalog, days, contents, stop, report. It ends when ``stop`` exists, or with the
first promise that was not kept, and writes what it found to ``report``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

import errata
from support.careful_reader import Answer, CarefulReader, find_answers

__all__ = ["ReadyReader", "reading"]

TABLE, READY = "fin.sales", "errata.ready"


class ReadyReader:
    """The two ways to ask, and the table, as a program outside Errata reads it."""

    def __init__(self, root: str, catalog: Mapping[str, str], days: Sequence[str]) -> None:
        self._client, self._catalog, self._days = errata.open(root), load_catalog("lake", **catalog), days

    def ask_ledger(self) -> dict[str, Answer]:
        """As ``errata ready`` answers."""
        found = self._client.ready(f"lake.{TABLE}", list(self._days)).partitions
        return {one.partition: Answer(one.state, one.snapshot_id, one.run_id, one.since) for one in found}

    def ask_table(self) -> dict[str, Answer]:
        """As the ready table says, in one snapshot."""
        try:
            rows = self._catalog.load_table(READY).scan().to_arrow().to_pylist()
        except NoSuchTableError:
            rows = []
        for row in rows:
            row["snapshot_id"] = None if row["snapshot_id"] is None else str(row["snapshot_id"])
        return find_answers((SimpleNamespace(**row) for row in rows), f"lake.{TABLE}", self._days)

    def read(self, snapshot_id: str | None) -> list[list[Any]]:
        """Rows of a snapshot or of main, sorted."""
        at = None if snapshot_id is None else int(snapshot_id)
        found = self._catalog.load_table(TABLE).scan(snapshot_id=at).to_arrow().to_pylist()
        return sorted([str(row["day"]), row["account"], str(row["gross"]), row["n"]] for row in found)


def main(place: Path) -> None:
    """Read until the end."""
    told = json.loads(place.read_text())
    reader = ReadyReader(told["root"], told["catalog"], told["days"])
    readers = [CarefulReader(ask, reader.read, told["contents"]) for ask in (reader.ask_ledger, reader.ask_table)]
    problem = ""
    try:
        while not Path(told["stop"]).exists():
            for one in readers:
                one.look()
    except AssertionError as error:
        problem = str(error)
    counts = [{"reads": one.reads, "waits": one.waits, "doubts": one.doubts} for one in readers]
    Path(told["report"]).write_text(json.dumps({"problem": problem, "counts": counts}))


@contextmanager
def reading(place: Path, **settings: Any) -> Iterator[Callable[[], dict[str, Any]]]:
    """The process beside what is done inside; the function ends it and returns its report."""
    place.mkdir()
    stop, report = place / "stop", place / "report.json"
    file = place / "settings.json"
    file.write_text(json.dumps({**settings, "stop": str(stop), "report": str(report)}, default=str))
    process = subprocess.Popen(
        [sys.executable, "-m", "support.ready_reader", str(file)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
    )

    def end() -> dict[str, Any]:
        stop.touch()
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
        found: dict[str, Any] = json.loads(report.read_text())
        return found

    try:
        yield end
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
