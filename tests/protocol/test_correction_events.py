"""Correction events: what the table of corrections has, in its order, and nothing of what never went out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import ProjectFileError
from errata.model.kafka.outgoing import OutgoingRecord
from errata.testing.topics.memory_topics import MemoryTopics
from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
KAFKA = 'kafka:\n  events: {bootstrap: "127.0.0.1:1"}\n'
PLACE = "corrections: {cluster: events, topic: fixes}"


def _declare(said: str = PLACE) -> str:
    return PRODUCT_FILE.replace("rollback_window: 30d", f"rollback_window: 30d, {said}")


@pytest.fixture
def make(make_world: Make) -> Callable[..., tuple[MemoryWorld, MemoryTopics]]:
    def made(days: int = 2, said: str = PLACE) -> tuple[MemoryWorld, MemoryTopics]:
        world = make_world(days=days, product=_declare(said), project=KAFKA)
        return world, world.engines.topic_writer

    return made


def _tell(records: list[OutgoingRecord]) -> list[tuple[str, str, Any, Any]]:
    found = []
    for one in records:
        value = json.loads(one.value)
        sides = (None if value[side] is None else value[side]["gross"] for side in ("old", "new"))
        found.append((value["partition"], value["key"]["account"], *sides))
    return found


def test_every_correction_is_an_event_with_its_key_and_headers(make: Any) -> None:
    """Old and new value by key; the table has a name of its own where the product gives none."""
    world, topics = make()
    run = world.to("published")
    sent = topics.sent["fixes"]
    wrong = {(day, account): str(gross) for day, account, gross, _ in world.wrong()}
    right = {(day, account): str(gross) for day, account, gross, _ in world.expected()}
    assert sorted(_tell(sent)) == sorted((*key, wrong[key], right[key]) for key in wrong)
    assert {one.headers["x-run-id"] for one in sent} == {run}
    assert {one.headers["x-publication-id"] for one in sent} == {world.publication(run)}
    assert {json.loads(one.value)["kind"] for one in sent} == {"changed"}
    assert len({json.loads(one.value)["id"] for one in sent}) == len(sent)
    assert "lake.fin.sales_corrections" in world.lake.tables


def test_a_rollback_sends_the_reverse_of_what_was_sent(make: Any) -> None:
    """In order: whoever applies the events has the old values again."""
    world, topics = make(days=1)
    run = world.to("published")
    before = _tell(topics.sent["fixes"])
    world.client.rollback(run, reason="wrong", as_="bo")
    world.client.deliver(as_="ana")
    after = _tell(topics.sent["fixes"])
    assert sorted(after[len(before) :]) == sorted((day, account, new, old) for day, account, old, new in before)


def test_what_was_rolled_back_before_it_was_sent_never_goes_out(make: Any) -> None:
    """Neither the correction nor its reverse; partitions that stayed are sent."""
    world, topics = make()
    topics.down.add("fixes")
    run = world.to("published")
    world.client.rollback(run, partitions=world.days[0], reason="wrong", as_="bo")
    topics.down.clear()
    world.client.deliver(as_="ana")
    assert {day for day, *_ in _tell(topics.sent["fixes"])} == {world.days[1]}
    items = [one for one in world.ledger.outbox.list(run_id=run) if one.effect.value == "topic"]
    assert [(one.state.value, one.result["left_out"]) for one in items] == [("paid", [world.days[0]])] * 2


class Killed(BaseException):
    """The process is gone."""


def test_events_that_have_begun_are_finished_before_their_reverse(make: Any) -> None:
    """A process that dies among the events of a publication leaves no half of it in the topic, whatever comes next."""
    world, topics = make(days=1)
    run = world.to("validated")

    def die(count: int) -> None:
        if count == 2:
            raise Killed

    topics.after = die
    with pytest.raises(Killed):
        world.client.publish(run, as_="bo")
    topics.after = lambda _count: None
    world.client.rollback(run, reason="wrong", as_="bo")
    world.client.deliver(as_="ana")
    once = list({json.loads(one.value)["id"]: one for one in topics.sent["fixes"]}.values())
    half = len(once) // 2
    first, then = _tell(once[:half]), _tell(once[half:])
    assert len(first) == len(world.expected())
    assert sorted(then) == sorted((day, account, new, old) for day, account, old, new in first)


def test_corrections_need_a_cluster_of_the_project(make: Any) -> None:
    """The message names the key."""
    with pytest.raises(ProjectFileError, match=r"publish\.corrections") as refused:
        make(said="corrections: {cluster: other, topic: fixes}")
    assert "expected a cluster of kafka in errata.yaml (events)" in str(refused.value)
