"""A process that dies while it computes, judges and publishes waves: the same command goes on.

A real ``kill -9`` on Spark is in ``tests/crash/test_kill_waves.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from errata.failpoints import NAMES
from errata.testing import arm
from support.memory_world import MemoryWorld as World
from support.waves import ALONE, in_waves

Make = Callable[..., World]
ONE_DAY = "1"
POINTS = (
    "chunk.after_claim", "stage.before_commit", "stage.after_commit", "stage.after_adopt", "run.before_staged",
    "candidate.after_intent", "candidate.after_commit", "validate.after_measure", "validate.after_verdict",
    "waves.after_verdict", "publish.after_intent", "publish.after_undo", "publish.before_commit",
    "publish.after_commit", "publish.after_record", "waves.between",
)  # fmt: skip
ONCE = ("run.before_staged",)
BY_DEFAULT = {("stage.after_adopt", 2), ("waves.after_verdict", 2), ("publish.after_commit", 2), ("waves.between", 1)}


class Killed(BaseException):
    """Ends the process as far as a test in the same process can."""


@contextmanager
def killed_at(point: str, nth: int) -> Iterator[list[str]]:
    """Die at the n-th pass of the point; from then on no thread of the process passes any point alive."""
    passed: list[str] = []
    dead = threading.Event()

    def pass_by(name: str) -> None:
        if name == point:
            passed.append(name)
            if len(passed) == nth:
                dead.set()
        if dead.is_set():
            raise Killed(name)

    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(arm(name, lambda name=name: pass_by(name)))  # type: ignore[misc]
        yield passed


# a heartbeat that is due after the death passes a point too, and dies like the rest of the process
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "point, nth",
    [
        pytest.param(point, nth, marks=[] if (point, nth) in BY_DEFAULT else [pytest.mark.slow])
        for point in POINTS
        for nth in ((1,) if point in ONCE else (1, 2, 3))
    ],
)
def test_killed_at_any_boundary_whole_waves_are_visible_and_the_same_command_continues(
    make_world: Make, monkeypatch: pytest.MonkeyPatch, point: str, nth: int
) -> None:
    """Readers see whole waves in order; in the end each was published once, and the content is exact."""
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "1")  # the dead process is this one, so only its lease ends
    world = make_world(days=6, chunk_bytes=ONE_DAY, product=in_waves("size: 2, release: none", ALONE))
    run = world.to("approved")
    with killed_at(point, nth) as passed, pytest.raises(Killed):
        world.client.run(run, parallel=1, publish=True, as_="cy")
    assert len(passed) >= nth
    world.client.close()
    world.open()
    waves = (world.days[4:], world.days[2:4], world.days[:2])
    out = [all(world.expected([day]) == _rows_of(world, day) for day in wave) for wave in waves]
    assert out == sorted(out, reverse=True)
    for wave, is_out in zip(waves, out, strict=True):
        assert is_out or all(world.wrong([day]) == _rows_of(world, day) for day in wave)
    assert world.client.run(run, parallel=1, publish=True, as_="cy").state == "published"
    assert world.rows() == world.expected()
    landed = [one.partitions for one in world.ledger.publications.list(run) if one.state.value == "committed"]
    assert landed == list(waves)


def _rows_of(world: World, day: str) -> list[tuple[object, ...]]:
    return [row for row in world.rows() if str(row[0]) == day]
