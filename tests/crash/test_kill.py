"""``kill -9`` at every effect boundary, then the same command again: same end state, nothing twice.

The killed command is a real Python process in the JVM of the tests (``support.attached``); one command of each kind,
and the random moments, take a JVM of their own with them. The repetition runs in the shared session.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import Differs
from errata.failpoints import NAMES
from errata.model.refs import undo_branch
from faults.commands import COMMANDS, Command, ended_right, killed
from support import attached
from support.ids import numbered
from support.world import PRODUCT, World
from support.worlds import WorldAt

At = Callable[[str], tuple[World, str]]
Make = Callable[..., World]
pytestmark = [pytest.mark.spark]

AT = {
    "plan": [name for name in NAMES if name.startswith("plan.")],
    "run": [name for name in NAMES if name.split(".")[0] in ("run", "chunk", "stage")],
    "validate": [name for name in NAMES if name.split(".")[0] in ("candidate", "validate")],
    "publish": [name for name in NAMES if name.startswith("publish.") and not name.endswith(".after_carry")],
    "rollback": [name for name in NAMES if name.startswith("rollback.") and not name.endswith(".after_carry")],
}

# of commands that change nothing for readers, one each, of the others around the intent and the commit;
# protocol/test_boundaries.py fails at all of them, and faults/test_matrix.py at all of the others on Iceberg
QUICK = {"plan.after_record", "stage.after_commit", "candidate.after_commit"}
QUICK |= {"publish.after_intent", "publish.before_commit", "publish.after_commit"}
QUICK |= {"rollback.before_commit", "rollback.after_commit"}

LEDGER = ("ledger.before_commit", "ledger.after_commit")  # passed by every command, many times


def _mostly_slow(points: list[str]) -> list[Any]:
    return [point if point in QUICK else pytest.param(point, marks=pytest.mark.slow) for point in points]


def test_every_failpoint_is_killed_at_somewhere_here() -> None:
    """A boundary that is added to the list must be added to this suite."""
    covered = {name for names in AT.values() for name in names} | {
        "settle.after_fence",
        "cleanup.after_remove",
        "audit.before_head",
    }
    covered |= {"corrections.before_commit"}  # test_kill_modes.py
    covered |= {name for name in NAMES if name.startswith("deliver.")}  # tests/protocol/test_outbox.py
    covered |= {name for name in NAMES if name.startswith("copy.")}  # tests/copies/test_kill_copies.py
    covered |= {"freeze.after_open"}  # tests/spark/test_freeze.py
    covered |= {name for name in NAMES if name.startswith("rebase.")}  # tests/spark/test_live_wins.py
    covered |= {name for name in NAMES if name.endswith(".after_carry")}  # test_kill_rewrite.py
    covered |= {"alarm.before_ring"}  # test_kill_decisions.py
    covered |= {"evidence.before_write"}  # test_kill_evidence.py
    covered |= {"erase.before_add"}  # test_kill_erase.py
    covered |= {name for name in NAMES if name.startswith("erasure.")}  # tests/protocol/test_erased_inputs.py
    covered |= {name for name in NAMES if name.split(".")[0] in ("waves", "dark")}  # test_kill_waves.py
    covered |= {name for name in NAMES if name.startswith("campaign.")}  # tests/protocol/test_campaigns.py
    covered |= {name for name in NAMES if name.split(".")[0] in ("hold", "ready")}  # test_kill_holds.py
    covered |= {name for name in NAMES if name.startswith("import.")}  # tests/unit/commands/test_import.py
    covered |= {"cleanup.after_expire"}  # tests/unit/commands/test_import.py
    covered |= {name for name in NAMES if name.startswith("record.")}  # tests/consumers/test_recorded_apis.py
    covered |= {name for name in NAMES if name.startswith("redact.")}  # tests/unit/commands/test_redaction.py
    covered |= {name for name in NAMES if name.startswith("dataset.")}  # tests/unit/commands/test_adopt_parquet.py
    covered |= {"topic.after_chunk"}  # tests/topics/test_topics_out.py
    covered |= {"lineage.after_send"}  # tests/crash/test_kill_lineage.py
    covered |= {name for name in NAMES if name.startswith("submit.")}  # tests/protocol/test_submissions.py
    covered |= set(LEDGER)
    assert covered == set(NAMES)


@pytest.mark.parametrize("point", _mostly_slow(AT["plan"]))
def test_killed_while_planning_the_same_plan_is_the_same_run(at: At, point: str) -> None:
    """The run is recorded once and its pins are there, whichever step was cut off."""
    world, _ = at("new")
    scope = f"{world.days[0]}..{world.days[1]}"
    _killed(world, point, "plan", PRODUCT, "--partitions", scope, "--reason", "doubled", person="ana")
    plan = world.plan()
    assert plan.already == (point != "plan.before_record")
    assert f"errata_{plan.id}_base" in world.refs()
    assert [run.run_id for run in world.client.status().runs] == [plan.id]


@pytest.mark.parametrize("point", _mostly_slow(AT["run"]))
def test_killed_while_running_done_chunks_are_kept_and_the_result_is_the_same(at: At, point: str) -> None:
    """Two chunks; the kill hits the second time where that is possible, so one of them is done already."""
    world, run = at("approved")
    nth = "@2" if point.startswith(("chunk.", "stage.")) else ""
    _killed(world, point, "run", run, "--parallel", "1", person="ana", nth=nth)
    done = {c.chunk_id for c in world.ledger.progress.chunks(run) if c.state.value == "done"}
    assert len(done) == {"stage.after_adopt": 2, "run.before_staged": 2}.get(point, 1 if nth else 0)
    view = world.client.run(run, as_="ana")
    attempts = world.ledger.progress.attempts(run)
    assert view.state == "staged"
    assert all(a.fence == 1 for a in attempts if a.chunk_id in done), "a completed chunk was computed again"
    _finish(world, run)


@pytest.mark.parametrize("point", _mostly_slow(AT["validate"]))
def test_killed_while_validating_the_verdict_is_the_same(at: At, point: str) -> None:
    """The candidate is found again by its branch, and measurements are not mixed."""
    world, run = at("staged")
    _killed(world, point, "validate", run, person="ana")
    assert world.client.validate(run, as_="ana").passed
    assert len([ref for ref in world.refs() if "_c" in ref.removeprefix("errata_")]) == 1
    _finish(world, run)


@pytest.mark.parametrize("point", [
    point if point == "candidate.after_commit" else pytest.param(point, marks=pytest.mark.slow)
    for point in (*AT["run"], *AT["validate"])
])  # fmt: skip
def test_killed_while_attesting_main_is_left_alone(at: At, point: str) -> None:
    """Main has the same snapshots before and after the kill, and when the same command has ended with its verdict."""
    world, _ = at("new")
    plan, before = world.plan(kind="attest"), [entry.snapshot_id for entry in world.table().history()]
    _killed(world, point, "run", plan.id, "--parallel", "1", person="ana")
    assert [entry.snapshot_id for entry in world.table().history()] == before
    world.client.run(plan.id, as_="ana")
    with pytest.raises(Differs):
        world.client.validate(plan.id, as_="ana")
    assert [entry.snapshot_id for entry in world.table().history()] == before


@pytest.mark.parametrize("point", _mostly_slow(AT["publish"]))
def test_killed_while_publishing_it_is_published_once(at: At, point: str) -> None:
    """Wholly old or wholly new right after the kill; once published after the same command."""
    world, run = at("validated")
    _killed(world, point, "publish", run, "--yes", person="bo")
    landed = point in ("publish.after_commit", "publish.after_record")
    assert world.rows() == (world.expected() if landed else world.wrong())
    view = world.client.publish(run, as_="bo")
    assert view.already == landed
    assert view.state == "published"
    assert world.rows() == world.expected()
    assert _publications(world) == 1


def test_killed_while_settling_an_open_intent_the_next_command_settles_it(at: At) -> None:
    """The fence is there already; the intent is closed once and the run can be published."""
    world, run = at("validated")
    _killed(world, "publish.after_undo", "publish", run, "--yes", person="bo")
    _killed(world, "settle.after_fence", "publish", run, "--yes", person="bo")
    assert numbered(world.client.publish(run, as_="bo").publication_id) == f"{run}-p2"
    assert _publications(world) == 1


@pytest.mark.parametrize(
    "command",
    [pytest.param(c, id=c.name, marks=[] if c.name == "publish" else pytest.mark.slow) for c in COMMANDS],
)
@pytest.mark.parametrize("point", LEDGER)
def test_killed_at_a_write_to_the_ledger_the_command_goes_on_from_what_was_written(
    at: At, command: Command, point: str
) -> None:
    """Its second write, just before the commit and just after it."""
    world, run = at(command.before)
    killed(command, world, run, point, nth="@2")
    ended_right(command, world, run)


@pytest.mark.parametrize("point", _mostly_slow(AT["rollback"]))
def test_killed_while_rolling_back_it_is_taken_back_once(at: At, point: str) -> None:
    """Wholly corrected or wholly restored right after the kill; restored once after the same command."""
    world, run = at("published")
    _killed(world, point, "rollback", run, "--reason", "undo", "--yes", person="bo")
    landed = point in ("rollback.after_commit", "rollback.after_record")
    assert world.rows() == (world.wrong() if landed else world.expected())
    view = world.client.rollback(run, reason="undo", as_="bo")
    assert view.already == landed
    assert view.state == "rolled_back"
    assert world.rows() == world.wrong()


def test_killed_while_cleaning_up_the_rest_goes_the_next_time(world_at: WorldAt) -> None:
    """Refs that nothing needs are gone afterwards; the undo set of an open window stays."""
    world, run = world_at("published", days=2)
    _killed(world, "cleanup.after_remove", "cleanup", "--yes", person="ana")
    world.client.cleanup(as_="ana")
    assert f"errata_{run}" not in world.refs()
    assert undo_branch(world.publication(run)) in world.refs()
    world.client.rollback(run, reason="still possible", as_="bo")
    assert world.rows() == world.wrong()


def test_a_python_killed_while_its_jvm_waits_in_the_commit_is_settled_by_looking(at: At) -> None:
    """The orphaned JVM may land the commit or not; the ledger says what the table says."""
    import sqlite3

    world, run = at("validated")
    marker = world.root / "paused"
    process = _start(world, f"publish.before_commit=pause:{marker}", "publish", run, "--yes", person="bo")
    _until(marker.exists)
    lock = sqlite3.connect(world.root / ".errata/catalog.db", isolation_level=None, timeout=30)
    lock.execute("BEGIN IMMEDIATE")
    marker.unlink()
    time.sleep(3)  # the JVM is now waiting for the catalog's lock inside its commit
    process.kill()
    process.communicate()
    lock.execute("ROLLBACK")
    lock.close()
    view = world.client.publish(run, as_="bo")
    assert view.state == "published"
    assert world.rows() == world.expected()
    assert _publications(world) == 1


@pytest.mark.slow
def test_an_interrupt_leaves_a_state_from_which_the_same_command_goes_on(at: At) -> None:
    """Ctrl-C while a chunk is computed: exit 130, the chunk is given back, nothing was lost."""
    world, run = at("approved")
    marker = world.root / "paused"
    process = _start(world, f"stage.before_commit=pause:{marker}", "run", run, "--parallel", "1", person="ana")
    _until(marker.exists)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    marker.unlink()
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert world.client.status(run).state == "running"
    assert world.client.run(run, as_="ana").state == "staged"
    _finish(world, run)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_killed_at_random_moments_until_it_is_done(world_at: WorldAt, seed: int) -> None:
    """run, validate, publish and rollback, each killed at a random moment and repeated; the seed is the test's."""
    chance = random.Random(seed)  # noqa: S311  a test that can be repeated
    world, run = world_at("approved", days=3, chunk_bytes="1")
    steps = [("run", [run], "ana"), ("validate", [run], "ana"), ("publish", [run, "--yes"], "bo")]
    steps.append(("rollback", [run, "--reason", "undo", "--yes"], "bo"))
    for command, arguments, person in steps:
        process = _start(world, "", command, *arguments, person=person)
        try:
            process.wait(timeout=chance.uniform(1.0, 14.0))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        again = _start(world, "", command, *arguments, person=person)
        _, error = again.communicate(timeout=180)
        assert again.returncode == 0, error
    assert world.rows() == world.wrong()


