"""A pinned source file that changed after the plan fails its chunk, and the error tells how to go on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from errata.errors import RunFailed
from support.memory_world import MemoryWorld

Make = Callable[..., MemoryWorld]


def _fail(world: MemoryWorld, run: str) -> RunFailed:
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    return failed.value


def _find_sources(world: MemoryWorld) -> list[Path]:
    return sorted((world.root / "raw").rglob("*.parquet"))


def test_the_error_line_of_the_run_names_the_changed_file(make_world: Make) -> None:
    """One line says how many files are not as planned and which one, because a run shows only that line."""
    world = make_world(days=1)
    run = world.to("approved")
    gone = _find_sources(world)[0]
    gone.unlink()
    assert f"1 of 1 source files is not as planned: file://{gone} is missing" in _fail(world, run).message


def test_further_changed_files_follow_the_first_line(make_world: Make) -> None:
    """Every changed file of a chunk is in the record of its failure; the first line is complete without them."""
    world = make_world(days=2)
    run = world.to("approved")
    one, other = _find_sources(world)
    one.unlink()
    other.unlink()
    failed = _fail(world, run)
    first, *others = str(failed.fields["run"].failures[0]["error"]).splitlines()
    assert first.endswith(f"2 of 2 source files are not as planned, such as this one: file://{one} is missing")
    assert others == [f"  file://{other} is missing"]


def test_the_same_bytes_in_a_new_file_can_be_put_back_with_their_time(make_world: Make) -> None:
    """The hint has both ways on: the planned modification time and a retry, or a new plan; both work."""
    world = make_world(days=1)
    run = world.to("approved")
    path = _find_sources(world)[0]
    planned = path.stat()
    os.utime(path, ns=(planned.st_atime_ns, planned.st_mtime_ns + 3_000_000_000))
    restore, plan = (_fail(world, run).hint or "").splitlines()
    assert "with their modification time (cp -p keeps it)" in restore
    assert f"errata retry {run}" in restore
    assert plan.endswith(f'--partitions {world.days[0]} --supersede {run} --reason "…"')
    os.utime(path, ns=(planned.st_atime_ns, planned.st_mtime_ns))
    world.client.retry(run, as_="ana")
    assert world.client.run(run, as_="ana").state == "staged"
