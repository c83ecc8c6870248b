"""Consumers get messages about what happens to the products that they read, each once, from the record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from errata.delivery.consumer_messages import owe_messages
from errata.delivery.payment import PaymentReport, pay
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.consumer.message import Message
from errata.model.consumer.message_formats import to_html, to_json, to_slack, to_text
from errata.model.consumer.outbox import ItemState
from errata.wiring.check import check_workspace
from support.clock import stopped_clock
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT, PRODUCT_FILE

Make = Callable[..., World]

CONSUMERS = """
channels:
  finance: {file: messages.jsonl}
  pager: {command: ["true"]}
consumers:
  dashboard:
    reads: [fin.sales]
    owner: bi
    tell: {channel: finance, on: [planned, approved, holding, published, rolled_back, recovered, failed]}
  board: {reads: [fin.sales], tell: {channel: pager}}
  quiet: {reads: [fin.sales]}
"""
COMPARED = PRODUCT_FILE + 'compare:\n  - {metric: "sum(gross)", warn: 99%}\n'
ANA = Actor("ana", "ana", "desk", single_user=False)


def list_sent(world: World, channel: str = "finance") -> list[Message]:
    return world.engines.channels.list_once(channel)


def deliver(world: World) -> PaymentReport:
    return pay(world.workspace, ANA, seconds=30)


def owe(world: World, run: str, event: str, **payload: Any) -> None:
    owes = owe_messages(world.workspace.project, PRODUCT, event, world.days, consumer="dashboard", payload=payload)
    world.ledger.outbox.owe(run, f"{run}-{event}", owes, ANA)
    deliver(world)


def test_a_publication_tells_its_consumers_what_changed(make_world: Make) -> None:
    """With old and new numbers, people and the digest; those who want nothing get nothing."""
    world = make_world(days=5, product=COMPARED, project=CONSUMERS)
    run = world.to("published")
    sent = [one for one in list_sent(world) if one.occasion.event == "published"]
    assert [one.consumer for one in sent] == ["dashboard"]
    message = sent[0]
    publication = world.ledger.publications.list(run)[0]
    assert message.id == f"{publication.pub_id}/published/tell/dashboard"
    assert message.title == "Corrected: fin.sales, 5 days"
    assert "5 days of fin.sales (2026-01-01 … 2026-01-05) were replaced" in message.text
    assert "Reason: doubled." in message.text
    rows, gross = message.occasion.metrics
    before, after = (sum(row[2] for row in one) for one in (world.wrong(), world.expected()))
    assert (gross.name, gross.before, gross.after, gross.percent) == ("sum(gross)", str(before), str(after), "-50.00")
    assert (len(gross.partitions), gross.more) == (3, 2)
    assert (rows.name, rows.before, rows.after) == ("rows", str(len(world.wrong())), str(len(world.expected())))
    about = message.occasion
    assert (about.requested_by, about.approved_by, about.by) == ("ana", ("bo",), "bo")
    assert about.digest == world.ledger.runs.get(run).manifest_digest
    assert about.snapshot_id == world.snapshot()
    assert [one.consumer for one in list_sent(world, "pager")] == ["board"]
    paid = [item for item in world.ledger.outbox.list(run_id=run) if item.event == "published"]
    assert {item.consumer: item.result["channel"] for item in paid} == {"dashboard": "finance", "board": "pager"}


def test_plans_and_approvals_are_messages_too(make_world: Make) -> None:
    """They are owed with the decision, and sent by the next command that pays."""
    world = make_world(days=2, project=CONSUMERS)
    run = world.to("approved")
    assert not list_sent(world)
    deliver(world)
    planned, approved = list_sent(world)
    assert planned.title == "Correction planned: fin.sales, 2 days"
    assert "ana plans to correct 2 days of fin.sales" in planned.text
    assert planned.occasion.at == world.ledger.runs.get(run).planned_at
    assert approved.title == "Correction approved: fin.sales, 2 days"
    assert "bo approved the correction" in approved.text
    assert planned.sequence < approved.sequence
    assert not planned.occasion.metrics


def test_a_rollback_tells_the_numbers_the_other_way(make_world: Make) -> None:
    """What was after is before; the sequence grows, so that a late message is known to be old."""
    world = make_world(days=2, product=COMPARED, project=CONSUMERS)
    run = world.to("published")
    world.client.rollback(run, reason="wrong FX table", partitions=world.days[0], as_="bo")
    *_, published, undone = list_sent(world)
    assert (published.occasion.event, undone.occasion.event) == ("published", "rolled_back")
    assert undone.sequence > published.sequence
    assert undone.title == "Rolled back: fin.sales, 1 day"
    assert "bo rolled back the correction of 1 day of fin.sales (2026-01-01)" in undone.text
    assert "Reason: wrong FX table." in undone.text
    [metric] = [one for one in undone.occasion.metrics if one.name == "sum(gross)"]
    right = sum(row[2] for row in world.expected([world.days[0]]))
    assert (metric.before, metric.after, metric.percent) == (str(right), str(right * 2), "100.00")


def test_a_message_names_metrics_over_classified_columns_without_values(make_world: Make) -> None:
    """Also when the column was classified after the plan was sealed."""
    world = make_world(days=2, product=COMPARED, project=CONSUMERS)
    run = world.to("validated")
    world.engines.channels.down.add("finance")
    world.client.publish(run, as_="bo")
    place = world.root / "products" / "sales.yaml"
    place.write_text(place.read_text() + "classified: [gross]\n")
    world.client.close()
    world.open()
    with stopped_clock() as clock:
        clock.move(3600)
        deliver(world)
    message = list_sent(world)[-1]
    [metric] = [one for one in message.occasion.metrics if one.name == "sum(gross)"]
    assert metric.masked
    total = str(sum(row[2] for row in world.expected()))
    for text in (to_text(message), to_html(message), json.dumps(to_json(message)), json.dumps(to_slack(message))):
        assert total not in text.replace(",", "")
        assert "sum(gross)" in text


def test_a_dead_channel_blocks_no_publication_and_stays_on_record(make_world: Make) -> None:
    """The table changes, the message is owed until it is sent, others get theirs."""
    world = make_world(days=1, project=CONSUMERS)
    run = world.to("validated")
    world.engines.channels.down.add("finance")
    view = world.client.publish(run, as_="bo")
    assert view.state == "published"
    assert world.rows() == world.expected()
    assert any("tell to dashboard" in one and "it is down" in one for one in (*view.warnings, *world.said))
    assert [one.consumer for one in list_sent(world, "pager")] == ["board"]
    open_items = world.ledger.outbox.list_open(run_id=run)
    assert {(item.consumer, item.state) for item in open_items} == {("dashboard", ItemState.OWED)}
    world.engines.channels.down.clear()
    with stopped_clock() as clock:
        clock.move(3600)
        deliver(world)
    assert not world.ledger.outbox.list_open(run_id=run)
    assert list_sent(world)[-1].occasion.event == "published"


def test_a_payer_that_dies_after_sending_sends_the_same_message_again(make_world: Make) -> None:
    """At least once, with one id: a receiver that keeps ids sees it once."""
    world = make_world(days=1, project=CONSUMERS)
    run = world.to("validated")

    def die() -> None:
        raise KeyboardInterrupt

    with arm("deliver.after_pay", die), pytest.raises(KeyboardInterrupt):
        world.client.publish(run, as_="bo")
    with arm("deliver.before_pay", die), pytest.raises(KeyboardInterrupt):
        deliver(world)
    with stopped_clock() as clock:
        clock.move(3600)
        deliver(world)
    everything = [one for sent in world.engines.channels.sent.values() for one in sent]
    assert len(everything) > len({one.id for one in everything})
    by_id: dict[str, set[str]] = {}
    for one in everything:
        by_id.setdefault(one.id, set()).add(json.dumps(to_json(one), sort_keys=True))
    assert all(len(bodies) == 1 for bodies in by_id.values())
    assert not world.ledger.outbox.list_open(run_id=run)


def test_a_person_without_the_variable_of_a_channel_leaves_messages_as_they_are(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No attempt is counted: the message is not at fault."""
    world = make_world(days=1, project=CONSUMERS.replace("{file: messages.jsonl}", '{slack: "${HOOK_OF_TEST}"}'))
    monkeypatch.delenv("HOOK_OF_TEST", raising=False)
    run = world.to("published")
    [item] = [one for one in world.ledger.outbox.list_open(run_id=run) if one.event == "published"]
    assert (item.state, item.attempts, item.last_error) == (ItemState.OWED, 0, None)
    assert any("HOOK_OF_TEST, which is not set" in one for one in deliver(world).warnings)
    monkeypatch.setenv("HOOK_OF_TEST", "https://hooks.example/x")
    world.client.close()
    world.open()
    deliver(world)
    assert list_sent(world)[-1].occasion.event == "published"


