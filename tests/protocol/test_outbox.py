"""What is owed after a decision or a commit, from the command that causes it to the one that pays it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.commands.upkeep.evidence import export_evidence
from errata.errors import NotFound, PermissionRefused, StateRefused, UsageError
from errata.evidence.keys import generate_key_pair, load_signing_key
from errata.evidence.verifier import verify
from errata.failpoints import arm
from errata.model.audit import Actor
from protocol.test_modes import CORRECTIONS, corrected, mode, told
from support.clock import later
from support.memory_world import MemoryWorld
from support.world import TABLE
from unit.evidence.forging import resealed

Make = Callable[..., MemoryWorld]
BESIDE = mode(f"mode: replace_partitions, corrections: {CORRECTIONS}")


def die() -> None:
    raise KeyboardInterrupt


def kill(world: MemoryWorld, point: str, command: Callable[[], object]) -> None:
    """Run a command that dies at this point; the next one is of another process."""
    with arm(point, die), pytest.raises(KeyboardInterrupt):
        command()
    world.client.close()
    world.open()


def test_what_a_killed_publication_owes_is_shown_and_paid_by_deliver(make_world: Make) -> None:
    """Once, whichever step was cut off; looking pays nothing."""
    for point in ("publish.after_commit", "publish.after_record", "deliver.after_claim", "deliver.before_pay",
                  "corrections.before_commit", "deliver.after_pay", "deliver.after_record"):  # fmt: skip
        world = make_world(days=1, product=BESIDE)
        run = world.to("validated")
        kill(world, point, lambda world=world, run=run: world.client.publish(run, as_="bo"))
        world.client.status(run)
        world.client.outbox(run)
        if point not in ("publish.after_commit", "deliver.after_record"):
            status = world.client.status(run)
            assert [(item.kind, item.state) for item in status.owed] == [("corrections", "owed")], point
            assert status.next == f"errata deliver {run} --as ana", point
        view = world.client.deliver(run, as_="ana")
        assert (view.ok, view.items) == (True, ()), point
        assert told(world, world.publication(run)) == corrected(world, world.days), point
        (item,) = world.client.outbox(run, all=True).items
        assert (item.state, item.kind, item.event) == ("paid", "corrections", "published"), point
        assert world.client.status(run).owed == ()
        assert not world.client.deliver(as_="ana").paid


def test_a_publication_that_did_not_land_owes_nothing(make_world: Make) -> None:
    """Its items are void once it is settled, and nobody sees them."""
    world = make_world(days=1, product=BESIDE)
    run = world.to("validated")
    kill(world, "publish.before_commit", lambda: world.client.publish(run, as_="bo"))
    assert world.client.outbox(all=True).items == ()
    assert world.client.deliver(as_="ana").ok
    assert [item.state.value for item in world.ledger.outbox.list()] == ["void"]
    world.client.publish(run, as_="bo")
    assert told(world, world.publication(run, 2)) == corrected(world, world.days)


def test_a_rollback_waits_for_the_corrections_that_it_reverses(make_world: Make) -> None:
    """Order is kept among items that share a partition: reversed before they are written they would stand for ever."""
    world = make_world(days=1, product=BESIDE)
    run = world.to("validated")
    kill(world, "deliver.before_pay", lambda: world.client.publish(run, as_="bo"))
    world.client.rollback(run, reason="wrong", as_="bo")
    assert [item.event for item in world.client.outbox(run, all=True).items] == ["published", "rolled_back"]
    assert world.client.outbox(run).items == ()
    back = [(day, name, what, new, old) for day, name, what, old, new in corrected(world, world.days)]
    assert told(world, world.publication(run, 2)) == back


def test_validate_cleanup_and_looks_pay_nothing(make_world: Make) -> None:
    """Only run, publish, rollback and deliver do."""
    world = make_world(days=2, product=BESIDE)
    other, run = world.to("staged", world.days[1]), world.to("validated", world.days[0])
    kill(world, "deliver.before_pay", lambda: world.client.publish(run, as_="bo"))
    world.client.validate(other, as_="ana")
    world.client.cleanup(as_="ana")
    world.client.show(run)
    world.client.why(TABLE, world.days[0])
    assert [item.attempts for item in world.client.outbox(run).items] == [1]
    assert CORRECTIONS not in world.lake.tables
    world.client.publish(other, as_="bo")
    assert world.client.outbox(run).items == ()


def test_deliver_needs_a_role_and_takes_products_and_runs(make_world: Make) -> None:
    """A wrong name is refused."""
    world = make_world(days=1, product=BESIDE)
    run = world.to("validated")
    kill(world, "deliver.before_pay", lambda: world.client.publish(run, as_="bo"))
    with pytest.raises(PermissionRefused, match="expected the role operator or publisher"):
        world.client.deliver(as_="nobody")
    with pytest.raises(NotFound, match="is neither a product nor a run; expected one of fin"):
        world.client.deliver("no.such", as_="ana")
    product = world.client.status(run).product
    assert world.client.deliver(product, as_="ana").paid == 1


def test_only_a_person_waives_with_a_reason_and_the_record_keeps_it(make_world: Make) -> None:
    """What is over is neither retried nor waived."""
    world = make_world(days=1, product=BESIDE)
    run = world.to("validated")
    kill(world, "deliver.before_pay", lambda: world.client.publish(run, as_="bo"))
    (item,) = world.client.outbox(run).items
    with pytest.raises(UsageError, match="reason"):
        world.client.waive_outbox(item.id, reason=" ", as_="bo")
    with pytest.raises(PermissionRefused):
        world.client.waive_outbox(item.id, reason="no", as_="ana")
    with pytest.raises(NotFound):
        world.client.waive_outbox("99", reason="no", as_="bo")
    view = world.client.waive_outbox(item.id, reason="nobody reads it", as_="bo")
    assert [(one.state, one.waived_by, one.waived_why) for one in view.items] == [("waived", "bo", "nobody reads it")]
    assert world.client.waive_outbox(item.id, reason="again", as_="bo").already
    with pytest.raises(StateRefused, match="found waived"):
        world.client.retry_outbox([item.id], as_="ana")
    entry = world.ledger.audit.readable_entries(run)[-2]
    assert (entry.action, entry.body["why"], entry.actor.person) == ("outbox.waived", "nobody reads it", "bo")
    assert world.client.deliver(as_="ana").ok
    assert CORRECTIONS not in world.lake.tables or told(world, world.publication(run)) == []


def test_retry_takes_ids_or_all_that_failed(make_world: Make) -> None:
    """Both, or neither, is refused."""
    world = make_world(days=1, product=BESIDE)
    for ids, failed in (((), False), (("1",), True)):
        with pytest.raises(UsageError, match="expected ids of items, or --failed"):
            world.client.retry_outbox(ids, failed=failed, as_="ana")
    assert world.client.retry_outbox(failed=True, as_="ana").items == ()
    with later(seconds=1), pytest.raises(NotFound):
        world.client.retry_outbox(["x"], as_="ana")


def test_the_evidence_of_a_run_has_what_it_owed(make_world: Make) -> None:
    """Whoever holds the key and says that something was paid is contradicted by the audit."""
    world = make_world(days=1, product=BESIDE)
    generate_key_pair(world.root / "errata.key")
    key = load_signing_key("errata.key", world.root)
    world.configure("limits:", "evidence: {key: errata.key}\nlimits:")
    run = world.to("validated")
    kill(world, "publish.before_commit", lambda: world.client.publish(run, as_="bo"))
    kill(world, "deliver.before_pay", lambda: world.client.publish(run, as_="bo"))
    _, bundle = export_evidence(world.workspace, Actor("bo", "u", "h"), run)
    public = [(world.root / "errata.key.pub").read_bytes()]
    found = verify(bundle, public)
    assert found.problems == []
    assert ("owed", "1 void, 1 owed") in found.facts
    for lie in ({"state": "paid"}, {"event": "rolled_back"}, {"result": {"status": 200}}, {"key": "x"}):

        def change(record: Any, lie: dict[str, Any] = lie) -> None:
            record["owed"][1].update(lie)

        told = verify(resealed(bundle, key, publications=change), public).problems
        assert "item 2 that was owed is not what the audit says" in [one.problem for one in told], lie
    lost = verify(resealed(bundle, key, publications=lambda record: record["owed"].clear()), public).problems
    assert lost[0].problem == "item 1 that was owed is not what the audit says"
