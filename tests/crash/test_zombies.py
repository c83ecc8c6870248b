"""A worker that was thought dead wakes up and writes: nothing of it counts.

The zombie is a real process group, Python and JVM, stopped with SIGSTOP before, inside or after its Spark write. Its
lease passes, a worker in the shared session computes the chunk, SIGCONT lets the zombie go on. One zombie serves all
rounds: it meets its end at every chunk of the run.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import errata
from support.chaos import amount
from support.statements import watched_statements
from support.world import TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]

LEASE = 2.0
PLACES = ("before the write", "inside the write", "after the write")


@pytest.mark.slow
def test_a_stopped_worker_that_wakes_up_is_refused(make_world: Make) -> None:
    """Stopped at each place, taken over, woken: its completion is refused and the result is exact."""
    haunt(make_world(days=3, chunk_bytes="1"), seed=5, rounds=3)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(n, marks=[pytest.mark.slow if n < 2 else pytest.mark.chaos, pytest.mark.timeout(1200)])
        for n in range(amount("ZOMBIES", 8))
    ],
)
def test_a_stopped_worker_that_wakes_up_is_refused_many_times(make_world: Make, seed: int) -> None:
    """The same, twenty-five rounds each, at places and moments drawn from the seed."""
    haunt(make_world(days=25, chunk_bytes="1"), seed=seed, rounds=25)


def haunt(world: World, *, seed: int, rounds: int) -> None:
    """One zombie, so many rounds, then the whole way to a publication."""
    chance = random.Random(seed)  # noqa: S311  a test that can be repeated
    first = list(PLACES)
    chance.shuffle(first)
    places = first + [chance.choice(PLACES) for _ in range(rounds - len(first))]
    run = world.to("approved")
    with zombie(world, run) as process:
        for place in places:
            one_round(world, run, process, place, chance)
        process.let_go()
        code, error = process.end()
    assert code == 0, error
    assert "Traceback" not in error
    assert world.client.status(run).state == "staged"
    stale = stale_attempts(world, run)
    assert len({chunk for chunk, _ in stale}) == rounds, "each round ends with a refusal that is in the audit"
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    left = files_of(world, {f"{run}/{chunk}/{fence}" for chunk, fence in stale})
    published = {path for paths in world.files().values() for path in paths}
    assert not left & published, "a zombie's file was published"
    told = f"seed {seed}: {rounds} rounds {dict(Counter(places))}; {len(left)} files written in vain, 0 published"
    print(told)  # noqa: T201  shown with -rP and when it fails


def one_round(world: World, run: str, process: Zombie, place: str, chance: random.Random) -> None:
    """Stop the zombie at the place, let another worker finish its chunk, wake it, wait until it was refused."""
    process.reach("before")
    if place != "before the write":
        process.pass_by("before")
    if place == "after the write":
        process.reach("after")
    if place == "inside the write":
        time.sleep(chance.uniform(0.0, 0.4))
    process.stop()
    chunk, fence = holding(world, run, process.pid)
    wait_until(lambda: lease_is_over(world, run, chunk), "the lease did not pass")
    world.client.run(run, parallel=1, max_chunks=1, as_="ana")
    assert adopted(world, run, chunk) == fence + 1, f"{place}: {chunk} was not taken over"
    process.pass_by("before")
    process.send(signal.SIGCONT)
    wait_until(lambda: process.pass_by("after") or (chunk, fence) in stale_attempts(world, run), "it was not refused")
    assert adopted(world, run, chunk) == fence + 1


@pytest.mark.slow
def test_a_worker_whose_heart_stopped_learns_it_and_its_spark_jobs_are_cancelled(
    world_at: WorldAt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only the heartbeat thread is frozen: the chunk is taken over, and the old attempt ends when it learns."""
    slow = tmp_path / "slow"
    world, run = world_at("approved", days=1, transform=SLOW_ONCE.replace("FLAG", str(slow)))
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "1")
    slow.touch()
    frozen, hearts = threading.Event(), list[str]()

    def freeze_first_heart(_: str) -> None:
        thread = threading.current_thread().name
        if thread.startswith("heart-"):
            hearts.append(thread)
            if thread == hearts[0]:
                frozen.wait(90)

    tracker = world.spark.sparkContext.statusTracker()
    with (
        errata.open(str(world.root), spark=world.spark, narrate=world.said.append) as first,
        ThreadPoolExecutor(1) as other,
        watched_statements(freeze_first_heart),
    ):
        old = other.submit(first.run, run, parallel=1, as_="ana")
        try:
            wait_until(
                lambda: any(map(tracker.getJobIdsForGroup, attempt_ids(world, run))), "the old attempt has no Spark job"
            )
            wait_until(lambda: lease_is_over(world, run, "c001"), "the lease did not pass")
            assert world.client.run(run, parallel=1, as_="ana").state == "staged"
            assert tracker.getActiveJobsIds(), "the old attempt's job should still be running"
        finally:
            thawed = time.monotonic()
            frozen.set()
        assert old.result(timeout=45).state == "staged"
        took = time.monotonic() - thawed
    assert took < 45, "the old attempt went on instead of being cancelled"
    assert ("c001", 1) in stale_attempts(world, run)
    wait_until(lambda: not tracker.getActiveJobsIds(), "its Spark job was not cancelled")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    print(f"the old attempt ended {took:.1f} s after it learned")  # noqa: T201  as above