def test_a_consumer_that_is_no_longer_declared_is_an_error_of_its_item(make_world: Make) -> None:
    """A person retries or waives it; nothing else is held up."""
    world = make_world(days=1, project=CONSUMERS)
    run = world.to("validated")
    world.engines.channels.down.add("finance")
    world.client.publish(run, as_="bo")
    world.configure("  dashboard:", "  screens:")
    with stopped_clock() as clock:
        clock.move(3600)
        report = deliver(world)
    assert any("errata.yaml no longer has a consumer dashboard with tell" in one for one in report.warnings)


def test_holding_recovered_and_failed_say_what_to_do(make_world: Make) -> None:
    """From what the item of the event carries."""
    world = make_world(days=2, project=CONSUMERS)
    run = world.to("published")
    until = "2026-02-01T10:30:00+00:00"
    owe(world, run, "holding", hold=f"{run}-h1-0a", until=until, acknowledge=True, on_timeout="stop")
    owe(world, run, "recovered", seconds=95)
    owe(world, run, "failed", problem="it still shows old values", item=7, differences=[["2026-01-01", "2.00", "1.00"]])
    holding, recovered, failed = list_sent(world)[-3:]
    assert holding.title == "Please hold: fin.sales, 2 days"
    assert "the hold ends at 2026-02-01 10:30 UTC" in holding.text
    assert "without that it stops at 2026-02-01 10:30 UTC" in holding.text
    assert holding.commands["acknowledge"] == f"errata ack {run} dashboard --hold {run}-h1-0a"
    assert recovered.title == "Recovered: fin.sales, 2 days"
    assert "was done 1 m 35 s after it" in recovered.text
    assert "dashboard shows" not in recovered.text, "it is not read back"
    assert "What went wrong: it still shows old values. 2026-01-01: shows 2.00, expected 1.00." in failed.text
    assert failed.commands["retry"] == "errata outbox retry 7"


