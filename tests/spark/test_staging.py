"""Staging rules: one fence is one append, candidates do not mix, planning needs neither Java nor the data."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from errata.errors import EngineError
from errata.model.refs import candidate_branch, run_branch
from support.world import PRODUCT, TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]


def test_two_different_appends_under_one_fence_void_the_attempt(world_at: WorldAt) -> None:
    """Neither is used; equal ones would count as the first."""
    world, run = world_at("staged", days=1)
    staging, target = world.engines.staging, world.ledger.runs.manifest(run).target
    attempt = world.ledger.progress.attempts(run)[0].attempt_id
    assert staging.find_attempt(target, attempt) is not None
    frame = world.spark.table(TABLE).limit(1)
    frame.writeTo(f"{TABLE}.`branch_{run_branch(run)}`").option("snapshot-property.errata.attempt", attempt).append()
    with pytest.raises(EngineError):
        staging.find_attempt(target, attempt)


def test_two_candidates_at_once_hold_the_same_rows_each(world_at: WorldAt) -> None:
    """Two processes that validate at the same time cannot be mixed up: each has a branch of its own."""
    world, run = world_at("staged", days=2)
    workspace = world.workspace
    target, staging = workspace.ledger.runs.manifest(run).target, workspace.engines.staging
    snapshots = [chunk.snapshot_id or "" for chunk in workspace.ledger.progress.chunks(run)]
    paths = [file.path for snapshot in snapshots for file in staging.staged(target, snapshot).files]
    made: list[str] = []

    def make(n: int) -> None:
        found = staging.make_candidate(target, run, candidate_branch(run, n, "d" * 64), world.days, paths, 1)
        made.append(found.snapshot_id)

    threads = [threading.Thread(target=make, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2
    assert all(world.rows(int(snapshot)) == world.expected() for snapshot in made)
    assert world.rows() == world.wrong()


def test_planning_starts_no_jvm_and_opens_no_data_file(make_world: Make) -> None:
    """With Java out of reach and sources that are no Parquet at all, the plan is made all the same."""
    world = make_world(days=2)
    for day in world.days:
        (world.root / f"raw/day={day}/part-0.parquet").write_bytes(b"this is not a parquet file")
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "plan", PRODUCT]
    command += ["--partitions", f"{world.days[0]}..{world.days[1]}", "--reason", "no java", "--json"]
    environment = {**os.environ, "JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_java_a_command_that_needs_it_says_so_in_a_sentence(world_at: WorldAt) -> None:
    """Exit 1, the version that is expected, and no traceback."""
    world, run = world_at("approved", days=1)
    command = [sys.executable, "-m", "errata", "-C", str(world.root), "--as", "ana", "run", run]
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "error[setup]: Spark needs Java 17 or 21; none was found" in done.stderr
    assert "Traceback" not in done.stderr
