"""The time after a publication: what live jobs write next to it is judged, and health signals are read."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from errata.delivery.payment import pay
from errata.errors import ErrataError
from errata.failpoints import arm
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.message_formats import to_json, to_text
from errata.model.consumer.outbox import Effect, ItemState
from support.clock import stopped_clock
from support.memory_world import MemoryWorld
from support.terminal import text
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
CHANNEL = "channels:\n  finance: {file: messages.jsonl}\n"
WATCHED = PRODUCT_FILE + (
    'control:\n  - {name: usual gross, metric: "sum(gross)", weeks: 2, least: 2, warn: 3, block: 1000}\n'
    "watch: {for: 2h, every: 30min, channel: finance}\n"
)
HALF_HOUR = 1800
ANA = Actor("ana", "ana-os", "here")


def validate_all(make_world: Make, product: str = WATCHED) -> tuple[MemoryWorld, str]:
    """A correction of all days but the last week, validated; the last week is right already."""
    world = make_world(days=29, product=product, project=CHANNEL, history=False)
    world.write_history(world.days[:22])
    run = world.to("staged", f"{world.days[0]}..{world.days[21]}")
    try:
        world.client.validate(run, as_="ana")
    except ErrataError:
        world.client.validate(run, accept={"usual gross": "no controls yet"}, as_="bo")
    return world, run


def publish_all(make_world: Make, product: str = WATCHED) -> tuple[MemoryWorld, str]:
    """The same, published."""
    world, run = validate_all(make_world, product)
    world.client.publish(run, as_="bo")
    return world, run


def write_double(world: MemoryWorld) -> None:
    """A live job that still has the bug writes the day after the corrected ones."""
    world.table.append([{"day": world.days[22], "account": "a", "gross": "4000.00", "n": 1}])


def look(world: MemoryWorld) -> None:
    """What ``errata deliver`` does, without waiting."""
    report = pay(world.workspace, ANA)
    assert report.warnings == []


def item_of(world: MemoryWorld, run: str) -> OutboxItem:
    (found,) = [item for item in world.ledger.outbox.list(run_id=run) if item.effect is Effect.WATCH]
    return found


def test_a_quiet_time_ends_with_as_many_looks_as_were_declared(make_world: Make) -> None:
    """Nothing is said before the time is over; then the number of looks is on record."""
    with stopped_clock() as clock:
        world, run = publish_all(make_world)
        assert item_of(world, run).state is ItemState.OWED
        for _ in range(4):
            clock.move(HALF_HOUR)
            look(world)
        found = item_of(world, run)
        steps = {step.n: step.state for step in world.client.runbook(run).steps}
    assert (found.state, found.result) == (ItemState.PAID, {"looks": 4, "unusual": []})
    assert steps[17] == "done"


def test_a_watch_that_goes_on_is_owed_to_nobody(make_world: Make) -> None:
    """Whoever delivers is done: the next look is not waited for, and the exit code is that of success."""
    with stopped_clock():
        world, run = publish_all(make_world)
        view = world.client.deliver(run, timeout="1h", as_="ana")
        (item,) = view.items
        code, page = text(world, f"errata deliver {run}")
        status = world.client.status(run)
    assert (view.ok, view.next, item.kind, code) == (True, (), "watch", 0)
    assert page.startswith("✓ nothing is owed in")
    assert (item.waits or "").startswith("it is watched until ")
    assert f"{item.waits} looked at again from" in page
    assert "deliver" not in status.next


def test_an_unusual_number_next_to_the_correction_is_an_alarm(make_world: Make) -> None:
    """A live job that still doubles every gross is noticed, because corrected days are among its controls."""
    with stopped_clock() as clock:
        world, run = publish_all(make_world)
        clock.move(HALF_HOUR)
        look(world)
        write_double(world)
        clock.move(HALF_HOUR)
        look(world)
        found = item_of(world, run)
    assert found.state is ItemState.PAID
    (unusual,) = found.result["unusual"]
    assert (unusual["partition"], unusual["rule"]) == (world.days[22], "usual gross")
    (message,) = world.engines.channels.list_once("finance")
    assert message.title.startswith("Unusual after a correction: fin.sales, 22 days")
    assert message.commands["roll back"] == f'errata rollback {run} --reason "…"'
    assert "sum(gross) is 4000.00" in message.text


def test_what_a_live_job_wrote_before_the_first_look_is_noticed(make_world: Make) -> None:
    """The neighbours are compared with how the publication left them, however late somebody pays."""
    with stopped_clock() as clock:
        world, run = validate_all(make_world)
        with arm("deliver.after_claim", _die), pytest.raises(KeyboardInterrupt):
            world.client.publish(run, as_="bo")
        write_double(world)
        for _ in range(2):
            clock.move(HALF_HOUR)
            look(world)
        found = item_of(world, run)
    assert [one["partition"] for one in found.result["unusual"]] == [world.days[22]]


def _die() -> None:
    raise KeyboardInterrupt


def test_an_alarm_about_a_classified_column_has_no_number_of_it(make_world: Make) -> None:
    """Over a partition with one row a sum is the value of that row; the controls would show others."""
    with stopped_clock() as clock:
        world, run = publish_all(make_world, WATCHED + "classified: [gross]\n")
        write_double(world)
        clock.move(HALF_HOUR)
        look(world)
        found = item_of(world, run)
    (message,) = world.engines.channels.list_once("finance")
    assert f"{world.days[22]}: sum(gross) is unusual; its numbers are classified." in message.text
    for told in (json.dumps(to_json(message)), to_text(message), str(found.result), *world.said):
        assert "4000" not in told
        assert "median" not in told


def test_a_publication_that_was_rolled_back_is_watched_no_longer(make_world: Make) -> None:
    """The watch ends with the reason."""
    with stopped_clock() as clock:
        world, run = publish_all(make_world)
        world.client.rollback(run, reason="wrong rate", as_="bo")
        clock.move(HALF_HOUR)
        look(world)
        found = item_of(world, run)
    assert found.result == {"ended": "nothing of the publication is current any more"}


@pytest.mark.parametrize(
    "watch, said",
    [
        ("{for: 2h, channel: nobody}", "expected a channel of errata.yaml"),
        ("{for: 2h, channel: finance, metrics: [usual gros]}", 'nearest: "usual gross"'),
        ("{for: 2h, channel: finance, health: [lag]}", "expected a health signal with pause_above"),
        ("{for: 10min, every: 30min, channel: finance}", "expected at most as long as for"),
    ],
)
def test_a_watch_that_cannot_work_is_a_problem_of_the_file(make_world: Make, watch: str, said: str) -> None:
    """Before anything is planned."""
    wrong = WATCHED.replace("{for: 2h, every: 30min, channel: finance}", watch)
    with pytest.raises(ErrataError, match="watch") as refused:
        make_world(days=1, product=wrong, project=CHANNEL)
    assert said in str(refused.value.fields) + refused.value.message