SLOW_ONCE = (
    TRANSFORM
    + '''

def _wait(account):
    import time

    time.sleep(60)
    return account


_right = build


def build(ctx, raw):
    """The first to come takes the flag and the slow road."""
    from pathlib import Path

    try:
        Path("FLAG").unlink()
    except FileNotFoundError:
        return _right(ctx, raw)
    return _right(ctx, raw.withColumn("account", F.udf(_wait, "string")("account")))
'''
)


def _is_free(database: Path) -> bool:
    with closing(sqlite3.connect(database, timeout=0.2, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        return True


def _stands_still(group: int) -> bool:
    """Whether every thread of the process group is stopped: one that is not could still take a lock."""
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            state, _, its_group, *_ = stat.read_text().rpartition(") ")[2].split()
            if int(its_group) == group and state not in "TZX":
                return False
    return True


class Zombie:
    """``errata run`` in a process group of its own, which stops at two places of every chunk until it may pass."""

    def __init__(self, world: World, run: str) -> None:
        self._markers = {"before": world.root / "before", "after": world.root / "after"}
        points = [f"stage.{name}_commit=pause:{marker}" for name, marker in self._markers.items()]
        environment = {
            **os.environ,
            "ERRATA_FAILPOINTS": ",".join(points),
            "ERRATA_LEASE_SECONDS": str(LEASE),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "run", run, "--parallel", "1"]
        self._error = world.root / "zombie.err"
        self._databases = [world.root / ".errata" / name for name in ("ledger.db", "catalog.db")]
        with self._error.open("wb") as out:
            self._process = subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=out, start_new_session=True
            )
        self._free = threading.Event()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: int) -> None:
        """To Python and JVM alike."""
        os.killpg(self.pid, number)

    def stop(self) -> None:
        """Stop it, but not while it holds a lock of SQLite: nobody else could write until it goes on or dies."""
        for _ in range(200):
            self.send(signal.SIGSTOP)
            wait_until(lambda: _stands_still(self.pid), "it did not stop")
            if all(map(_is_free, self._databases)):
                return
            self.send(signal.SIGCONT)
            time.sleep(0.05)
        pytest.fail("the worker never let go of its databases")

    def reach(self, place: str) -> None:
        """Wait until it stands there; whatever else it stands at, it may pass."""
        others = [name for name in self._markers if name != place]

        def there() -> bool:
            for other in others:
                self.pass_by(other)
            assert self._process.poll() is None, f"the worker ended: {self._error.read_text()}"
            return self._markers[place].exists()

        wait_until(there, f"the worker did not get {place} its write")

    def pass_by(self, place: str) -> bool:
        """Let it pass; False, for use in conditions that wait for something else as well."""
        self._markers[place].unlink(missing_ok=True)
        return False

    def let_go(self) -> None:
        """Let it pass everywhere from now on."""

        def sweep() -> None:
            while not self._free.wait(0.05):
                for name in self._markers:
                    self.pass_by(name)

        threading.Thread(target=sweep, daemon=True).start()

    def end(self) -> tuple[int, str]:
        """Wait until it ends by itself."""
        code = self._process.wait(60)
        return code, self._error.read_text()

    def kill(self) -> None:
        """Leave nothing behind."""
        self._free.set()
        for number in (signal.SIGCONT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                self.send(number)
        self._process.wait()


@contextmanager
def zombie(world: World, run: str) -> Iterator[Zombie]:
    process = Zombie(world, run)
    try:
        yield process
    finally:
        process.kill()


def wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def query(world: World, text: str, *values: object) -> list[tuple[object, ...]]:
    """Straight from the ledger's file."""
    with closing(sqlite3.connect(f"file:{world.root}/.errata/ledger.db?mode=ro", uri=True, timeout=30)) as db:
        return db.execute(text, values).fetchall()


def holding(world: World, run: str, pid: int) -> tuple[str, int]:
    """The chunk and fence that this process has."""
    text = "SELECT chunk_id, fence FROM attempt WHERE run_id=? AND pid=? AND state='running'"
    ((chunk, fence),) = query(world, text, run, pid)
    return str(chunk), int(str(fence))


def lease_is_over(world: World, run: str, chunk: str) -> bool:
    text = "SELECT max(lease_until) FROM attempt WHERE run_id=? AND chunk_id=?"
    return int(str(query(world, text, run, chunk)[0][0])) < time.time() * 1000


def adopted(world: World, run: str, chunk: str) -> int:
    text = "SELECT fence FROM attempt WHERE run_id=? AND chunk_id=? AND state='adopted'"
    return int(str(query(world, text, run, chunk)[0][0]))


def stale_attempts(world: World, run: str) -> set[tuple[str, int]]:
    """Chunk and fence of every completion that was refused for its fence."""
    text = "SELECT body ->> 'chunk', body ->> 'fence' FROM audit WHERE run_id=? AND action='STALE_FENCE'"
    return {(str(chunk), int(str(fence))) for chunk, fence in query(world, text, run)}


def attempt_ids(world: World, run: str) -> list[str]:
    """Every attempt as its Spark jobs and its snapshot are named."""
    text = "SELECT run_id || '/' || chunk_id || '/' || fence || '/' || started_at FROM attempt WHERE run_id=?"
    return [str(name) for (name,) in query(world, text, run)]


def files_of(world: World, named: set[str]) -> set[str]:
    """Data files that snapshots of these attempts (run, chunk and fence) added to the table."""
    table, found = world.table(), set()
    for snapshot in table.snapshots():
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if summary.get("errata.attempt", "").rpartition("/")[0] not in named:
            continue
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                found |= {entry.data_file.file_path for entry in entries}
    return found
