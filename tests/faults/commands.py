"""The commands of a correction as the faults see them: where each starts, what it passes, how it is given again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errata.failpoints import NAMES
from support import attached
from support.world import PRODUCT, World

__all__ = ["COMMANDS", "Command", "ended_right", "killed", "paused", "start"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the state it starts from, the boundaries it passes, its arguments, the same from Python."""

    name: str
    before: str
    points: tuple[str, ...]
    person: str
    arguments: Callable[[World, str], tuple[str, ...]]
    again: Callable[[World, str], Any]


def _points(*steps: str) -> tuple[str, ...]:
    # rows are carried over in mode rewrite only: crash/test_kill_rewrite.py
    return tuple(name for name in NAMES if name.split(".")[0] in steps and not name.endswith(".after_carry"))


def _scope(world: World) -> str:
    return f"{world.days[0]}..{world.days[-1]}"


COMMANDS = (
    Command(
        "plan", "new", _points("plan"), "ana",
        lambda world, _: ("plan", PRODUCT, "--partitions", _scope(world), "--reason", "doubled"),
        lambda world, _: world.plan(),
    ),
    Command(
        "run", "approved", _points("run", "chunk", "stage"), "ana",
        lambda _, run: ("run", run, "--parallel", "1"),
        lambda world, run: world.client.run(run, as_="ana"),
    ),
    Command(
        "validate", "staged", _points("candidate", "validate"), "ana",
        lambda _, run: ("validate", run),
        lambda world, run: world.client.validate(run, as_="ana"),
    ),
    Command(
        "publish", "validated", _points("publish"), "bo",
        lambda _, run: ("publish", run, "--yes"),
        lambda world, run: world.client.publish(run, as_="bo"),
    ),
    Command(
        "rollback", "published", _points("rollback"), "bo",
        lambda _, run: ("rollback", run, "--reason", "undo", "--yes"),
        lambda world, run: world.client.rollback(run, reason="undo", as_="bo"),
    ),
)  # fmt: skip


def start(command: Command, world: World, run: str, failpoints: str) -> attached.Attached:
    """The command as a process of its own, with these failpoints."""
    place = ("-C", str(world.root), "--as", command.person)
    return attached.start(world.spark, *place, *command.arguments(world, run), ERRATA_FAILPOINTS=failpoints)


def killed(command: Command, world: World, run: str, point: str, nth: str = "") -> None:
    """The command, killed at the point; ``nth`` is ``@2`` for the second time it gets there."""
    process = start(command, world, run, f"{point}=kill{nth}")
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {process.returncode}\n{error}"


def paused(command: Command, world: World, run: str, point: str, marker: Path) -> attached.Attached:
    """The command, waiting at the point until the marker is deleted."""
    return start(command, world, run, f"{point}=pause:{marker}")


def ended_right(command: Command, world: World, run: str) -> None:
    """The command once more, then the rest of the way: right rows, published once, nothing twice."""
    answer = command.again(world, run)
    if command.name == "rollback":
        assert answer.state == "rolled_back"
        assert world.rows() == world.wrong()
        return
    run = run or answer.id
    if command.name == "plan":
        assert [each.run_id for each in world.client.status().runs] == [run]
        world.client.approve(run, digest=answer.digest, as_="bo")
    for step in ("run", "validate"):
        getattr(world.client, step)(run, as_="ana")
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.rows() == world.expected()
    assert world.count_publications() == 1
