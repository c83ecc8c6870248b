"""No room or no permission at a write: the run parks with a clear error, nothing is lost, the same command goes on.

The disks are small tmpfs mounts, filled or made read-only at an exact point of the command; mounting needs root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from errata.errors import ErrataError
from errata.failpoints import arm
from support.lakes import sqlite_lake
from support.world import World

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]

CLEAR = ("No space left", "is full", "ead-only", "readonly", "ermission denied", "unable to open database file")
RUN = ("run.after_start", "chunk.after_claim", "stage.before_commit", "stage.after_commit", "stage.after_adopt")
LATER = (
    "candidate.after_intent",
    "candidate.after_commit",
    "validate.after_measure",
    "publish.after_intent",
    "publish.before_commit",
    "publish.after_commit",
    "rollback.after_intent",
    "rollback.before_commit",
    "rollback.after_commit",
)
PLACES = {"warehouse": ".errata/warehouse", "ledger": ".errata/ledger", "cache": ".errata/cache"}


class Disk:
    """A small file system of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._filler = place / "filler"

    def mount(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self._do("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs")

    def unmount(self) -> None:
        self._do("umount", "--lazy")

    def fill(self) -> None:
        """Until not a byte more goes in."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while file.write(b"\0" * size) == size:
                        pass

    def forbid(self) -> None:
        """Nothing may be written, by root either; refused by the kernel while a file is open for writing."""
        self._do("mount", "-o", "remount,ro,size=24m")

    def heal(self) -> None:
        self._do("mount", "-o", "remount,rw,size=24m")
        self._filler.unlink(missing_ok=True)

    def _do(self, *command: str) -> None:
        subprocess.run([*command, str(self.place)], check=True, capture_output=True)


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[Callable[[str], Disk]]:
    """Mounts a disk in the place of a directory of the first world to be made."""
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small file system needs root on Linux")
    made: list[Disk] = []

    def make(name: str) -> Disk:
        disk = Disk(tmp_path / "world0" / PLACES[name])
        try:
            disk.mount()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"a small file system cannot be mounted here: {error.stderr.decode().strip()}")
        made.append(disk)
        return disk

    yield make
    for disk in made:
        disk.unmount()


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who could not give back a chunk or a publication is alive here, unlike a command that ended: leases must pass."""
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "4")


@pytest.fixture
def world_on(make_disk: Callable[[str], Disk], make_world: Make, tmp_path: Path) -> Callable[[str], tuple[World, Disk]]:
    """A world with one of its directories on a disk of its own."""

    def make(name: str) -> tuple[World, Disk]:
        disk = make_disk(name)
        if name == "ledger":
            (disk.place.parent / "ledger.db").symlink_to(disk.place / "ledger.db")
        return make_world(days=2, chunk_bytes="1", lake=sqlite_lake(tmp_path / "world0")), disk

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    "place, point, how",
    [
        ("ledger", "stage.after_commit", "fill"),
        ("warehouse", "stage.before_commit", "fill"),
        ("cache", "chunk.after_claim", "fill"),
    ],
)
def test_a_run_without_room_parks_and_goes_on(
    world_on: Callable[[str], tuple[World, Disk]], place: str, point: str, how: str
) -> None:
    """A clear error or a worker that waits; with room again the run ends as if nothing had been."""
    world, disk = world_on(place)
    assert_parks(world, disk, point, how)


@pytest.mark.slow
@pytest.mark.parametrize(
    "place, point, how",
    [
        *(("warehouse", point, how) for point in (*RUN, *LATER) for how in ("fill", "forbid")),
        *(("ledger", point, "fill") for point in (*RUN, "run.before_staged", *LATER)),
        *(("cache", "run.after_start", how) for how in ("fill", "forbid")),
    ],
)
def test_every_step_without_room_parks_and_goes_on(
    world_on: Callable[[str], tuple[World, Disk]], place: str, point: str, how: str
) -> None:
    """The same at every boundary of run, validate, publish and rollback."""
    world, disk = world_on(place)
    assert_parks(world, disk, point, how)


def test_a_ledger_that_may_not_be_written_is_a_clear_error(
    world_on: Callable[[str], tuple[World, Disk]],
) -> None:
    """Read-only from the start: nothing begins, and nothing is lost."""
    world, disk = world_on("ledger")
    run = world.to("approved")
    world.client.close()  # its open files would keep the disk writable
    disk.forbid()
    try:
        with pytest.raises(ErrataError) as refused:
            world.client.run(run, as_="ana")
    finally:
        world.client.close()
        disk.heal()
    assert any(text in refused.value.message for text in CLEAR), refused.value.message
    assert world.client.run(run, as_="ana").state == "staged"


def assert_parks(world: World, disk: Disk, point: str, how: str) -> None:
    """Bring a run to the step of this point, take the room away there, give it back, repeat, and compare."""
    run = world.to("approved")
    client, table = world.client, world.rows
    steps: dict[str, Callable[[], Any]] = {
        "run": lambda: client.run(run, parallel=1, as_="ana"),
        "validate": lambda: client.validate(run, as_="ana"),
        "publish": lambda: client.publish(run, as_="bo"),
        "rollback": lambda: client.rollback(run, reason="undo", as_="bo"),
    }
    part = point.partition(".")[0]
    hit = {"chunk": "run", "stage": "run", "candidate": "validate"}.get(part, part)
    for name, act in steps.items():
        if name != hit:
            act()
            if name == "publish":
                assert table() == world.expected()
            continue
        before = table()
        error = without_room(world, disk, point, how, act)
        if error is not None:
            told = f"{error.message} {error.state} {error.hint}"
            assert any(text in told for text in CLEAR), f"not a clear error: {error.code}: {told}"
            # a publication may have landed before its record did; the table is wholly old or wholly new
            assert table() == before or (
                name in ("publish", "rollback") and table() in (world.expected(), world.wrong())
            )
            if name == "run":
                assert client.status(run).state == "running", "a full disk is not the run's fault"
            else:
                time.sleep(4.5)
            act()
    assert table() == world.wrong()
    print(f"{disk.place.name} {how} at {point}: {error.code if error else 'went on'}")  # noqa: T201  with -rP


def without_room(world: World, disk: Disk, point: str, how: str, act: Callable[[], Any]) -> ErrataError | None:
    """Act while the disk has no room from this point on; the error, or None when it waited and then went on."""
    taken = threading.Event()

    def take() -> None:
        if not taken.is_set():
            getattr(disk, how)()
            taken.set()

    with arm(point, take), ThreadPoolExecutor(1) as pool:
        acting: Future[Any] = pool.submit(act)
        try:
            wait_until(lambda: acting.done() or (taken.is_set() and is_waiting(world)))
            assert taken.is_set(), f"{point} was not reached: {acting.exception()}"
        finally:
            disk.heal()
        error = acting.exception(timeout=120)
    if error is not None and not isinstance(error, ErrataError):
        raise AssertionError(f"a full disk must be an error that people can read, found {error!r}") from error
    return error


def is_waiting(world: World) -> bool:
    return any("waiting" in text for text in world.said)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "neither an error nor a word about waiting"
        time.sleep(0.05)
