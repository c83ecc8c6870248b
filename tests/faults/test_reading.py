"""Whoever reads while partitions are published and rolled back sees all of the old or all of the new."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from support.chaos import amount
from support.world import World

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]

READS = amount("READS", 1000)
_LOOPS_LIMIT = 400


class Reader(threading.Thread):
    """Reads the whole scope over and over with pyiceberg, which knows nothing of Errata."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self.seen: Counter[str] = Counter()
        self.failed: Exception | None = None
        self.over = threading.Event()
        self._world = world
        self._states = {"old": world.wrong(), "new": world.expected()}

    def run(self) -> None:
        try:
            while not self.over.is_set():
                rows = self._world.rows()
                found = [name for name, state in self._states.items() if state == rows]
                self.seen[found[0] if found else "mixture"] += 1
        except Exception as error:  # noqa: BLE001  told by the test
            self.failed = error


@pytest.mark.slow
@pytest.mark.parametrize(
    "reads, days", [pytest.param(60, 4, id="few"), pytest.param(READS, 10, id="many", marks=pytest.mark.chaos)]
)
@pytest.mark.timeout(3600)
def test_a_reader_beside_publications_and_rollbacks_sees_no_mixture(make_world: Make, reads: int, days: int) -> None:
    """Several days as one unit, corrected and taken back again and again."""
    world = make_world(days=days)
    reader, loops = Reader(world), 0
    reader.start()
    while (sum(reader.seen.values()) < reads or loops < reads // 50) and loops < _LOOPS_LIMIT:
        run = world.to("published", reason=f"round {loops}")
        world.client.rollback(run, reason="and back", as_="bo")
        loops += 1
    reader.over.set()
    reader.join(timeout=60)
    print(f"\n{sum(reader.seen.values())} full reads beside {2 * loops} commits: {dict(reader.seen)}")  # noqa: T201
    assert reader.failed is None
    assert sum(reader.seen.values()) >= reads
    assert set(reader.seen) == {"old", "new"}
