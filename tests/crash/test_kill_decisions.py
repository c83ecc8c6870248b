"""``kill -9`` between a decision behind broken glass and its alarm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crash.test_kill import _killed
from protocol.test_release import CY
from support.world import World

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]
ALARM = """alarm: {command: ["sh", "-c", "cat >> heard.jsonl"], timeout: 10s}\n"""


def test_killed_before_the_alarm_the_next_command_rings(make_world: Make) -> None:
    """The decision stands, nobody was told, and repeating it tells them once."""
    world = make_world(days=1, project=ALARM, history=False)
    world.configure(CY, CY.replace("publisher]", "publisher, break_glass]"))
    plan, heard = world.plan(), world.root / "heard.jsonl"
    _killed(
        world, "alarm.before_ring", "approve", plan.id, "--digest", plan.digest, "--break-glass", "now", person="cy"
    )
    status = world.client.status(plan.id)
    assert (status.state, status.break_glass.alarm, heard.exists()) == ("approved", "not rung yet", False)
    for _ in range(2):
        view = world.client.approve(plan.id, digest=plan.digest, break_glass="now", as_="cy")
        assert (view.already, view.break_glass.alarm) == (True, "rung")
        assert heard.read_text().count('"break_glass"') == 1
