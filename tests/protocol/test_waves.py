"""Waves: parts of a run that are judged, released and published one after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import PublishConflict, PublishHeld, StateRefused
from support.clock import later
from support.ids import numbered
from support.memory_world import MemoryWorld as World
from support.waves import in_waves, seen

Make = Callable[..., World]


def test_readers_see_one_wave_after_the_other(make_world: Make) -> None:
    """Newest first, two days at a time, each by one commit, with its own candidate, verdict and release."""
    world = make_world(days=5, product=in_waves("size: 2, pause: 1h"))
    plan = world.plan()
    assert plan.publish["waves"]["waves"] == [list(world.days[3:]), list(world.days[1:3]), [world.days[0]]]
    run = world.to("validated")
    assert [wave.state for wave in world.client.status(run).waves] == ["validated"] * 3
    first = world.client.publish(run, as_="bo")
    assert (first.state, first.partitions, first.data_files_written) == ("part_published", world.days[3:], 0)
    assert seen(world, world.days[3:])
    with pytest.raises(PublishHeld, match="the pause of 1h"):
        world.client.publish(run, as_="bo")
    with later(minutes=61):
        second = world.client.publish(run, as_="bo")
        assert (numbered(second.publication_id), second.partitions) == (f"{run}-p2", world.days[1:3])
        shown = world.client.status(run)
        assert [wave.state for wave in shown.waves] == ["published", "published", "validated"]
        assert shown.turn is not None
        assert shown.turn.next == 3
    with later(minutes=122):
        assert world.client.publish(run, as_="bo").state == "published"
    assert seen(world, world.days)
    assert len({p.release["release"] for p in world.ledger.publications.list(run)}) == 3


def test_a_live_write_is_a_conflict_in_its_own_wave_only(make_world: Make) -> None:
    """Waves of other partitions go out all the same."""
    world = make_world(days=3, product=in_waves("size: 1"))
    run = world.to("validated")
    world.live(world.days[1])
    world.client.publish(run, as_="bo")
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.publish(run, as_="bo")
    assert world.client.publish(run, partitions=[world.days[0]], as_="bo").partitions == (world.days[0],)


def test_a_rollback_of_one_wave_leaves_the_others_and_stops_the_rest(make_world: Make) -> None:
    """A person says resume before more is published; what was rolled back stays out."""
    world = make_world(days=3, product=in_waves("size: 1"))
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    world.client.publish(run, as_="bo")
    world.client.rollback(run, partitions=world.days[2], reason="the newest is wrong", as_="bo")
    assert seen(world, world.days[1:2])
    with pytest.raises(StateRefused, match="rolled back 1 partition"):
        world.client.publish(run, as_="bo")
    world.client.resume(run, as_="bo")
    assert world.client.publish(run, as_="bo").partitions == (world.days[0],)
    assert seen(world, world.days[:2])


LIMITED = "size: 1, release: first, within: {rows: 10%}"


def test_the_first_wave_is_visible_while_the_rest_is_computed(make_world: Make) -> None:
    """One worker computes one chunk, judges its wave and publishes it; the others are still to be computed."""
    world = make_world(days=3, chunk_bytes="1KiB", product=in_waves(LIMITED))
    run = world.to("approved")
    world.client.run(run, max_chunks=1, publish=True, as_="cy")
    shown = world.client.status(run)
    assert [wave.state for wave in shown.waves] == ["validated", "computing", "computing"]
    assert shown.state == "running"
    world.client.release(run, digest=shown.release_digest, as_="bo")
    world.client.run(run, max_chunks=1, publish=True, as_="cy")
    assert seen(world, world.days[1:])
    assert [wave.state for wave in world.client.status(run).waves] == ["published", "published", "computing"]
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert seen(world, world.days)
    kinds = [(row.kind, row.person) for row in world.ledger.releases.list(run)]
    assert kinds == [("release", "bo"), ("automatic", "cy"), ("automatic", "cy")]
