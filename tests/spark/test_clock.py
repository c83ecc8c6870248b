"""A live writer whose clock is ahead: what is said, and that the same command goes on later."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlparse
from uuid import uuid4

import pytest

from errata.errors import EngineError
from errata.failpoints import arm
from support.world import World
from support.worlds import WorldAt

Make = Callable[..., World]

LOGS = ("snapshots", "snapshot-log", "metadata-log")


def redate(world: World, change: Callable[[int], int]) -> None:
    """Give the times of the newest entries of the table's metadata other values, as another clock would have."""
    with closing(sqlite3.connect(world.root / ".errata/catalog.db")) as db:
        (place,) = db.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name='sales'").fetchone()
        old = Path(urlparse(place).path)
        metadata = json.loads(old.read_text())
        metadata["last-updated-ms"] = change(metadata["last-updated-ms"])
        for log in LOGS:
            for entry in metadata.get(log, ()):
                is_newest = entry is metadata[log][-1] or entry.get("snapshot-id") == metadata["current-snapshot-id"]
                entry["timestamp-ms"] = change(entry["timestamp-ms"]) if is_newest else entry["timestamp-ms"]
        new = old.with_name(f"99999-{uuid4()}.metadata.json")
        new.write_text(json.dumps(metadata))
        db.execute("UPDATE iceberg_tables SET metadata_location=? WHERE table_name='sales'", (f"file://{new}",))
        db.commit()


def ahead(world: World, seconds: int) -> None:
    """A live commit by a writer whose clock is so far ahead."""
    world.live("2026-06-01")
    redate(world, lambda at: at + seconds * 1000)


def clocks_met(world: World) -> None:
    """As if the time had come."""
    redate(world, lambda at: min(at, int(time.time() * 1000)))


@contextmanager
def refused() -> Iterator[list[EngineError]]:
    """A step that says which snapshot is ahead, until when to wait, and that nothing happened."""
    told: list[EngineError] = []
    with pytest.raises(EngineError, match=r"snapshot \d+ is dated .* ahead of this machine's clock") as error:
        yield told
    told.append(error.value)
    assert error.value.state == "nothing was changed"
    assert error.value.hint.startswith("repeat the same command after ")
    assert "Invalid update timestamp" not in error.value.message


def test_a_table_dated_ahead_is_said_before_anything_is_intended_and_published_later(world_at: WorldAt) -> None:
    """Ten minutes ahead: the run stays as it was, holds no lock, and the same command publishes when clocks meet."""
    world, run = world_at("validated", days=2)
    ahead(world, 600)
    with refused() as told:
        world.client.publish(run, as_="bo")
    assert str(world.snapshot()) in told[0].message
    assert "10 m 00 s ahead" in told[0].message
    assert world.client.status(run).state == "validated"
    clocks_met(world)
    assert world.client.publish(run, as_="bo").state == "published"
    ahead(world, 600)
    with refused():
        world.client.rollback(run, reason="undo", as_="bo")
    clocks_met(world)
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"


@pytest.mark.parametrize("point", ["publish.after_intent", "publish.after_undo", "publish.before_commit"])
def test_a_table_dated_ahead_in_the_middle_of_a_publication_is_gone_on_with_later(
    world_at: WorldAt, point: str
) -> None:
    """Not even a fence can be set then; the open intent is settled by the same command once clocks meet."""
    world, run = world_at("validated", days=2)
    with arm(point, lambda: ahead(world, 600)), refused():
        world.client.publish(run, as_="bo")
    with refused():
        world.client.publish(run, as_="bo")
    clocks_met(world)
    assert world.client.publish(run, as_="bo").state == "published"
    assert [row for row in world.rows() if row[0] in world.days] == world.expected()


def test_staging_and_validating_say_it_as_well(world_at: WorldAt) -> None:
    """The guard and the run branch are refused before Spark computes anything, and so is the candidate."""
    world, run = world_at("approved", days=1)
    ahead(world, 600)
    with refused():
        world.client.run(run, as_="ana")
    clocks_met(world)
    world.client.run(run, as_="ana")
    ahead(world, 600)
    with refused():
        world.client.validate(run, as_="ana")
    clocks_met(world)
    world.client.validate(run, as_="ana")


def test_a_clock_that_is_half_a_minute_ahead_is_nothing(world_at: WorldAt) -> None:
    """Iceberg forgives a minute, and so does the check."""
    world, run = world_at("validated", days=1)
    ahead(world, 30)
    assert world.client.publish(run, as_="bo").state == "published"
