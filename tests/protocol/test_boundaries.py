"""Errors at every boundary of every command, and at every write to the ledger: the same command again goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from errata.errors import EngineError, ErrataError
from errata.testing import arm
from faults.commands import COMMANDS, Command, ended_right
from support.memory_world import MemoryWorld

Make = Callable[..., MemoryWorld]
MOST_WRITES = 60

PASSED = [pytest.param(command, point, id=point) for command in COMMANDS for point in command.points]


def _prepare(make_world: Make, command: Command) -> tuple[MemoryWorld, str]:
    world = make_world(days=2, chunk_bytes="1")
    return world, "" if command.before == "new" else world.to(command.before)


def _fail_at(point: str, nth: int, command: Command, world: MemoryWorld, run: str) -> int:
    """Give the command with an error at the n-th pass of the point; answers how often it was passed."""
    passes: list[str] = []

    def fail() -> None:
        passes.append(point)
        if len(passes) == nth:
            raise EngineError("a failpoint raised here")

    with arm(point, fail), suppress(ErrataError):
        command.again(world, run)
    return len(passes)


@pytest.mark.parametrize("command, point", PASSED)
def test_an_error_at_a_boundary_leaves_a_state_from_which_the_command_goes_on(
    make_world: Make, command: Command, point: str
) -> None:
    """Steps before the error are kept or void, never half done."""
    world, run = _prepare(make_world, command)
    assert _fail_at(point, 1, command, world, run), f"{command.name} does not pass {point}"
    ended_right(command, world, run)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "command",
    # a run waits before it tries a chunk again
    [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name == "run" else []) for one in COMMANDS],
)
def test_the_nth_write_to_the_ledger_may_fail_for_every_n(make_world: Make, command: Command, moment: str) -> None:
    """Before its commit, or with the answer lost after it; n = 1, 2, 3 … until the command no longer gets there."""
    for nth in range(1, MOST_WRITES):
        world, run = _prepare(make_world, command)
        passes = _fail_at(f"ledger.{moment}_commit", nth, command, world, run)
        ended_right(command, world, run)
        if passes < nth:
            break
    else:
        pytest.fail(f"{command.name} writes more than {MOST_WRITES} times")
    assert nth > 2
