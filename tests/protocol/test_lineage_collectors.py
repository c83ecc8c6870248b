"""A collector that is down, slow or broken costs a correction nothing, and loses no event."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.engines.channels.message_file import append_lines
from errata.errors import ProjectFileError
from errata.model.consumer.outbox import Effect, ItemState
from support.http_receiver import Behave, HttpReceiver, answer, dribble, hang, refuse, reset
from support.lineage import identify, list_endings, read_events, require_valid
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT

Make = Callable[..., World]

COLLECTOR = '\nlineage: {{http: {{url: "{url}", api_key: "${{LINEAGE_KEY}}"}}, timeout: 1s}}\n'
BEHAVIOURS = {"500": refuse(500), "429": refuse(429), "hangs": hang, "resets": reset, "dribbles": dribble()}
KEY = "a key that nobody may see"


@pytest.fixture(autouse=True)
def lineage_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINEAGE_KEY", KEY)


def find_free_port() -> int:
    with HttpReceiver() as receiver:
        return receiver.port


def list_owed(world: World) -> list[Any]:
    return [one for one in world.ledger.outbox.list_open() if one.effect is Effect.LINEAGE]


def list_kinds(posts: list[Any]) -> dict[str, list[str]]:
    events = [post.json for post in posts]
    require_valid(events)
    return list_endings(events)


def test_a_collector_gets_every_event_with_the_key(make_world: Make) -> None:
    """At the path of its endpoint, one request for each event, in order."""
    with HttpReceiver() as receiver:
        world = make_world(days=2, project=COLLECTOR.format(url=receiver.url))
        world.to("published")
        assert list(list_kinds(receiver.posts).values()) == [["START", "COMPLETE"]] * 3
        assert {post.path for post in receiver.posts} == {"/api/v1/lineage"}
        assert {post.headers["authorization"] for post in receiver.posts} == {f"Bearer {KEY}"}
        assert KEY not in str([post.body for post in receiver.posts])


def test_a_collector_that_is_down_costs_nothing_and_loses_nothing(make_world: Make) -> None:
    """The correction is published all the same; when the collector is back, it gets everything, in order."""
    port = find_free_port()
    world = make_world(days=2, project=COLLECTOR.format(url=f"http://127.0.0.1:{port}"))
    run = world.to("published")
    assert world.client.status(run).state == "published"
    assert world.rows() == world.expected()
    owed = list_owed(world)
    assert {one.state for one in owed} == {ItemState.OWED}
    assert "cannot be reached" in str(owed[0].last_error)
    assert world.client.outbox(run).next == (f"errata deliver {run}",)
    assert "deliver" not in world.client.status(run).next, "lineage decides nothing"
    with HttpReceiver(at_port=port) as later:
        assert world.client.deliver(as_="ana").ok
        assert list(list_kinds(later.posts).values()) == [["START", "COMPLETE"]] * 3
    assert list_owed(world) == []


@pytest.mark.parametrize("behave", BEHAVIOURS.values(), ids=list(BEHAVIOURS))
def test_whatever_a_collector_does_the_events_stay_owed(behave: Behave, make_world: Make) -> None:
    """It costs at most the time of one event for each command, and the next delivery sends what is owed."""
    with HttpReceiver(behave) as receiver:
        world = make_world(days=2, project=COLLECTOR.format(url=receiver.url))
        run = world.to("validated")
        owed = list_owed(world)
        started = time.monotonic()
        world.client.publish(run, as_="bo")
        assert time.monotonic() - started < 5
        assert world.client.status(run).state == "published"
        assert len(list_owed(world)) > len(owed) > 0
        assert not any(KEY in str(one.last_error) for one in list_owed(world))
        receiver.behave = answer()
        receiver.posts.clear()
        world.client.retry_outbox([str(one.item_id) for one in list_owed(world)], as_="ana")
        assert world.client.deliver(as_="ana").ok
        assert list(list_kinds(receiver.posts).values()) == [["START", "COMPLETE"]] * 3


def test_an_event_that_is_refused_waits_for_a_person(make_world: Make) -> None:
    """Another attempt with the same bytes cannot help; a person lets it be tried again, or waives it."""
    with HttpReceiver(refuse(422, b"no such field")) as receiver:
        world = make_world(days=1, project=COLLECTOR.format(url=receiver.url))
        run = world.to("published")
        (failed,) = [one for one in list_owed(world) if one.state is ItemState.FAILED]
        assert failed.last_error == "the collector at 127.0.0.1 answered HTTP 422"
        assert world.client.outbox(run).next[0] == f"errata outbox retry {failed.item_id}"
        receiver.behave = answer()
        receiver.posts.clear()
        world.client.retry_outbox([str(failed.item_id)], as_="ana")
        assert world.client.deliver(as_="ana").ok
        assert list(list_kinds(receiver.posts).values()) == [["START", "COMPLETE"]] * 3


def test_an_event_that_is_sent_again_is_the_same_event(make_world: Make) -> None:
    """A collector that took an event and did not answer gets the same bytes again."""
    with HttpReceiver(hang) as receiver:
        world = make_world(days=1, project=COLLECTOR.format(url=receiver.url))
        world.to("published")
        first = receiver.posts[0]
        receiver.behave = answer()
        world.client.retry_outbox([str(one.item_id) for one in list_owed(world)], as_="ana")
        world.client.deliver(as_="ana")
        again = [post for post in receiver.posts[1:] if identify(post.json) == identify(first.json)]
        assert again
        assert {post.body for post in again} == {first.body}


def test_a_key_that_is_not_set_leaves_the_events_owed(make_world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt is counted where the command has not the rights, and the correction goes on."""
    with HttpReceiver() as receiver:
        monkeypatch.delenv("LINEAGE_KEY")
        world = make_world(days=1, project=COLLECTOR.format(url=receiver.url))
        world.to("published")
        assert {one.attempts for one in list_owed(world)} == {0}
        assert receiver.posts == []
        assert any("LINEAGE_KEY" in line for line in world.said)


