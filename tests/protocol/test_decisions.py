"""Approval and release: a second person, over the digest, on today's roles; every refusal is audited."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial

import pytest

from errata.errors import (
    ApprovalRefused,
    ErrataError,
    ManifestTampered,
    PermissionRefused,
    PlanRefused,
    Refused,
    UsageError,
)
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]


def test_an_approval_is_by_another_person_over_the_digest_that_was_planned(make_world: Make) -> None:
    """A wrong digest, the requester and someone without the role are refused with exit 3, and audited."""
    world = make_world(days=1)
    plan = world.client.plan("fin.sales", partitions=world.days[0], reason="x", as_="cy")
    attempts = [
        ("bo", "0" * 64, ApprovalRefused),
        ("cy", plan.digest, ApprovalRefused),
        ("ana", plan.digest, PermissionRefused),
    ]
    for person, digest, kind in attempts:
        with pytest.raises(kind) as refused:
            world.client.approve(plan.id, digest=digest, as_=person)
        assert refused.value.exit_code == 3
    assert sum(entry.action == "refused" for entry in world.client.audit_log(plan.id)) == 3
    assert world.client.approve(plan.id, digest=f"sha256:{plan.digest}", as_="bo").state == "approved"


def test_one_changed_byte_of_the_manifest_stops_everything(make_world: Make) -> None:
    """Approve, run and show refuse it with exit 3, and the audit says so."""
    world = make_world(days=1)
    plan = world.plan()
    path = world.root / ".errata/ledger.db"
    with sqlite3.connect(path) as db:
        triggers = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type='trigger' AND tbl_name='manifest'"
        ).fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        original = db.execute("SELECT content FROM manifest").fetchone()[0]
        db.execute("UPDATE manifest SET content = ?", (original.replace(b"doubled", b"Doubled"),))
    for act in (
        lambda: world.client.approve(plan.id, digest=plan.digest, as_="bo"),
        lambda: world.client.show(plan.id),
    ):
        with pytest.raises(ManifestTampered) as refused:
            act()
        assert refused.value.exit_code == 3
    assert any(entry.action == "manifest.tampered" for entry in world.client.audit_log(plan.id))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE manifest SET content = ?", (original,))
        for _, text in triggers:
            db.execute(text)


def test_the_publisher_is_not_the_requester_and_needs_a_passed_gate(make_world: Make) -> None:
    """Release is a second person's deed as well."""
    world = make_world(days=1)
    plan = world.client.plan("fin.sales", partitions=world.days[0], reason="x", as_="cy")
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    with pytest.raises(Refused):
        world.client.publish(plan.id, as_="bo")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    with pytest.raises(ApprovalRefused):
        world.client.publish(plan.id, as_="cy")
    assert world.client.publish(plan.id, as_="bo").state == "published"


@pytest.mark.parametrize("command", ["publish", "rollback"])
@pytest.mark.parametrize("partitions", ["2026-9-xx", "2026-01-02..2026-01-01", "2027-01-01"])
def test_wrong_partitions_are_answered_with_those_of_the_run(make_world: Make, command: str, partitions: str) -> None:
    """With the state of the data, and with a list that can be pasted."""
    world = make_world(days=2)
    run = world.to("validated" if command == "publish" else "published")
    act = world.client.publish if command == "publish" else partial(world.client.rollback, reason="wrong")
    with pytest.raises(ErrataError) as refused:
        act(run, partitions=partitions, as_="bo")
    assert refused.value.state == "nothing was changed"
    assert refused.value.hint == "of this run: --partitions 2026-01-01..2026-01-02"


def test_a_plan_shows_every_verdict_and_records_nothing_when_refused(make_world: Make) -> None:
    """A missing source day, a day outside the limit of the range and an overlap are all there at once."""
    world = make_world(days=2)
    entries = world.client.audit_verify().entries
    with pytest.raises(PlanRefused) as refused:
        world.client.plan("fin.sales", "2025-01-01", "2026-03-01", reason="x", as_="ana")
    rules = {verdict.rule for verdict in refused.value.fields["plan"].verdicts if verdict.level == "refuse"}
    assert {"range", "source-missing"} <= rules
    assert world.client.status().runs == ()
    assert world.client.audit_verify().entries == entries
    with pytest.raises(UsageError):
        world.client.plan("fin.sales", reason="no range", as_="ana")
    world.plan()
    with pytest.raises(PlanRefused) as refused:
        world.plan(world.days[0])
    assert [v.rule for v in refused.value.fields["plan"].verdicts if v.level == "refuse"] == ["overlap"]
