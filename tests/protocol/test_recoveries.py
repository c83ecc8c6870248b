"""After a publication or a rollback, consumers are made to read again, and what they show is read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pytest

from errata.delivery.attempts import count_attempts
from errata.delivery.payment import pay
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.message_formats import to_json, to_text
from errata.model.consumer.outbox import Effect, ItemState
from errata.testing.consumers import MemoryConsumers
from support.clock import Clock, stopped_clock
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE

Make = Callable[..., World]
ACTOR = Actor("ana", "ana", "host")
CACHE = """
consumers:
  exec-dashboard:
    reads: [fin.sales]
    refresh:
      - {redis: "redis://127.0.0.1:6379/0", delete: "rev:{partition}:*"}
    verify: {redis: "redis://127.0.0.1:6379/0", get: "rev:{partition}:total", equals: sum(gross)}
"""
VIEW = """
warehouses:
  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}
consumers:
  exec-dashboard:
    reads: [fin.sales]
    refresh: [{sql: "REFRESH MATERIALIZED VIEW mv", on: pg}]
    verify: {sql: "SELECT sum(gross) FROM mv WHERE day = '{partition}'", on: pg, equals: sum(gross)}
"""


def _totals(world: World) -> dict[str, str]:
    rows = world.rows()
    return {day: str(sum((gross for name, _, gross, _ in rows if name == day), Decimal(0))) for day in world.days}


def _put_into_cache(world: World, *days: str) -> None:
    """What a reader caches now."""
    world.engines.consumers.cache |= {f"rev:{day}:total": _totals(world)[day] for day in days}


def _fill(world: World) -> None:
    _put_into_cache(world, *world.days)


def _item(world: World, effect: Effect = Effect.RECOVER) -> OutboxItem:
    """The newest item of this effect."""
    return [one for one in world.ledger.outbox.list() if one.effect is effect][-1]


def _pay_until_it_ends(world: World, clock: Clock) -> OutboxItem:
    """Pay as often as it is due."""
    while (item := _item(world)).state is ItemState.OWED:
        clock.move(max(0.0, item.not_before / 1000 - clock.at.timestamp()))
        pay(world.workspace, ACTOR, seconds=60)
    return item


@pytest.fixture
def clock() -> Clock:
    with stopped_clock() as stopped:
        yield stopped


def test_a_cache_is_emptied_for_the_partitions_and_read_back(make_world: Make, clock: Clock) -> None:
    """Old values of other partitions stay; the same happens after a rollback."""
    world = make_world(days=3, project=CACHE)
    _fill(world)
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    _put_into_cache(world, world.days[0])
    item = _pay_until_it_ends(world, clock)
    assert (item.state, item.result["equal"], item.result["empty"]) == (ItemState.PAID, 1, 1)
    del world.engines.consumers.cache[f"rev:{world.days[0]}:total"]
    assert set(world.engines.consumers.cache) == {f"rev:{world.days[2]}:total"}
    _fill(world)
    world.client.rollback(run, reason="wrong", as_="bo")
    item = _pay_until_it_ends(world, clock)
    assert (item.event, item.state) == ("rolled_back", ItemState.PAID)
    assert set(world.engines.consumers.cache) == {f"rev:{world.days[2]}:total"}


def test_a_view_has_to_show_what_was_published(make_world: Make) -> None:
    """A statement without {partition} runs once; what the view shows is compared for each partition."""
    world = make_world(days=2, project=VIEW)
    bi = _view(world)
    world.to("published")
    item = _item(world)
    assert (item.state, item.result) == (
        ItemState.PAID,
        {"partitions": 2, "refreshed": True, "verified": True, "equal": 2, "snapshot_id": world.snapshot()},
    )
    assert [one.kind for one in bi.done] == ["sql"]
    world.client.rollback(item.run_id, reason="wrong", as_="bo")
    assert _item(world).state is ItemState.PAID
    assert [bi.show(day) for day in world.days] == list(_totals(world).values())


def _view(world: World, *, is_stuck: bool = False) -> MemoryConsumers:
    """A materialized view: it shows the table as of its last refresh, or for ever the same."""
    bi, shown = world.engines.consumers, dict(_totals(world))

    def refresh(_: Sequence[str]) -> None:
        if not is_stuck:
            shown.update(_totals(world))

    bi.react, bi.show = refresh, lambda day: shown[day]
    return bi


def test_a_consumer_that_keeps_lying_ends_as_failed_with_its_name(make_world: Make, clock: Clock) -> None:
    """After several attempts, each with a refresh; the error says what it shows and what it should show."""
    world = make_world(days=1, project=VIEW)
    old = _totals(world)[world.days[0]]
    bi = _view(world, is_stuck=True)
    world.to("published")
    item = _pay_until_it_ends(world, clock)
    assert (item.state, item.attempts) == (ItemState.FAILED, count_attempts(Effect.RECOVER))
    new = _totals(world)[world.days[0]]
    assert item.last_error == f"exec-dashboard shows {old} for {world.days[0]}, expected {new}"
    assert len(bi.done) == 1 + count_attempts(Effect.RECOVER)


def test_values_of_classified_columns_are_not_told(make_world: Make, clock: Clock) -> None:
    """The record and the message say that it differs, and no more."""
    told = "    tell: {channel: finance, on: [failed]}\nchannels:\n  finance: {file: messages.jsonl}\n"
    world = make_world(days=1, project=VIEW + told, product=PRODUCT_FILE + "classified: [gross]\n")
    old = _totals(world)[world.days[0]]
    _view(world, is_stuck=True)
    world.to("published")
    item = _pay_until_it_ends(world, clock)
    assert item.last_error == f"exec-dashboard differs for {world.days[0]}"
    new = _totals(world)[world.days[0]]
    pay(world.workspace, ACTOR)
    (message,) = world.engines.channels.list_once("finance")
    assert f"{world.days[0]}: shows classified, expected classified." in message.text
    entries = [str(entry.body) for entry in world.client.audit_log(item.run_id) if "outbox" in entry.action]
    for text in (*world.said, *entries, to_text(message), str(to_json(message)), str(world.ledger.outbox.list())):
        assert old not in text
        assert new not in text


def test_a_reader_that_fills_the_cache_with_old_rows_is_caught_after_refill(make_world: Make, clock: Clock) -> None:
    """Without a second refresh its old value would stay until it expires."""
    world = make_world(days=1, project=CACHE.replace("    verify:", "    refill: 60s\n    verify:"))
    _fill(world)
    slow_reader = dict(world.engines.consumers.cache)
    world.to("published")
    assert world.engines.consumers.cache == {}
    world.engines.consumers.cache |= slow_reader
    assert _item(world).state is ItemState.OWED
    item = _pay_until_it_ends(world, clock)
    assert (item.state, world.engines.consumers.cache) == (ItemState.PAID, {})
    assert len(world.engines.consumers.done) == 2


def test_a_cache_that_is_filled_with_old_rows_again_and_again_is_failed(make_world: Make, clock: Clock) -> None:
    """It is never taken for recovered."""
    world = make_world(days=1, project=CACHE)
    _fill(world)
    old = dict(world.engines.consumers.cache)
    # the entry is back each time before it is read
    world.engines.consumers.react = lambda _: world.engines.consumers.cache.update(old)
    world.to("published")
    item = _pay_until_it_ends(world, clock)
    assert (item.state, "exec-dashboard shows" in (item.last_error or "")) == (ItemState.FAILED, True)


def test_a_key_that_never_held_anything_proves_nothing(make_world: Make, clock: Clock) -> None:
    """A wrong name in get would otherwise always look right."""
    world = make_world(days=1, project=CACHE.replace(":total", ":totl"))
    _fill(world)
    world.to("published")
    item = _pay_until_it_ends(world, clock)
    assert item.state is ItemState.FAILED
    assert (item.last_error or "").startswith(f"exec-dashboard shows nothing for {world.days[0]}, expected")


def test_a_cache_that_nobody_filled_since_the_last_refresh_is_recovered(make_world: Make, clock: Clock) -> None:
    """Its name was right when entries were found under it; a name that was changed since has to be found again."""
    world = make_world(days=2, project=CACHE)
    _fill(world)
    run = world.to("published")
    assert _pay_until_it_ends(world, clock).state is ItemState.PAID
    world.client.rollback(run, partitions=world.days[0], reason="wrong", as_="bo")
    item = _pay_until_it_ends(world, clock)
    assert (item.event, item.state, item.result["empty"]) == ("rolled_back", ItemState.PAID, 1)
    world.configure(":total", ":totl")
    world.client.rollback(run, reason="wrong", as_="bo")
    assert _pay_until_it_ends(world, clock).state is ItemState.FAILED


def test_a_late_item_compares_with_what_is_accepted_then(make_world: Make, clock: Clock) -> None:
    """A consumer that was down while a run was published and rolled back has to show what is there now."""
    world = make_world(days=2, project=VIEW)
    bi = _view(world)
    before = _totals(world)
    bi.broken = "down"
    run = world.to("published")
    clock.move(3600)
    world.client.rollback(run, partitions=world.days[0], reason="wrong", as_="bo")
    clock.move(3600)
    bi.broken = ""
    pay(world.workspace, ACTOR, seconds=60)
    items = [one for one in world.ledger.outbox.list() if one.effect is Effect.RECOVER]
    assert [one.state for one in items] == [ItemState.PAID] * 2
    assert [bi.show(day) for day in world.days] == [before[world.days[0]], _totals(world)[world.days[1]]]


def test_a_newer_item_pays_for_an_older_one(make_world: Make, clock: Clock) -> None:
    """A rollback of everything settles what the publication owed, and is verified against the old rows."""
    world = make_world(days=2, project=VIEW)
    bi = _view(world)
    bi.broken = "down"
    run = world.to("published")
    clock.move(3600)
    world.client.rollback(run, reason="wrong", as_="bo")
    clock.move(3600)
    bi.broken = ""
    pay(world.workspace, ACTOR, seconds=60)
    older, newer = (one for one in world.ledger.outbox.list() if one.effect is Effect.RECOVER)
    assert (older.state, older.result) == (ItemState.PAID, {"absorbed_by": newer.key})
    assert newer.result["verified"] is True


def test_a_live_write_in_between_is_what_the_consumer_has_to_show(make_world: Make, clock: Clock) -> None:
    """The table is the truth, also where someone else has written to it since."""
    world = make_world(days=1, project=VIEW)
    bi = _view(world)
    bi.broken = "down"
    world.to("published")
    world.live(world.days[0])
    clock.move(60)
    bi.broken = ""
    pay(world.workspace, ACTOR, seconds=60)
    assert _item(world).state is ItemState.PAID
    assert bi.show(world.days[0]) == _totals(world)[world.days[0]]


def test_a_consumer_that_was_removed_says_what_to_do(make_world: Make, clock: Clock) -> None:
    """The item stays until a person waives it."""
    world = make_world(days=1, project=VIEW)
    world.engines.consumers.broken = "down"
    world.to("published")
    world.configure(VIEW, "")
    item = _pay_until_it_ends(world, clock)
    assert item.last_error == (
        "exec-dashboard is not a consumer of this project any more; waive the item, or declare it again"
    )


def test_a_missing_variable_leaves_the_item_untouched(make_world: Make) -> None:
    """Another machine has it."""
    world = make_world(days=1, project=VIEW.replace("postgresql://errata@127.0.0.1/bi", "${BI_DATABASE}"))
    world.to("published")
    (warning,) = pay(world.workspace, ACTOR, seconds=60).warnings
    assert "is still owed: exec-dashboard needs the variable BI_DATABASE, which is not set here" in warning
    item = _item(world)
    assert (item.state, item.attempts, item.last_error) == (ItemState.OWED, 0, None)
