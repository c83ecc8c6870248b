"""A stream that appends to the partition that is corrected loses no row, and notices nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from errata.errors import PublishConflict, Rebased
from errata.failpoints import arm
from protocol.test_conflicts import once
from spark.test_live_wins import WINS, late
from support.streams import Writer, run_for_each
from support.world import TABLE, World
from support.worlds import WorldAt

Make = Callable[..., World]


@contextmanager
def writing(world: World, day: str, place: Path) -> Iterator[Writer]:
    """A writer that is stopped whatever happens."""
    writer = Writer(world.spark, TABLE, day, place)
    try:
        yield writer
    finally:
        if writer.query is not None and writer.query.isActive:
            writer.query.stop()


def streamed(world: World) -> list[str]:
    return sorted((row[1] for row in world.rows() if row[1].startswith("s")), key=lambda key: int(key[1:]))


@pytest.mark.parametrize("moment", [pytest.param("before publish", marks=pytest.mark.slow), "right before the commit"])
def test_a_correction_of_the_hot_partition_is_a_conflict_and_loses_no_row(
    world_at: WorldAt, moment: str, tmp_path: Path
) -> None:
    """The other partitions can go out while it writes, and every row of the stream is there once."""
    world, run = world_at("validated", days=2)
    hot, other = world.days[1], world.days[0]
    with writing(world, hot, tmp_path / "writer") as writer:
        if moment == "before publish":
            writer.start()
        with arm("publish.before_commit", once(writer.start)), pytest.raises(PublishConflict) as conflict:
            world.client.publish(run, as_="bo")
        assert conflict.value.fields["partitions"] == [hot]
        writer.wait_for_more()
        assert world.client.publish(run, partitions=[other], as_="bo").state == "part_published"
        writer.wait_for_more()
        wanted = writer.stop()
    assert streamed(world) == sorted(wanted, key=lambda key: int(key[1:]))
    rest = [row for row in world.rows() if not row[1].startswith("s")]
    assert rest == sorted(world.expected([other]) + world.wrong([hot]))


@pytest.mark.slow
def test_where_live_wins_the_hot_partition_is_computed_again_with_every_row_of_the_stream(
    make_world: Make, tmp_path: Path
) -> None:
    """A stream that fills source and target while the correction is published has all its rows in the result."""
    world = make_world(days=2, product=WINS)
    run, hot, written = world.to("validated"), world.days[1], list[str]()

    def write(number: int) -> None:
        late(world, hot, f"s{number}")
        written.append(f"s{number}")

    with run_for_each(world.spark, write, tmp_path / "writer") as stream:
        stream.wait_until(lambda: len(written) >= 2)
        with pytest.raises(Rebased) as rebased:
            world.client.publish(run, as_="bo")
    assert rebased.value.fields["partitions"] == [hot]
    while world.client.status(run).state != "published":
        world.client.run(run, as_="ana")
        with suppress(Rebased):  # a row that came between the rebase and the end of the stream; three at most
            world.client.validate(run, as_="ana")
            world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    assert {row[1] for row in world.rows()} >= set(written)
