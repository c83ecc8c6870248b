"""A real stream over a corrected table: the plan says where it stops, and repaired copies bring it past, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.delivery.payment import pay
from errata.errors import PlanRefused
from errata.model.audit import Actor
from support.streams import Reader
from support.world import PRODUCT, TABLE, World

Make = Callable[..., World]
NEW = "2026-01-09"
PROJECT = f"""
consumers:
  fraud: {{kind: iceberg-stream, reads: [{PRODUCT}], checkpoint: cp, on_replace: rewind, owner: ana}}
"""
WAYS = ["available now", pytest.param("processing time", marks=pytest.mark.slow)]


class Team:
    """The team that runs the reader: starts it the way it always does, and does what Errata shows."""

    def __init__(self, world: World, way: str, sink: str | None = None) -> None:
        self.world, self.way = world, way
        self.reader = Reader(world.spark, TABLE, world.root / "cp", sink=sink)

    def run(self, rows: int = 0) -> str:
        """Start it until it has read what there is, or this many more rows; returns the error that ended it."""
        if self.way == "available now":
            return self.reader.run_available()
        wanted = self.reader.count() + rows
        return self.reader.run_until(lambda: bool(rows) and self.reader.count() >= wanted)

    def deliver(self) -> Any:
        """What Errata shows once an append came: the steps of the repair."""
        actor, outbox = Actor("ana", "ana", "host"), self.world.ledger.outbox
        outbox.retry([one.item_id for one in outbox.list_open()], actor)
        pay(self.world.workspace, actor)
        (shown,) = self.world.client.check_consumers(PRODUCT).consumers
        return shown

    def move(self, run: str, shown: Any, rows: int = 0) -> tuple[str, Any]:
        """Start the reader on the copy, and confirm it."""
        (start,) = [step for step in shown.steps if "checkpointLocation" in step]
        copy = start.partition("checkpointLocation ")[2].partition(",")[0].partition(":")[0]
        self.reader.checkpoint = self.world.root / copy
        error = self.run(rows)
        return error, self.world.client.confirm_consumer(run, "fraud", as_="ana")


@pytest.mark.parametrize("way", WAYS)
def test_after_the_repair_a_stream_reads_every_row_once(make_world: Make, way: str) -> None:
    """Rows that it had not read, rows that came after the publication, and the corrected partitions by their tag."""
    world = make_world(days=2, project=PROJECT)
    team = Team(world, way)
    assert team.reader.run_available() == ""
    first = list(team.reader.rows)
    assert sorted(first) == sorted((day, account) for day, account, *_ in world.wrong())
    world.live(NEW, "unread")
    plan = world.plan()
    (told,) = [one.message for one in plan.verdicts if one.rule == "streaming-readers"]
    assert "stops at the overwrite snapshot" in told
    assert "1 append unread" in told
    run = world.to("published")
    assert run == plan.id
    assert "Cannot process overwrite snapshot" in team.run()
    assert team.reader.rows == first, "as the plan says, it does not even read the append before the publication"
    old = team.reader.files()

    world.live(NEW, "after")
    error, answer = team.move(run, team.deliver())
    assert "Cannot process overwrite snapshot" in error
    assert team.reader.rows == [*first, (NEW, "unread")]
    assert not answer.is_done
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    (query,) = [step.partition(": ")[2] for step in shown.steps if "SELECT" in step]
    handed = [(str(row["day"]), row["account"], row["gross"], row["n"]) for row in world.sql(query)]
    assert sorted(handed) == world.expected()
    error, answer = team.move(run, shown, 1)
    assert error == ""
    assert answer.is_done
    world.live(NEW, "later")
    assert team.run(1) == ""
    assert team.reader.rows == [*first, (NEW, "unread"), (NEW, "after"), (NEW, "later")]
    team.reader.checkpoint = world.root / "cp"
    assert team.reader.files() == old


@pytest.mark.slow
@pytest.mark.parametrize("way", ["available now", "processing time"])
def test_a_sink_that_knows_the_query_drops_no_batch_of_a_repaired_reader(make_world: Make, way: str) -> None:
    """The copy has the id of the query, and a table skips epochs of a query that it has: none is repeated."""
    world = make_world(days=2, project=PROJECT)
    sink = "lake.fin.sink"
    world.sql(f"CREATE TABLE {sink} AS SELECT * FROM {TABLE} WHERE false")
    team = Team(world, way, sink)
    assert team.reader.run_available() == ""
    world.live(NEW, "unread")
    run = world.to("published")
    assert "Cannot process overwrite snapshot" in team.run()
    world.live(NEW, "after")
    team.move(run, team.deliver())
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    error, answer = team.move(run, shown, 1)
    assert (error, answer.is_done) == ("", True)
    world.live(NEW, "later")
    assert team.run(1) == ""
    rows = [(str(row["day"]), row["account"]) for row in world.sql(f"SELECT day, account FROM {sink}")]
    news = [(NEW, account) for account in ("after", "later", "unread")]
    assert sorted(rows) == sorted([*((day, account) for day, account, *_ in world.wrong()), *news])


@pytest.mark.slow
def test_a_reader_is_brought_past_a_publication_and_its_rollback(make_world: Make) -> None:
    """Two snapshots in a row, one repair; what is handed over is what the rollback restored."""
    world = make_world(days=2, project=PROJECT)
    team = Team(world, "available now")
    team.run()
    first = list(team.reader.rows)
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    world.live(NEW, "after")
    shown = team.deliver()
    (query,) = [step.partition(": ")[2] for step in shown.steps if "SELECT" in step]
    handed = [(str(row["day"]), row["account"], row["gross"], row["n"]) for row in world.sql(query)]
    assert sorted(handed) == world.wrong()
    error, answer = team.move(run, shown)
    assert (error, answer.is_done) == ("", True)
    assert team.reader.rows == [*first, (NEW, "after")]


@pytest.mark.slow
def test_a_reader_with_the_option_passes_and_its_checkpoint_proves_it(make_world: Make) -> None:
    """Declared before it was seen: a warning. Once it has passed a publication: proven, and not before."""
    world = make_world(days=2, project=PROJECT.replace("rewind", "skip"))
    option = {"streaming-skip-overwrite-snapshots": "true"}
    reader = Reader(world.spark, TABLE, world.root / "cp")
    assert reader.run_available(options=option) == ""
    (told,) = [one for one in world.plan().verdicts if one.rule == "streaming-readers"]
    assert (told.level, "nothing proves it" in told.message) == ("warn", True)
    world.to("published")
    world.live(NEW, "after")
    assert reader.run_available(options=option) == ""
    assert reader.rows[-1] == (NEW, "after")
    (shown,) = world.client.check_consumers(PRODUCT).consumers
    assert (shown.effect, "has passed overwrite snapshot" in shown.why) == ("passes", True)


@pytest.mark.slow
def test_a_query_with_state_is_refused_by_name(make_world: Make) -> None:
    """A deduplication keeps what it has seen: its state and a moved position would not agree."""
    world = make_world(days=2, project=PROJECT)
    source = world.spark.readStream.format("iceberg").load(TABLE).dropDuplicates(["account"])
    place = world.root / "cp"
    query = source.writeStream.format("noop").option("checkpointLocation", str(place)).trigger(availableNow=True)
    query.start().awaitTermination()
    with pytest.raises(PlanRefused, match=r"fraud: .*the query keeps state"):
        world.plan()
