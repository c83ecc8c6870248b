"""Workers that Errata starts, follows and stops on a real standalone cluster: kills in between, nothing left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster.standalone import Cluster, cluster, environment, processes, until
from cluster.test_standalone import SLOW, SPARK, finish, owners
from support.world import World

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1200)]

Make = Callable[..., World]
CORES = 2
DECLARED = """
clusters:
  standalone: {{master: "{master}", release: "4.1"}}
"""


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of two cores each."""
    with cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=2) as found:
        yield found


@pytest.fixture
def world(make_world: Make, spark_cluster: Cluster) -> Iterator[World]:
    """Five wrong days in five chunks; the ledger is a file, because all drivers run on this machine."""
    made = make_world(days=5, chunk_bytes="1", transform=SLOW)
    made.client.close()
    (made.root / "transforms/pace.py").write_text("SECONDS = 0.5\n")
    place = made.root / "errata.yaml"
    before, _, rest = place.read_text().partition("spark:\n")
    rest = rest[rest.index("people:") :]
    settings = SPARK.format(master=spark_cluster.url, cores=CORES).lstrip()
    place.write_text(before + settings + rest + DECLARED.format(master=spark_cluster.url))
    made.open()
    yield made
    made.client.close()
    left = list_drivers(made)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "drivers were left running"


def test_killed_and_started_again_the_command_goes_on_with_the_same_drivers(
    world: World, spark_cluster: Cluster
) -> None:
    """Killed with kill -9, the drivers go on; a second command follows them, and in the end nothing runs."""
    run = world.to("approved")
    first = submit(world, run, "--start", "standalone", "--workers", "2", "--parallel", "1")
    until(lambda: len(owners(world, run, "adopted")) == 2, "a chunk done by each driver", 400)
    before = list_drivers(world)
    first.kill()
    first.communicate(timeout=60)
    assert first.returncode == -signal.SIGKILL
    assert list_drivers(world) == before
    second = submit(world, run, "--start", "standalone", "--json")
    out, said = second.communicate(timeout=400)
    assert second.returncode == 0, said
    view = json.loads(out)
    assert (view["submission"], view["joined"], view["workers"]) == (1, True, 2)
    assert {one["outcome"] for one in view["started"]} == {"succeeded"}
    assert len(adopted_chunks(world, run)) == len(world.days)
    assert len(owners(world, run, "adopted")) == 2, "a third driver was started"
    assert_nothing_runs(world, spark_cluster)
    finish(world, run)


@pytest.mark.parametrize("name", ["submit.after_intent", "submit.after_start", "submit.after_record"])
def test_killed_between_start_and_record_nothing_is_started_twice(
    world: World, spark_cluster: Cluster, name: str
) -> None:
    """Wherever it is killed, the next command finds what was started by its token."""
    run = world.to("approved")
    first = submit(world, run, "--start", "standalone", more={"ERRATA_FAILPOINTS": f"{name}=kill"})
    first.communicate(timeout=400)
    assert first.returncode == -signal.SIGKILL
    second = submit(world, run, "--start", "standalone", "--json")
    out, said = second.communicate(timeout=400)
    assert second.returncode == 0, said
    assert json.loads(out)["submission"] == 1
    assert len(owners(world, run, "adopted")) == 1, "a second driver was started"
    assert_nothing_runs(world, spark_cluster)
    finish(world, run)


def test_stopped_and_interrupted_nothing_is_left_and_chunks_are_kept(world: World, spark_cluster: Cluster) -> None:
    """--stop from elsewhere ends the drivers; so does an interrupt; a later start computes the rest only."""
    run = world.to("approved")
    first = submit(world, run, "--start", "standalone", "--parallel", "1")
    until(lambda: bool(adopted_chunks(world, run)), "a chunk", 400)
    out, said = submit(world, run, "--stop", "--json").communicate(timeout=400)
    assert [one["outcome"] for one in json.loads(out)["started"]] == ["stopped"], said
    assert_nothing_runs(world, spark_cluster)
    _, said = first.communicate(timeout=400)
    assert first.returncode != 0
    assert "no worker of" in " ".join(said.split())
    kept = adopted_chunks(world, run)
    second = submit(world, run, "--start", "standalone", "--parallel", "1")
    until(lambda: adopted_chunks(world, run) > kept, "another chunk", 400)
    second.send_signal(signal.SIGINT)
    _, said = second.communicate(timeout=400)
    assert second.returncode == 130, said
    assert_nothing_runs(world, spark_cluster)
    _, said = submit(world, run, "--start", "standalone").communicate(timeout=400)
    assert world.client.status(run).state == "staged", said
    done = [a for a in world.ledger.progress.attempts(run) if a.state.value == "adopted"]
    assert len(done) == len(world.days), "a chunk was computed twice"
    assert kept <= adopted_chunks(world, run)
    assert_nothing_runs(world, spark_cluster)
    finish(world, run)


def test_a_driver_that_cannot_start_is_reported_with_its_log(world: World) -> None:
    """What it said last, and where the rest is."""
    run = world.to("approved")
    failed = submit(world, run, "--start", "standalone", more={"SPARK_HOME": "/nowhere"})
    _, said = failed.communicate(timeout=400)
    assert failed.returncode != 0
    told = " ".join(said.split())
    assert "its driver ended with 12" in told, told
    (log,) = (world.root / ".errata/workers").glob("*.log")
    assert log.name in said.replace("\n", "")
    assert "/nowhere" in log.read_text()


def submit(world: World, run: str, *words: str, more: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "submit", run, *words]
    return subprocess.Popen(
        command,
        env=environment() | (more or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def list_drivers(world: World) -> list[int]:
    """Process ids of all workers of this project."""
    return sorted(pid for pid, _, line in processes() if str(world.root) in line and " run bf-" in line)


def adopted_chunks(world: World, run: str) -> set[Any]:
    return {a.chunk_id for a in world.ledger.progress.attempts(run) if a.state.value == "adopted"}


def assert_nothing_runs(world: World, spark_cluster: Cluster) -> None:
    """Neither a driver here nor an application or an executor on the cluster."""
    assert list_drivers(world) == []
    until(lambda: not spark_cluster.applications(), "the master to forget the application", 60)
    until(lambda: not spark_cluster.executors(), "the executors to end", 60)
