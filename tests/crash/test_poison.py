"""Chunks that take memory or their worker with them: recorded as such, tried smaller, quarantined; the others go on."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from errata.errors import RunFailed
from support.world import TRANSFORM, World
from support.worlds import WorldAt

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]

POISON = "2026-01-03"

HUNGRY = (
    TRANSFORM
    + """
import os

_right = build


def build(ctx, raw):
    if len(ctx.partitions) > 1 or "POISON" in ctx.partitions and not os.path.exists("CURED"):
        raise MemoryError("a list of every event")
    return _right(ctx, raw)
"""
)
DEADLY = (
    TRANSFORM
    + """

_right = build


def build(ctx, raw):
    import os

    if "POISON" in ctx.partitions and os.environ.get("ERRATA_TEST_DEADLY"):
        os._exit(9)
    return _right(ctx, raw)
"""
)
HEAVY = (
    TRANSFORM
    + """

_right = build


def build(ctx, raw):
    if len(ctx.partitions) > 1:
        raw = raw.withColumn("account", F.expr("left(repeat(account, 900000000), 2)"))
    return _right(ctx, raw)
"""
)


def test_a_chunk_that_needs_too_much_memory_is_tried_smaller_and_a_day_that_always_does_is_quarantined(
    world_at: WorldAt, tmp_path: Path
) -> None:
    """Four days in one chunk: cut at the first loss; three pass, the fourth waits for a person and then passes."""
    cured = tmp_path / "cured"
    world, run = world_at("approved", days=4, transform=HUNGRY.replace("POISON", POISON).replace("CURED", str(cured)))
    with pytest.raises(RunFailed, match="1 of 4 chunks failed"):
        world.client.run(run, parallel=1, as_="ana")
    assert chunks(world, run) == {
        ("2026-01-01",): ("done", None),
        ("2026-01-02",): ("done", None),
        (POISON,): ("quarantined", "memory"),
        ("2026-01-04",): ("done", None),
    }
    assert {code for code, state in attempts(world, run) if state != "adopted"} == {"memory"}
    cured.touch()
    world.client.retry(run, as_="ana")
    assert world.client.run(run, as_="ana").state == "staged"
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


@pytest.mark.slow
def test_a_day_that_kills_every_worker_is_cornered_and_quarantined(world_at: WorldAt) -> None:
    """Workers die on it (`os._exit`) until it stands alone and is set aside; attempts are capped, the rest is done."""
    world, run = world_at("approved", days=4, transform=DEADLY.replace("POISON", POISON))
    codes = []
    while not codes or codes[-1] == 9:
        codes.append(worker(world, run, ERRATA_TEST_DEADLY="1")[0])
        assert len(codes) <= 6, "the poison goes on killing"
    assert codes == [9, 9, 9, 1], "twice as it is, once alone, then nothing is left but a failed run"
    assert chunks(world, run)[(POISON,)] == ("quarantined", "owner-dead")
    assert [state for state, _ in chunks(world, run).values()].count("done") == 3
    world.client.retry(run, as_="ana")
    world.client.run(run, as_="ana")  # this process is not poisoned
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()


@pytest.mark.slow
def test_a_jvm_that_ran_out_of_memory_is_recorded_and_its_chunk_tried_smaller(world_at: WorldAt) -> None:
    """A gigabyte and a half in one row with one of heap: the JVM is gone, the worker says so, smaller chunks pass."""
    world, run = world_at("approved", days=4, transform=HEAVY)
    ends = []
    while world.client.status(run).state in ("approved", "running"):
        ends.append(worker(world, run))
        assert len(ends) <= 4, ends
    lost = [code for code, state in attempts(world, run) if state != "adopted"]
    assert lost
    assert set(lost) <= {"memory", "worker-died"}, lost
    assert all("Traceback" not in error for _, error in ends), ends
    assert ends[-1][0] == 0, ends
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    print(f"workers ended with {[code for code, _ in ends]}; attempts lost to {lost}")  # noqa: T201  with -rP


def worker(world: World, run: str, **environment: str) -> tuple[int, str]:
    """``errata run`` in a process with a JVM of its own: exit code and what it said."""
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "run", run, "--parallel", "1"]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=240)
    return done.returncode, done.stderr


def chunks(world: World, run: str) -> dict[tuple[str, ...], tuple[str, str | None]]:
    """The chunks that count, by partitions, straight from the ledger's file: state and error code."""
    query = "SELECT partitions, state, error_code FROM chunk WHERE run_id=? AND state != 'replaced' ORDER BY 1"
    rows = read(world, query, run)
    return {tuple(json.loads(names)): (state, None if state == "done" else code) for names, state, code in rows}


def attempts(world: World, run: str) -> list[tuple[str, str]]:
    return read(world, "SELECT error_code, state FROM attempt WHERE run_id=?", run)


def read(world: World, query: str, run: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(f"file:{world.root}/.errata/ledger.db?mode=ro", uri=True, timeout=30)) as db:
        return db.execute(query, [run]).fetchall()
