"""Rows for backfill topics: kept with the attempt, sent after publication, and never after a rollback."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from errata.cli.render.publish import render_publish
from errata.delivery.payment import PaymentReport
from errata.delivery.unpaid import describe_unpaid
from errata.errors import ProjectFileError, RunFailed
from errata.failpoints import arm
from errata.model.kafka.outgoing import OutgoingRecord
from errata.testing.topics.memory_topics import MemoryTopics
from support.memory_world import MemoryWorld, build
from support.waves import in_waves
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
KAFKA = 'kafka:\n  events: {bootstrap: "127.0.0.1:1"}\n'
SINK = "sinks:\n  fixes: {class: backfill_topic, cluster: events, topic: sales-fixes, key: [day, account]}\n"


def emit(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    rows = build(ctx, raw)
    ctx.emit("fixes", rows)
    return rows


@pytest.fixture
def make(make_world: Make) -> Callable[..., tuple[MemoryWorld, MemoryTopics]]:
    def made(days: int = 2, product: str = f"{PRODUCT_FILE}{SINK}", **more: Any) -> tuple[MemoryWorld, MemoryTopics]:
        world = make_world(
            days=days, product=product, **{"transform": emit, "project": KAFKA, "chunk_bytes": "1", **more}
        )
        return world, world.engines.topic_writer

    return made


def _keys(records: list[OutgoingRecord]) -> list[tuple[str, str]]:
    return sorted((json.loads(one.key)["day"], json.loads(one.key)["account"]) for one in records)


def test_rows_go_out_with_their_publication_and_say_where_they_come_from(make: Any) -> None:
    """Nothing is sent before; then every row once, with its key, the row as JSON, and the headers of the run."""
    world, topics = make()
    run = world.to("validated")
    assert topics.sent == {}
    assert world.client.show(run).sinks == {
        "fixes": "backfill_topic: send to kafka://events/sales-fixes after publication"
    }
    world.client.publish(run, as_="bo")
    sent = topics.sent["sales-fixes"]
    assert _keys(sent) == sorted((day, account) for day, account, *_ in world.expected())
    one = sent[0]
    assert {name: one.headers[name] for name in ("x-run-id", "x-processing-mode", "x-transform-version")} == {
        "x-run-id": run,
        "x-processing-mode": "BACKFILL",
        "x-transform-version": "fin.sales/2.0.0",
    }
    assert one.headers["x-input-snapshot"].startswith("raw@files:")
    assert json.loads(one.key).items() <= json.loads(one.value).items()
    (item,) = [one for one in world.ledger.outbox.list(run_id=run) if one.effect.value == "topic"]
    assert (item.state.value, item.result["records"], item.result["left_out"]) == ("paid", len(sent), [])


def test_a_topic_that_does_not_answer_keeps_no_publication_from_landing(make: Any) -> None:
    """The rows stay owed, the next command sends them, and the table that keeps them is not cleaned up before."""
    world, topics = make()
    topics.down.add("sales-fixes")
    world.to("published")
    assert world.rows() == world.expected()
    assert topics.sent == {}
    kept = [one["why"] for one in world.client.cleanup(as_="ana", dry_run=True).kept]
    assert "rows that are still owed to a topic" in kept
    topics.down.clear()
    world.client.deliver(as_="ana")
    assert len(topics.sent["sales-fixes"]) == len(world.expected())
    kept = [one["why"] for one in world.client.cleanup(as_="ana", dry_run=True).kept]
    assert "rows that are still owed to a topic" not in kept


def test_a_publication_says_what_is_still_owed_why_and_what_pays_it(make: Any) -> None:
    """A failed attempt is a warning once; until the next one is due, and where time was over, there is a line."""
    world, topics = make()
    topics.down.add("sales-fixes")
    run = world.to("validated")
    first, again = world.client.publish(run, as_="bo"), world.client.publish(run, as_="bo")
    assert ("is not paid" in first.warnings[0], first.owed) == (True, ())
    failed = (
        "rows of sink fixes for kafka://events/sales-fixes: the last attempt failed (kafka://events/sales-fixes does"
    )
    (line,) = again.owed
    assert line.startswith(failed)
    assert line.endswith("; to pay it: errata deliver fin.sales")
    assert "still owed: rows of sink fixes" in " ".join(render_publish(again, 200))
    (item,) = [one for one in world.ledger.outbox.list(run_id=run) if one.effect.value == "topic"]
    manifest, fresh = world.ledger.runs.manifest(run), replace(item, last_error=None)
    (late,) = describe_unpaid([fresh], manifest, PaymentReport(is_out_of_time=True))
    assert "not begun, because this command starts no payment after 10 s; to pay it: errata deliver fin.sales" in late
    (behind,) = describe_unpaid([replace(fresh, progress={"waits": "the rows in t"})], manifest, PaymentReport())
    assert "waits for the rows in t" in behind
    topics.down.clear()
    world.client.deliver(as_="ana")
    assert world.client.publish(run, as_="bo").owed == ()


def test_after_a_rollback_nothing_more_goes_out(make: Any) -> None:
    """What was not sent stays here, on record as left out; what was sent is named in a warning."""
    world, topics = make()
    topics.down.add("sales-fixes")
    run = world.to("published")
    world.client.rollback(run, partitions=world.days[0], reason="wrong", as_="bo")
    topics.down.clear()
    world.client.deliver(as_="ana")
    assert {day for day, _ in _keys(topics.sent["sales-fixes"])} == {world.days[1]}
    (item,) = [one for one in world.ledger.outbox.list(run_id=run) if one.effect.value == "topic"]
    assert item.result["left_out"] == [world.days[0]]
    view = world.client.rollback(run, reason="wrong too", as_="bo")
    (line,) = [one for one in view.warnings if "kafka://events/sales-fixes has" in one]
    assert world.days[1] in line
    assert world.days[0] not in line


def test_rows_of_a_partition_with_a_subject_who_was_erased_since_stay_here(make: Any) -> None:
    """The list is looked at when they are sent, not only when the run is published."""
    world, topics = make()
    topics.down.add("sales-fixes")
    run = world.to("published")
    world.engines.suppressions.suppress("u1", world.days[1])
    topics.down.clear()
    world.client.deliver(as_="ana")
    assert {day for day, _ in _keys(topics.sent["sales-fixes"])} == {world.days[0]}
    (item,) = [one for one in world.ledger.outbox.list(run_id=run) if one.effect.value == "topic"]
    assert item.result["left_out"] == [world.days[1]]


def test_check_looks_for_the_topic(make: Any) -> None:
    """At the key that names it."""
    world, topics = make(days=1)
    before = {one.key for one in world.client.check()}
    topics.down.add("sales-fixes")
    (found,) = [one for one in world.client.check() if one.key not in before]
    assert (found.key, "kafka://events/sales-fixes" in found.message) == ("sinks.fixes.topic", True)


class Killed(BaseException):
    """The process is gone."""


def test_a_payment_that_dies_repeats_rows_and_loses_none(make: Any) -> None:
    """Consumers that drop a run and key that they have seen have every row once."""
    world, topics = make(days=3)
    run = world.to("validated")

    def die(count: int) -> None:
        if len(topics.sent["sales-fixes"]) == 4:
            raise Killed

    topics.after = die
    with pytest.raises(Killed):
        world.client.publish(run, as_="bo")
    topics.after = lambda _count: None
    world.client.deliver(as_="ana")
    sent = topics.sent["sales-fixes"]
    seen = {(one.headers["x-run-id"], one.key) for one in sent}
    assert len(seen) == len(world.expected()) < len(sent)
    assert {run for run, _ in seen} == {run}


def test_a_topic_that_fails_half_way_is_continued_where_it_stopped(make: Any) -> None:
    """Chunks that were confirmed are not sent again, and the one that was not is sent as a whole."""
    world, topics = make(days=3)
    run = world.to("validated")
    of_a_day = len(world.expected()) // 3

    def fail(_count: int) -> None:
        if len(topics.sent["sales-fixes"]) == of_a_day + 1:
            topics.down.add("sales-fixes")

    topics.after = fail
    world.client.publish(run, as_="bo")
    topics.down.clear()
    topics.after = lambda _count: None
    world.client.deliver(as_="ana")
    sent = topics.sent["sales-fixes"]
    assert len({one.key for one in sent}) == len(world.expected()) == len(sent) - 1


def test_rows_of_an_attempt_that_was_not_adopted_are_never_sent(make: Any) -> None:
    """An attempt that died after it kept its rows leaves them in the table, and another attempt's rows go out."""
    world, topics = make(days=1)
    run = world.to("approved")
    fails = iter([True])

    def fail_once() -> None:
        if next(fails, False):
            raise RuntimeError("gone")

    with arm("stage.before_commit", fail_once):
        world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    (table,) = world.engines.emitted.tables.values()
    assert len({attempt for attempt, _ in table}) > 1
    assert len(topics.sent["sales-fixes"]) == len(world.expected())


