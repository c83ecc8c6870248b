"""Every boundary × every fault: raised, hung, answer lost. The same command again gives the same end.

Kills are in ``crash``.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from errata.errors import EngineError, ErrataError
from errata.failpoints import arm
from faults.commands import COMMANDS, Command, ended_right, paused

At = Any
pytestmark = [pytest.mark.spark]

PASSED = [pytest.param(command, point, id=f"{point}") for command in COMMANDS for point in command.points]
# the others fail on tables in memory in every run: protocol/test_boundaries.py
SHORT = [
    one
    if one.values[0].name in ("publish", "rollback")
    else pytest.param(*one.values, id=one.id, marks=pytest.mark.slow)
    for one in PASSED
]
_NTH_LIMIT = 60


@pytest.mark.parametrize("command, point", SHORT)
def test_an_error_at_a_boundary_leaves_a_state_from_which_the_command_goes_on(
    at: At, command: Command, point: str
) -> None:
    """Whatever was done by then is kept or void, never half."""
    world, run = at(command.before)

    def fail() -> None:
        hits.append(point)
        if len(hits) == 1:
            raise EngineError("a failpoint raised here")

    hits: list[str] = []
    with arm(point, fail):
        _tried(command, world, run)
    assert hits, f"{command.name} does not pass {point}"
    ended_right(command, world, run)


@pytest.mark.slow
@pytest.mark.parametrize("command, point", PASSED)
def test_a_command_that_hangs_while_another_does_the_same_is_harmless(
    at: At, command: Command, point: str, tmp_path: Path
) -> None:
    """Two at once, one of them stuck at the boundary for two seconds: one of them does it, the other is told."""
    world, run = at(command.before)
    marker = tmp_path / "here"
    slow = paused(command, world, run, point, marker)
    _until(marker.exists, slow)
    release = threading.Timer(2.0, lambda: marker.unlink(missing_ok=True))
    release.start()
    _tried(command, world, run)
    release.join()
    _, error = slow.communicate(timeout=180)
    assert slow.returncode in (0, 3, 5), error
    assert "Traceback" not in error
    ended_right(command, world, run)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("command", [pytest.param(c, id=c.name) for c in COMMANDS])
def test_the_nth_write_to_the_ledger_may_fail_for_every_n(at: At, command: Command, moment: str) -> None:
    """Before its commit, or with the answer lost after it; n = 1, 2, 3 … until the command no longer gets there."""
    for nth in range(1, _NTH_LIMIT):
        world, run = at(command.before)
        writes: list[int] = []

        def fail(writes: list[int] = writes, nth: int = nth) -> None:
            writes.append(nth)
            if len(writes) == nth:
                raise EngineError("the ledger did not answer")

        with arm(f"ledger.{moment}_commit", fail):
            _tried(command, world, run)
        ended_right(command, world, run)
        if len(writes) < nth:
            break
    else:
        pytest.fail(f"{command.name} writes more than {_NTH_LIMIT} times")
    assert nth > 2


def _tried(command: Command, world: Any, run: str) -> None:
    """The command, which may be refused or fail, but only with a word of ours."""
    with suppress(ErrataError):
        command.again(world, run)


def _until(condition: Any, process: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the other process did not get there"
        time.sleep(0.05)
