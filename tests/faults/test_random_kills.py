"""Commands killed with −9 at random moments, many times: published once each, and every repetition ends right."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from typing import Any

import pytest

from faults.commands import COMMANDS, Command, start
from support.attached import Attached
from support.chaos import amount

At = Any
pytestmark = [pytest.mark.spark]

KILLS = amount("KILLS", 200)
CORRECTIONS = amount("CORRECTIONS", 25)
SEED = amount("SEED", 20261116)
_WINDOW = ("publish.before_commit", "publish.after_commit")


class Reaper:
    """Kills at a random moment of the time that a command takes."""

    def __init__(self, at: At, chance: random.Random, *names: str) -> None:
        self._chance = chance
        for name in names:
            _seconds(at, name)  # everything is loaded now
        self._takes = {name: _seconds(at, name) for name in names}

    def reap(self, name: str, process: Attached) -> bool:
        """Whether the kill came before the end."""
        try:
            process.wait(timeout=self._chance.uniform(0.0, self._takes[name]))
        except subprocess.TimeoutExpired:
            process.kill()
        return _died(process)


def _died(process: Attached) -> bool:
    _, error = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), error
    return process.returncode != 0


def _seconds(at: At, name: str) -> float:
    command = _command(name)
    world, run = at(command.before)
    started = time.monotonic()
    assert not _died(start(command, world, run, ""))
    return time.monotonic() - started


@pytest.mark.parametrize(
    "kills",
    [pytest.param(6, id="few", marks=pytest.mark.slow), pytest.param(KILLS, id="many", marks=pytest.mark.chaos)],
)
@pytest.mark.timeout(7200)
def test_a_publisher_that_is_killed_publishes_once(at: At, kills: int) -> None:
    """Right after a kill readers see all old or all new; the same command again, and it is published once."""
    publish = _command("publish")
    chance = random.Random(SEED)  # noqa: S311  a test that can be repeated
    reaper, figures = Reaper(at, chance, "publish"), Counter[str]()
    for number in range(3 * kills):
        if figures["killed"] == kills:
            break
        world, run = at("validated")
        aimed = number % 2 == 1
        process = start(publish, world, run, f"{chance.choice(_WINDOW)}=kill" if aimed else "")
        died = _died(process) if aimed else reaper.reap("publish", process)
        rows = world.rows()
        landed = rows == world.expected()
        assert landed or rows == world.wrong(), f"seed {SEED}, kill {number}: a mixture"
        figures["killed" if died else "ended before the kill"] += 1
        if died:
            figures["killed and published" if landed else "killed and not published"] += 1
        # a commit under way in the JVM may land after the look
        assert world.client.publish(run, as_="bo").already or not landed
        assert (world.rows(), world.count_publications()) == (world.expected(), 1), f"seed {SEED}, kill {number}"
    print(f"\nseed {SEED}: {dict(figures)}")  # noqa: T201  the figures are the point
    assert figures["killed"] == kills
    assert figures["killed and published"] >= kills // 6, "too few kills behind the commit to prove anything"


@pytest.mark.parametrize(
    "corrections",
    [pytest.param(1, id="one", marks=pytest.mark.slow), pytest.param(CORRECTIONS, id="many", marks=pytest.mark.chaos)],
)
@pytest.mark.timeout(7200)
def test_a_correction_whose_every_command_is_killed_ends_right(at: At, corrections: int) -> None:
    """run, validate, publish and rollback, each killed up to three times at any moment and then repeated."""
    chance = random.Random(SEED)  # noqa: S311  a test that can be repeated
    names = ("run", "validate", "publish", "rollback")
    reaper, figures = Reaper(at, chance, *names), Counter[str]()
    for number in range(corrections):
        world, run = at("approved")
        for name in names:
            for _ in range(3):
                died = reaper.reap(name, start(_command(name), world, run, ""))
                figures[f"{name} killed" if died else f"{name} ended before the kill"] += 1
                assert world.rows() in (world.expected(), world.wrong()), f"seed {SEED}, {number}: a mixture"
                if not died:
                    break
            _command(name).again(world, run)
        assert (world.rows(), world.count_publications()) == (world.wrong(), 1), f"seed {SEED}, correction {number}"
    print(f"\nseed {SEED}, {corrections} corrections: {dict(sorted(figures.items()))}")  # noqa: T201  as above
    assert sum(count for what, count in figures.items() if what.endswith(" killed")) >= 4 * corrections


def _command(name: str) -> Command:
    return next(command for command in COMMANDS if command.name == name)