def test_each_wave_takes_its_own_rows_along(make: Any) -> None:
    """Rows of a wave that is not out yet are not in the topic."""
    world, topics = make(days=3, product=f"{in_waves('size: 1')}{SINK}")
    run = world.to("validated")
    seen = []
    for _ in range(3):
        world.client.publish(run, as_="bo")
        seen.append({day for day, _ in _keys(topics.sent["sales-fixes"])})
    assert [len(days) for days in seen] == [1, 2, 3]
    assert len(topics.sent["sales-fixes"]) == len(world.expected())


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda rows: [*rows, rows[0]], "rows have"),
        (lambda rows: [{**row, "day": None} for row in rows], "belong to partitions that this chunk does not compute"),
        (lambda rows: [{"day": row["day"]} for row in rows], "expected the columns account in the rows"),
    ],
)
def test_rows_that_consumers_could_not_tell_apart_fail_the_chunk(make: Any, wrong: Any, said: str) -> None:
    """A key twice, a row of another partition, and a row without its key: nothing is staged."""

    def emit_wrong(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        rows = build(ctx, raw)
        ctx.emit("fixes", wrong(rows))
        return rows

    world, topics = make(days=1, transform=emit_wrong)
    run = world.to("approved")
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    assert said in failed.value.fields["run"].failures[0]["error"]
    assert topics.sent == {}


@pytest.mark.parametrize(
    "sink, said",
    [
        ("class: backfill_topic, cluster: events, topic: t", 'missing key "key"'),
        ("class: backfill_topic, cluster: other, topic: t, key: [day]", "expected a cluster of kafka in errata.yaml"),
        ("class: backfill_topic, cluster: events, topic: t, key: [account]", "expected day among them"),
        ("class: cache, topic: t", 'the key "topic" was refused'),
        ("class: live_topic, backfill: send", "only a backfill_topic is sent to"),
    ],
)
def test_a_sink_that_cannot_work_is_a_problem_of_the_file(make: Any, sink: str, said: str) -> None:
    """The message names the key."""
    with pytest.raises(ProjectFileError, match=r"sinks\.fixes") as refused:
        make(product=f"{PRODUCT_FILE}sinks:\n  fixes: {{{sink}}}\n")
    assert said in str(refused.value)
