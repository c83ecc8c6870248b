"""The publisher killed with −9 many times, half of them aimed at the commit: published once each."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import Any

import pytest

from faults.commands import COMMANDS, publications, start

At = Any
pytestmark = [pytest.mark.spark]

KILLS = int(os.environ.get("CHAOS_KILLS", "200"))
SEED = int(os.environ.get("CHAOS_SEED", "20261116"))
_WINDOW = ("publish.before_commit", "publish.after_commit")


@pytest.mark.parametrize(
    "kills",
    [pytest.param(6, id="few", marks=pytest.mark.slow), pytest.param(KILLS, id="many", marks=pytest.mark.chaos)],
)
@pytest.mark.timeout(7200)
def test_a_publisher_that_is_killed_publishes_once(at: At, kills: int) -> None:
    """Right after a kill readers see all old or all new; the same command again, and it is published once."""
    publish = next(command for command in COMMANDS if command.name == "publish")
    chance = random.Random(SEED)  # noqa: S311  a test that can be repeated
    figures = {"killed": 0, "ended before the kill": 0, "killed and published": 0, "killed and not published": 0}
    usual = _seconds(at, publish)
    for number in range(kills):
        world, run = at("validated")
        aimed = f"{chance.choice(_WINDOW)}=kill" if number % 2 else ""
        process = start(publish, world, run, aimed)
        try:
            process.wait(timeout=None if aimed else chance.uniform(0.0, usual))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        rows = world.rows()
        landed = rows == world.expected()
        assert landed or rows == world.wrong(), f"seed {SEED}, kill {number}: a mixture"
        died = process.returncode == -signal.SIGKILL
        figures["killed" if died else "ended before the kill"] += 1
        if died:
            figures["killed and published" if landed else "killed and not published"] += 1
        # a commit under way in the JVM may land after the look
        assert world.client.publish(run, as_="bo").already or not landed
        assert (world.rows(), publications(world)) == (world.expected(), 1), f"seed {SEED}, kill {number}"
    print(f"\nseed {SEED}: {figures}")  # noqa: T201  the figures are the point
    assert figures["killed and published"] >= kills // 6, "too few kills behind the commit to prove anything"


def _seconds(at: At, publish: Any) -> float:
    world, run = at("validated")
    started = time.monotonic()
    process = start(publish, world, run, "")
    process.communicate(timeout=180)
    return time.monotonic() - started
