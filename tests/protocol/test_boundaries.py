"""Errors at every boundary of every command, and at every write to the ledger: the same command again goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

import pytest

from errata.errors import EngineError, ErrataError
from errata.testing import arm
from faults.commands import COMMANDS, Command, ended_right
from support.memory_invariants import assert_memory_invariants
from support.memory_savepoint import MemorySavepoint
from support.memory_world import MemoryWorld

MOST_WRITES = 60

PASSED = [pytest.param(command, point, id=point) for command in COMMANDS for point in command.points]
At = Callable[[str], tuple[MemoryWorld, str]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], MemorySavepoint]:
    """A world of two days in two chunks whose run is in this state, made once."""

    @cache
    def make(state: str) -> MemorySavepoint:
        world = MemoryWorld.make(tmp_path_factory.mktemp(state), days=2, chunk_bytes="1")
        return MemorySavepoint(world, "" if state == "new" else world.to(state))

    return make


@pytest.fixture
def at(saved: Callable[[str], MemorySavepoint]) -> Iterator[At]:
    """Puts the world of a state back; every invariant is checked on what became of it."""
    lent: list[MemoryWorld] = []

    def take_back() -> None:
        while lent:
            world = lent.pop()
            world.client.close()
            assert_memory_invariants(world.root, world.lake)

    def lend(state: str) -> tuple[MemoryWorld, str]:
        take_back()
        lent.append(saved(state).restore())
        return lent[-1], saved(state).run

    yield lend
    take_back()


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
    at: At, command: Command, point: str
) -> None:
    """Steps before the error are kept or void, never half done."""
    world, run = at(command.before)
    assert _fail_at(point, 1, command, world, run), f"{command.name} does not pass {point}"
    ended_right(command, world, run)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "command",
    # a run waits before it tries a chunk again
    [pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name == "run" else []) for one in COMMANDS],
)
def test_the_nth_write_to_the_ledger_may_fail_for_every_n(at: At, command: Command, moment: str) -> None:
    """Before its commit, or with the answer lost after it; n = 1, 2, 3 … until the command no longer gets there."""
    for nth in range(1, MOST_WRITES):
        world, run = at(command.before)
        passes = _fail_at(f"ledger.{moment}_commit", nth, command, world, run)
        ended_right(command, world, run)
        if passes < nth:
            break
    else:
        pytest.fail(f"{command.name} writes more than {MOST_WRITES} times")
    assert nth > 2
