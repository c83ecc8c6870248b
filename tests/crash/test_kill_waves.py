"""``kill -9`` between two waves, and while a candidate is given a name: the same command again goes on."""

from __future__ import annotations

import itertools
import signal
from datetime import datetime

import pytest

from support.attached import start
from support.waves import ALONE, in_waves
from support.world import World
from support.worlds import WorldAt

pytestmark = [pytest.mark.spark]
IN_WAVES = in_waves("size: 1, pause: 1s")


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        "waves.between=kill",
        "publish.after_commit=kill@2",
        "publish.before_commit=kill@2",
        "publish.after_record=kill@2",
    ],
)
def test_killed_among_waves_each_is_published_once_and_the_pause_is_kept(world_at: WorldAt, point: str) -> None:
    """What landed is found, what did not is done, and no wave goes before its time."""
    world, run = world_at("validated", days=3, product=IN_WAVES)
    _killed(world, point, "publish", run, "--wait", "--yes", person="bo")
    view = world.client.publish(run, wait=True, as_="bo")
    assert (view.state, world.rows()) == ("published", world.expected())
    landed = [p for p in world.ledger.publications.list(run) if p.state.value == "committed"]
    assert [p.partitions for p in landed] == [(day,) for day in reversed(world.days)]
    told = [str(p.settled_at) for p in landed]
    assert all(_seconds(later) - _seconds(earlier) >= 1.0 for earlier, later in itertools.pairwise(told))


STREAMED = in_waves("size: 1, release: none", ALONE)


@pytest.mark.parametrize(
    "point",
    [
        "waves.after_verdict=kill@2",
        pytest.param("waves.between=kill", marks=pytest.mark.slow),
        pytest.param("publish.before_commit=kill@2", marks=pytest.mark.slow),
        pytest.param("publish.after_commit=kill@2", marks=pytest.mark.slow),
        pytest.param("stage.after_commit=kill@3", marks=pytest.mark.slow),
        pytest.param("validate.after_measure=kill@2", marks=pytest.mark.slow),
    ],
)
def test_killed_while_it_computes_and_publishes_whole_waves_are_visible_and_the_same_command_continues(
    world_at: WorldAt, point: str
) -> None:
    """Every day is either wholly old or wholly new at any time, and in the end each was published once, in order."""
    world, run = world_at("approved", days=3, chunk_bytes="1", product=STREAMED)
    _killed(world, point, "run", run, "--publish", "--parallel", "1", person="cy")
    out = {day for p in world.ledger.publications.list(run) if p.state.value == "committed" for day in p.partitions}
    seen = world.rows()
    for day in world.days:
        rows = [row for row in seen if row[0] == day]
        landed = rows == world.expected([day])
        assert landed or rows == world.wrong([day])
        # a commit whose process died before it was recorded is on the table and not in the ledger
        assert landed or day not in out
    assert seen != world.expected()
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert world.rows() == world.expected()
    committed = [p for p in world.ledger.publications.list(run) if p.state.value == "committed"]
    assert [p.partitions for p in committed] == [(day,) for day in reversed(world.days)]


@pytest.mark.parametrize(
    "point",
    [
        "dark.after_tag",
        pytest.param("dark.after_intent", marks=pytest.mark.slow),
        pytest.param("dark.after_view", marks=pytest.mark.slow),
    ],
)
def test_killed_while_naming_a_candidate_the_command_ends_it_and_cleanup_finds_all(
    world_at: WorldAt, point: str
) -> None:
    """Main was never touched; what was made is on the record before it is made, so nothing is left behind."""
    world, run = world_at("validated", days=1)
    before = world.rows()
    _killed(world, point, "publish", run, "--dark", "--compare", "--name", "preview", "--yes", person="bo")
    assert world.rows() == before
    assert ("preview" in world.refs()) == (point != "dark.after_intent")
    view = world.client.dark(run, name="preview", compare=True, as_="bo")
    assert (view.already, view.warnings) == (False, ())
    assert {row.change for row in world.sql(f"SELECT change FROM {view.view}")} == {"changed"}
    world.client.cancel(run, reason="no longer needed", as_="ana")
    world.client.cleanup(as_="ana")
    assert {"preview", "preview_before"}.isdisjoint(world.refs())
    assert not world.sql("SHOW VIEWS IN lake.fin")


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _killed(world: World, point: str, *arguments: str, person: str) -> None:
    armed = point if "=" in point else f"{point}=kill"
    process = start(world.spark, "-C", str(world.root), "--as", person, *arguments, ERRATA_FAILPOINTS=armed)
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {process.returncode}\n{error}"