def _finish(world: World, run: str) -> None:
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    assert _publications(world) == 1


def _publications(world: World) -> int:
    summaries = [s.summary.additional_properties for s in world.table().snapshots() if s.summary]
    return sum(1 for summary in summaries if summary.get("errata.kind") == "publish")


@pytest.mark.parametrize(
    "command",
    [
        "publish",
        pytest.param("run", marks=pytest.mark.slow),
        pytest.param("validate", marks=pytest.mark.slow),
        pytest.param("rollback", marks=pytest.mark.slow),
    ],
)
def test_killed_together_with_its_jvm_the_command_goes_on_all_the_same(at: At, command: str) -> None:
    """A machine that is lost takes Python and Java at once."""
    point, before, *arguments = {
        "run": ("stage.after_commit", "approved"),
        "validate": ("candidate.after_commit", "staged"),
        "publish": ("publish.before_commit", "validated", "--yes"),
        "rollback": ("rollback.after_commit", "published", "--reason", "undo", "--yes"),
    }[command]
    person = "bo" if command in ("publish", "rollback") else "ana"
    world, run = at(before)
    process = _start(world, f"{point}=kill", command, run, *arguments, person=person)
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, error
    options = {"reason": "undo"} if command == "rollback" else {}
    getattr(world.client, command)(run, as_=person, **options)
    after = {"run": "staged", "validate": "validated", "publish": "published", "rollback": "rolled_back"}
    assert world.client.status(run).state == after[command]
    if command != "rollback":
        world.client.validate(run, as_="ana") if command == "run" else None
        world.client.publish(run, as_="bo")
    assert world.rows() == (world.wrong() if command == "rollback" else world.expected())


def _start(world: World, failpoints: str, *arguments: str, person: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", person, *arguments]
    environment = {**os.environ, "ERRATA_FAILPOINTS": failpoints, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _killed(world: World, point: str, *arguments: str, person: str, nth: str = "") -> None:
    place = ("-C", str(world.root), "--as", person)
    process = attached.start(world.spark, *place, *arguments, ERRATA_FAILPOINTS=f"{point}=kill{nth}")
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {process.returncode}\n{error}"


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "the other process did not get there"
        time.sleep(0.05)
