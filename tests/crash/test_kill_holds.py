"""``kill -9`` at every step of holding readers, on real tables, while another process asks and reads all the time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.attached import start
from support.ready_reader import reading
from support.waves import in_waves
from support.world import TABLE, World
from support.worlds import WorldAt

pytestmark = [pytest.mark.spark]
PROJECT = """
ready: {table: lake.errata.ready}
consumers:
  dashboard: {owner: ana, reads: [fin.sales], hold: {before: 1s, at_most: 1min, on_timeout: go}}
"""
POINTS = (
    "hold.after_open", "ready.before_commit", "ready.after_commit", "publish.after_intent", "publish.before_commit",
    "publish.after_commit", "publish.after_record",
)  # fmt: skip
UNDOING = ("ready.before_commit", "ready.after_commit", "rollback.after_commit")


def killed(world: World, point: str, *arguments: str) -> None:
    """The command in a process of its own, which ends at this point."""
    process = start(world.spark, "-C", str(world.root), "--as", "bo", *arguments, ERRATA_FAILPOINTS=point)
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {process.returncode}\n{error}"


def ask(world: World, *arguments: str) -> tuple[int, dict[str, object]]:
    """``errata ready`` as a shell script calls it."""
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "ready", TABLE, *arguments, "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_reader_beside_killed_publications_reads_only_what_it_was_promised(world_at: WorldAt, tmp_path: Path) -> None:
    """Two waves for each step that is killed, and a rollback that is killed too; every read is as it was promised."""
    world, run = world_at("validated", days=4, product=in_waves("size: 2, pause: 1s"), project=PROJECT)
    contents = {name: {day: rows([day]) for day in world.days}
                for name, rows in (("old", world.wrong), ("new", world.expected))}  # fmt: skip
    settings = {"root": str(world.root), "catalog": dict(world.lake.pyiceberg), "days": world.days}
    with reading(tmp_path / "reader", contents=contents, **settings) as end:
        for n, point in enumerate(POINTS):
            run = run if n == 0 else world.to("validated", reason=f"round {n}")
            killed(world, f"{point}=kill@{1 + n % 2}", "publish", run, "--wait", "--yes")
            assert world.client.publish(run, wait=True, as_="bo").state == "published"
            assert world.rows() == world.expected()
            killed(world, f"{UNDOING[n % 3]}=kill", "rollback", run, "--reason", "and back", "--yes")
            world.client.rollback(run, reason="and back", as_="bo")
            assert world.rows() == world.wrong()
        found = end()
    print(f"\n{found['counts']} beside {3 * len(POINTS)} commits")  # noqa: T201
    assert found["problem"] == ""
    assert all(min(one["reads"], one["waits"]) >= 10 for one in found["counts"]), found


@pytest.mark.slow
def test_a_script_that_asks_gets_an_exit_code_for_every_state(world_at: WorldAt) -> None:
    """Seven from the moment that readers are held, after a kill too; zero with the snapshot to read afterwards."""
    world, run = world_at("validated", days=2, project=PROJECT)
    assert ask(world)[0] == 0
    killed(world, "ready.after_commit=kill", "publish", run, "--wait", "--yes")
    code, told = ask(world, world.days[0])
    assert (code, told["ready"], [one["state"] for one in told["partitions"]]) == (7, False, ["held"])  # type: ignore[attr-defined]
    world.client.publish(run, wait=True, as_="bo")
    code, told = ask(world, "--wait", "30s")
    assert (code, {one["snapshot_id"] for one in told["partitions"]}) == (0, {str(world.snapshot())})  # type: ignore[attr-defined]
    assert ask(world, "2031-01-01")[0] == 0, "no correction concerns it"
