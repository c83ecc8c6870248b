"""Tables of Snowflake that read the lake's own metadata are told to read it again, and it is seen that they did."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from errata.errors import ProjectFileError, UsageError
from errata.ledger import OutboxItem
from errata.model.consumer.outbox import Effect
from errata.testing.copies import MemoryLinkedTables
from support.clock import Clock, stopped_clock
from support.copy_world import build_product
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]
SNOWFLAKE = "account: a, user: u, private_key: key.pem, role: r, warehouse: w, database: d, schema: s"
PROJECT = (
    f'\nwarehouses:\n  snow: {{type: snowflake, {SNOWFLAKE}}}\n  pg: {{type: postgres, uri: "postgresql://h/db"}}\n'
)
COPY = "{warehouse: snow, table: SALES, mode: refresh}"


@pytest.fixture(autouse=True)
def clock() -> Iterator[Clock]:
    """The ledger's clock, which waits for nobody."""
    with stopped_clock() as stopped:
        yield stopped


@pytest.fixture
def world(make_world: Make) -> World:
    made = make_world(product=build_product(COPY), project=PROJECT)
    made.engines.links.links["snow", "SALES"] = made.workspace.project.products["fin.sales"].target.table
    return made


def items(world: World) -> list[OutboxItem]:
    return [one for one in world.ledger.outbox.list() if one.effect is Effect.COPY]


def test_a_publication_refreshes_the_table(world: World) -> None:
    """It is paid when the table reads the metadata of the publication; no marker and no staging is needed."""
    world.to("published", world.days[0])
    [item] = items(world)
    assert item.state == "paid"
    read = world.engines.links.reads["snow", "SALES"]
    assert item.result["metadata"] == read.rpartition("/")[2]
    assert read == world.engines.lake_rows.list_metadata(item.table)[-1]


def test_a_table_that_still_reads_older_metadata_is_not_delivered(world: World, clock: Clock) -> None:
    """A refresh that is answered without an error is no proof."""
    world.engines.links.is_stuck = True
    world.to("published", world.days[0])
    [item] = items(world)
    assert item.state == "owed"
    assert "after a refresh; expected" in (item.last_error or "")
    world.engines.links.is_stuck = False
    clock.move(3600)
    world.client.deliver(as_="ana")
    assert items(world)[0].state == "paid"


def test_what_live_jobs_committed_since_is_fine(world: World) -> None:
    """The table may read something newer than what was current when the payment began."""

    class WrittenMeanwhile(MemoryLinkedTables):
        """A live job commits just before the table reads again."""

        def refresh(self, warehouse: str, table: str) -> str:
            world.live(world.days[1], "live")
            return super().refresh(warehouse, table)

    world.engines.links = WrittenMeanwhile(world.engines.lake_rows, world.engines.links.links)
    world.to("published", world.days[0])
    assert items(world)[0].state == "paid"


def test_there_is_no_baseline_of_such_a_table(world: World) -> None:
    """It has no rows of its own."""
    with pytest.raises(UsageError, match="no copy with rows of its own"):
        world.client.baseline("fin.sales", as_="bo")


@pytest.mark.parametrize(
    "copy,told",
    [
        ("{warehouse: pg, table: sales, mode: refresh}", "refresh is for a warehouse with type: snowflake"),
        (
            "{warehouse: snow, table: S, mode: refresh, columns: {n: N}}",
            'the key "columns" belongs to a copy with mode',
        ),
    ],
)
def test_keys_that_do_not_fit_are_refused(make_world: Make, copy: str, told: str) -> None:
    """With the files, before anything runs."""
    with pytest.raises(ProjectFileError) as refused:
        make_world(product=build_product(copy), project=PROJECT)
    assert told in str(refused.value)