def append_many(place: str, name: str, count: int) -> None:
    for n in range(count):
        line = b'{"who":"%s","n":%d,"x":"%s"}\n' % (name.encode(), n, b"x" * 20_000)
        append_lines(place, [line, line])


def test_two_processes_append_whole_lines(tmp_path: Path) -> None:
    """Lines that are longer than any buffer stay whole, and none is lost."""
    place = tmp_path / "events.jsonl"
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=append_many, args=(str(place), name, 40)) for name in ("a", "b", "c")]
    for one in writers:
        one.start()
    for one in writers:
        one.join(60)
    found = read_events(place)
    assert sorted((one["who"], one["n"]) for one in found) == sorted(
        (name, n) for name in "abc" for n in range(40) for _ in range(2)
    )


def test_the_job_and_the_tables_have_the_names_that_are_declared(make_world: Make) -> None:
    """So that lineage of other tools meets that of Errata."""
    names = "namespace: corrections, datasets: {lake: s3://finance}"
    world = make_world(days=1, project=f"\nlineage: {{file: lineage.jsonl, {names}}}\n")
    world.to("published")
    end = read_events(world.root / "lineage.jsonl")[-1]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("corrections", PRODUCT)
    assert (end["outputs"][0]["namespace"], end["outputs"][0]["name"]) == ("s3://finance", "fin.sales")


def test_without_the_package_events_wait_and_check_says_what_to_install(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing extra is one sentence with the command, and no attempt is counted."""
    world = make_world(days=1, project="\nlineage: {file: lineage.jsonl}\n")
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    world.to("published")
    assert {one.attempts for one in list_owed(world)} == {0}
    assert any("lineage needs the package openlineage-python; found none" in line for line in world.said)
    (problem,) = [one for one in world.client.check() if "lineage" in str(one.key)]
    assert "pip install 'errata[lineage]'" in problem.message
    (check,) = [one for one in world.client.doctor() if one.name == "lineage"]
    assert (check.ok, check.hint) == (False, "pip install 'errata[lineage]'")


def test_doctor_says_whether_the_collector_answers(make_world: Make) -> None:
    """An address that answers anything will do; one that does not is named by its host only."""
    port = find_free_port()
    world = make_world(days=1, project=COLLECTOR.format(url=f"http://127.0.0.1:{port}"))

    def look() -> tuple[bool, str]:
        (check,) = [one for one in world.client.doctor() if one.name == "lineage"]
        return check.ok, check.found

    assert look() == (False, "the collector at 127.0.0.1: the address cannot be reached: ConnectionRefusedError")
    with HttpReceiver(refuse(404), at_port=port):
        assert look() == (True, "the collector at 127.0.0.1 answers (HTTP 404)")


WRONG = {
    "{}": "lineage: expected exactly one of file, http and kafka; found none",
    "{file: a.jsonl, http: {url: 'http://c'}}": "lineage: expected exactly one of file, http and kafka; found file and",
    "{http: {url: 'ftp://c'}}": "lineage.http.url: expected an address that begins with http:// or https://",
    "{kafka: {cluster: none, topic: t}}": "lineage.kafka.cluster: expected a Kafka cluster of errata.yaml",
    "{file: 's3://bucket/a'}": "lineage.file: expected a file on this machine",
    "{file: a.jsonl, datasets: {sea: x}}": "lineage.datasets.sea: expected a catalog of errata.yaml",
}


@pytest.mark.parametrize("given", WRONG)
def test_wrong_settings_are_refused_with_their_place(given: str, make_world: Make) -> None:
    """At the key that is wrong, before anything runs."""
    with pytest.raises(ProjectFileError) as refused:
        make_world(days=1, project=f"\nlineage: {given}\n")
    assert WRONG[given] in refused.value.message