def test_no_secret_reaches_a_message_a_record_or_a_screen(make_world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the address of a channel, not its secret, not in an error that quotes them."""
    planted = "planted-Zx9-secret-value"
    monkeypatch.setenv("HOOK_OF_TEST", f"https://hooks.example/{planted}")
    monkeypatch.setenv("SIGN_OF_TEST", planted)
    project = CONSUMERS.replace(
        "{file: messages.jsonl}", '{webhook: {url: "${HOOK_OF_TEST}", secret: "${SIGN_OF_TEST}"}}'
    )
    world = make_world(days=1, product=COMPARED, project=project)
    run = world.to("validated")
    world.engines.channels.down.add("pager")
    world.client.publish(run, as_="bo")
    owe(world, run, "failed", problem=f"cannot reach https://hooks.example/{planted}")
    messages = [one for sent in world.engines.channels.sent.values() for one in sent]
    assert {one.occasion.event for one in messages} >= {"published", "failed"}
    for one in messages:
        for text in (
            to_text(one),
            to_html(one),
            json.dumps(to_json(one)),
            json.dumps(to_slack(one)),
            repr(asdict(one)),
        ):
            assert planted not in text
    assert planted not in "\n".join(world.said)
    for file in Path(world.root, ".errata").rglob("*"):
        if file.is_file():
            assert planted.encode() not in file.read_bytes(), file.name


def test_what_a_consumer_should_show_is_checked_against_the_table(make_world: Make) -> None:
    """A misspelt column is found by errata check, not when the consumer is read back."""
    shows = """
consumers:
  a: {reads: [fin.sales], verify: {redis: "redis://h", get: "a:{partition}", equals: "sum(grss)"}}
  b: {reads: [fin.sales], verify: {redis: "redis://h", get: "a:{partition}", equals: "sum(gross)"}}
"""
    problems = check_workspace(make_world(days=1, project=shows).workspace)
    [problem] = [one for one in problems if one.key.startswith("consumers")]
    assert problem.key == "consumers.a.verify.equals"
    assert "expected a column of the table, found grss; did you mean gross" in problem.message


def test_a_secret_in_a_reason_is_redacted_in_messages(make_world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """People paste what they have at hand; a message goes further than the ledger."""
    monkeypatch.setenv("HOOK_OF_TEST", "https://hooks.example/planted-Zx9-secret")
    project = CONSUMERS.replace("{file: messages.jsonl}", '{slack: "${HOOK_OF_TEST}"}')
    world = make_world(days=1, project=project)
    run = world.to("published", reason="see https://hooks.example/planted-Zx9-secret for details")
    owe(world, run, "planned")
    for message in list_sent(world):
        assert message.occasion.reason == "see ${HOOK_OF_TEST} for details"
        assert "planted-" not in to_text(message)
