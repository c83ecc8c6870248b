"""``kill -9`` while lineage is sent: every event arrives, and one that arrives twice is the same event."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from errata.commands.compute.run import run_chunks
from errata.model.audit import Actor
from errata.model.consumer.outbox import ItemState
from support.attached import start_without_jvm
from support.http_receiver import HttpReceiver
from support.lineage import identify, list_endings, require_valid
from support.memory_world import MemoryWorld

ANA = Actor("ana", "ana", "desk", single_user=False)
POINTS = ("lineage.after_send", "deliver.before_pay", "deliver.after_pay")


def deliver(root: Path, failpoint: str = "") -> tuple[int | None, str]:
    """``errata deliver`` in a process of its own: its exit code, and what it said."""
    process = start_without_jvm("-C", str(root), "--as", "ana", "deliver", ERRATA_FAILPOINTS=failpoint)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def work_silently(world: MemoryWorld, run: str) -> None:
    """Compute and judge the run, as processes do that are killed before they send anything, and cancel it."""
    run_chunks(world.workspace, ANA, run, parallel=1, max_chunks=None)
    world.client.validate(run, as_="ana")
    world.client.cancel(run, reason="enough", as_="ana")


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point == POINTS[0] else pytest.mark.slow) for point in POINTS]
)
def test_killed_between_sending_and_recording_the_same_events_come_again(point: str, tmp_path: Path) -> None:
    """Same run ids, times and bytes; none is lost."""
    with HttpReceiver() as receiver:
        lineage = f'\nlineage: {{http: {{url: "{receiver.url}"}}}}\n'
        world = MemoryWorld.make(tmp_path / "world", days=3, chunk_bytes="1", project=lineage)
        run = world.to("approved")
        work_silently(world, run)
        assert receiver.posts == []
        for nth in (1, 2, 1):
            code, said = deliver(world.root, f"{point}=kill@{nth}")
            assert code == -signal.SIGKILL, said
        code, said = deliver(world.root)
        assert code == 0, said
        events = [post.json for post in receiver.posts]
        require_valid(events)
        assert sorted(list_endings(events).values()) == [["START", "ABORT"], *[["START", "COMPLETE"]] * 4]
        bodies = {identify(post.json): post.body for post in receiver.posts}
        assert all(bodies[identify(post.json)] == post.body for post in receiver.posts)
        if point == "lineage.after_send":
            assert len(receiver.posts) > len(bodies), "what was sent and not recorded is sent again"
        assert {item.state for item in world.ledger.outbox.list(run_id=run)} == {ItemState.PAID}
