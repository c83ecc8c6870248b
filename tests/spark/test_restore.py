"""Restore: what an older snapshot of the target held comes back through plan, gate, approval and release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import NotFound, PlanRefused, PublishConflict, UsageError
from support.world import PRODUCT, TABLE, World

Make = Callable[..., World]


def spoil(world: World, day: str) -> None:
    """A job that nobody governs overwrites a day."""
    world.sql(
        f"INSERT OVERWRITE {TABLE} SELECT day, account, cast(0 as decimal(12,2)), n, produced_by_run_id, "
        f"restatement_reason FROM {TABLE} WHERE day = date'{day}'"
    )


def restored(world: World, days: str, asked: object) -> Any:
    """A restore brought to publication; the view of its plan."""
    plan = world.plan(days, restore=str(asked), reason="spoilt by a foreign job")
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    world.client.publish(plan.id, as_="bo")
    return plan


@pytest.fixture
def overwriting(make_world: Make) -> Make:
    """Worlds whose live jobs overwrite the partitions that they write."""

    def make(**options: Any) -> World:
        world = make_world(**options)
        world.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        return world

    return make


def test_a_day_that_a_foreign_job_spoilt_comes_back_as_it_was(overwriting: Make) -> None:
    """Exactly the old rows, lineage included; other days and later live writes stay; and it rolls back."""
    world = overwriting(days=3)
    run = world.to("published")
    right, good = world.sql(f"SELECT * FROM {TABLE} ORDER BY day, account"), world.snapshot()
    spoil(world, world.days[1])
    spoilt = world.rows()
    world.live(world.days[2], "late")
    plan = restored(world, world.days[1], good)
    assert plan.kind == "restore"
    assert plan.restored["snapshot_id"] == str(good)
    kept = [row for row in world.sql(f"SELECT * FROM {TABLE} ORDER BY day, account") if row.account != "late"]
    assert kept == right
    assert {row.produced_by_run_id for row in kept if str(row.day) == world.days[1]} == {run}
    assert any(account == "late" for _, account, *_ in world.rows())
    manifest = world.ledger.runs.manifest(plan.id)
    assert manifest.restored is not None
    assert manifest.reconcile == ()
    assert manifest.checks
    assert manifest.code.call.startswith("none")
    back = world.client.rollback(plan.id, reason="look again", as_="bo")
    assert back.state == "rolled_back"
    assert [row for row in world.rows() if row[0] == world.days[1]] == [r for r in spoilt if r[0] == world.days[1]]


@pytest.mark.slow
def test_the_plan_names_who_wrote_since(overwriting: Make) -> None:
    """Snapshot, operation and application of every commit that is taken out, and the run whose publication goes."""
    world = overwriting(days=2)
    good = world.snapshot()
    run = world.to("published", world.days[0])
    spoil(world, world.days[0])
    bad = world.snapshot()
    plan = world.plan(world.days[0], restore=str(good), dry_run=True)
    said = [verdict.message for verdict in plan.verdicts if verdict.rule == "restore"]
    application = world.spark.sparkContext.applicationId
    assert any(str(bad) in text and application in text and "overwrite" in text for text in said)
    assert any(f"publication of {run}" in text for text in said)
    assert [v.level for v in plan.verdicts if v.rule == "restore"] == ["ok", "warn", "warn"]


def test_a_snapshot_a_tag_and_a_time_name_the_same_content(make_world: Make) -> None:
    """All three resolve to the same snapshot; what is not there is refused with what is."""
    world = make_world(days=2)
    good = world.snapshot()
    world.sql(f"ALTER TABLE {TABLE} CREATE TAG month_end")
    at = world.table().snapshot_by_id(good).timestamp_ms  # type: ignore[arg-type,union-attr]
    world.live(world.days[0])
    from datetime import UTC, datetime

    when = datetime.fromtimestamp((at + 1) / 1000, UTC).isoformat()
    found = {
        world.plan(world.days[0], restore=asked, dry_run=True).restored["snapshot_id"]
        for asked in (str(good), "month_end", when)
    }
    assert found == {str(good)}
    for asked in ("123", "2001-01-01T00:00Z", "last week", "main"):
        with pytest.raises(NotFound) as refused:
            world.plan(world.days[0], restore=asked)
        assert str(good) in refused.value.message
        assert "month_end" in refused.value.message
    with pytest.raises(UsageError):
        world.client.plan(PRODUCT, partitions=world.days[0], kind="restore", reason="x", as_="ana")
    assert world.client.status().runs == ()


def test_an_expired_snapshot_is_refused_and_a_planned_one_is_pinned(make_world: Make) -> None:
    """After the plan an expiry cannot take what is to be put back; before it, the refusal says what is left."""
    world = make_world(days=1)
    gone = world.snapshot()
    world.live(world.days[0], "a")
    good = world.snapshot()
    world.live(world.days[0], "b")
    world.sql(f"CALL lake.system.expire_snapshots(table => 'fin.sales', snapshot_ids => array({gone}))")
    with pytest.raises(NotFound, match="not there"):
        world.plan(world.days[0], restore=str(gone))
    plan = world.plan(world.days[0], restore=str(good))
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    world.client.publish(plan.id, as_="bo")
    accounts = {account for _, account, *_ in world.rows()}
    assert "a" in accounts
    assert "b" not in accounts


def test_schema_of_then_and_now(make_world: Make) -> None:
    """A column added since is NULL, a renamed one keeps its values, a removed one refuses the plan for good."""
    world = make_world(days=1)
    world.sql(f"ALTER TABLE {TABLE} ADD COLUMN remark string")
    world.sql(f"INSERT INTO {TABLE} VALUES (date'{world.days[0]}', 'x', 1, bigint(1), null, null, 'hello')")
    good, old = world.snapshot(), world.rows()
    world.sql(f"ALTER TABLE {TABLE} RENAME COLUMN remark TO note")
    world.sql(f"ALTER TABLE {TABLE} ADD COLUMN later int")
    world.sql(f"INSERT INTO {TABLE} VALUES (date'{world.days[0]}', 'bad', 1, bigint(1), null, null, 'no', 7)")
    restored(world, world.days[0], good)
    assert world.rows() == old
    found = {(row.account, row.note, row.later) for row in world.sql(f"SELECT * FROM {TABLE} WHERE account = 'x'")}
    assert found == {("x", "hello", None)}
    world.sql(f"ALTER TABLE {TABLE} DROP COLUMN note")
    with pytest.raises(PlanRefused, match=r"remark \(string\) was removed since"):
        world.plan(world.days[0], restore=str(good), overrides={"restore": "please"})


@pytest.mark.slow
def test_deletes_of_then_are_applied(make_world: Make) -> None:
    """Rows that a delete file had taken out at that snapshot do not come back."""
    modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
    world = make_world(days=1, properties=modes)
    account = world.rows()[0][1]
    world.live(world.days[0], "p")
    world.sql(f"DELETE FROM {TABLE} WHERE account = '{account}'")
    good, old = world.snapshot(), world.rows()
    world.live(world.days[0], "bad")
    restored(world, world.days[0], good)
    assert world.rows() == old


def test_nothing_written_since_is_nothing_to_restore(make_world: Make) -> None:
    """A restore of partitions that no one touched is refused; compaction is no write."""
    world = make_world(days=1)
    good = world.snapshot()
    world.sql("CALL lake.system.rewrite_data_files(table => 'fin.sales', options => map('rewrite-all','true'))")
    with pytest.raises(PlanRefused, match="nothing to put back"):
        world.plan(world.days[0], restore=str(good))


def test_a_live_write_after_the_plan_is_a_conflict(make_world: Make) -> None:
    """A restore promises no less than any other run."""
    world = make_world(days=1)
    good = world.snapshot()
    world.live(world.days[0], "bad")
    plan = world.plan(world.days[0], restore=str(good))
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    world.live(world.days[0], "late")
    with pytest.raises(PublishConflict):
        world.client.publish(plan.id, as_="bo")
