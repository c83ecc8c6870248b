"""Every command runs on tables in memory, from the plan to the rollback and the cleanup."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from errata.errors import PublishConflict, Refused, RunFailed, StateRefused
from errata.model.refs import GUARD
from errata.testing import FrozenClock, Hooks, Lake, open_project
from support.memory_world import COLUMNS, MemoryWorld, build
from support.world import PRODUCT, PRODUCT_FILE, TABLE

Make = Callable[..., MemoryWorld]


def test_a_run_goes_from_plan_to_rollback(make_world: Make) -> None:
    """Readers see the wrong rows until the publication, the right ones after it, and the wrong ones again."""
    world = make_world(days=3)
    run = world.to("validated")
    assert world.rows() == world.wrong()
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.rows() == world.expected()
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def test_every_command_twice_is_once(make_world: Make) -> None:
    """Repeating a command gives the same answer, says that it was so already, and changes nothing."""
    world = make_world(days=2)
    plan = world.plan()
    acts: list[Callable[[], Any]] = [
        world.plan,
        lambda: world.client.approve(plan.id, digest=plan.digest, as_="bo"),
        lambda: world.client.run(plan.id, as_="ana"),
        lambda: world.client.validate(plan.id, as_="ana"),
        lambda: world.client.publish(plan.id, as_="bo"),
        lambda: world.client.rollback(plan.id, reason="again", as_="bo"),
    ]
    for act in acts:
        first = act()
        state = (world.snapshot(), world.refs(), world.client.audit_verify().entries)
        second = act()
        assert second.already
        assert second.state == first.state
        assert (world.snapshot(), world.refs(), world.client.audit_verify().entries) == state


def test_every_view_of_a_run_can_be_made(make_world: Make) -> None:
    """Diff, report, preview, status, why, history, evidence, audit and doctor answer; cleanup leaves main alone."""
    world = make_world(days=2)
    run = world.to("validated")
    diff = world.client.diff(run).diff
    assert sum(part.changed for part in diff.partitions) == len(world.expected())
    assert diff.columns["gross"].changed == len(world.expected())
    assert world.client.report(run).plan.id == run
    preview = world.client.dark(run, name="preview", compare=True, as_="bo")
    assert world.rows("preview") == world.expected()
    assert preview.view in world.lake.views
    world.client.publish(run, as_="bo")
    assert world.client.status(run).state == "published"
    assert [event.action for event in world.client.why(TABLE, world.days[0]).history] == ["live", "published"]
    assert world.client.history(TABLE, world.days[0]).complete
    assert world.client.audit_verify().ok
    checks = {check.name: check.ok for check in world.client.doctor()}
    assert checks[f"main {TABLE}"]
    removed = {item["ref"] for item in world.client.cleanup(as_="ana").removed}
    assert "preview" in removed
    assert preview.view not in world.lake.views
    assert world.rows() == world.expected()


def test_the_doctor_misses_the_warehouse_of_runs_and_waits_for_that_of_a_new_project(make_world: Make) -> None:
    """Before the first run the directory may not have been created; after it, data is missing or the path is wrong."""
    world = make_world(days=1)
    place = world.root / ".errata/none"
    (world.root / ".errata/none.db").touch()
    checks = {check.name: check for check in world.client.doctor()}
    assert (checks["warehouse lake"].ok, checks["warehouse lake"].waiting) == (True, True)
    world.to("planned")
    checks = {check.name: check for check in world.client.doctor()}
    assert (checks["warehouse lake"].ok, checks["warehouse lake"].waiting) == (False, False)
    assert f"there is no directory {place}; {place.parent} has " in checks["warehouse lake"].found
    assert "catalogs.lake.warehouse" in str(checks["warehouse lake"].hint)
    place.mkdir()
    assert "warehouse lake" not in {check.name for check in world.client.doctor()}


def test_a_trial_shows_the_gates_answer_and_writes_nothing(make_world: Make) -> None:
    """``errata try`` computes one day and judges it; neither the ledger nor the table has a run afterwards."""
    world = make_world(days=2)
    head = world.snapshot()
    view = world.client.try_out(PRODUCT, partitions=world.days[0], as_="ana")
    assert [part.partition for part in view.diff.diff.partitions] == [world.days[0]]
    assert (world.snapshot(), world.refs(), world.client.status().runs) == (head, {"main"}, ())


def test_a_live_write_into_the_scope_is_a_conflict(make_world: Make) -> None:
    """The row that a live job wrote after the plan stays, and the run is not published."""
    world = make_world(days=2)
    run = world.to("validated")
    world.live(world.days[0])
    with pytest.raises(PublishConflict, match=world.days[0]):
        world.client.publish(run, as_="bo")
    assert "live" in {row[1] for row in world.rows()}


def test_partitions_that_share_files_keep_the_rows_of_their_neighbours(make_world: Make) -> None:
    """A table partitioned by month, corrected by day: rows of other days in the same file are carried over."""
    world = make_world(days=3, partition=("day", "month"))
    run = world.to("published", world.days[1])
    assert world.client.status(run).state == "published"
    right = sorted([*world.expected([world.days[1]]), *world.wrong([world.days[0], world.days[2]])])
    assert world.rows() == right
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == world.wrong()


def test_a_failing_transform_fails_its_chunk_and_names_it(make_world: Make) -> None:
    """The error names the call and the days; a run without its chunks cannot be validated."""

    def broken(_ctx: object, raw: object) -> list[dict[str, object]]:
        raise ValueError(f"no rate for {raw.num_rows} rows")  # type: ignore[attr-defined]

    world = make_world(days=1, transform=broken)
    run = world.to("approved")
    with pytest.raises(RunFailed, match="no rate for 6 rows"):
        world.client.run(run, as_="ana")
    with pytest.raises(StateRefused):
        world.client.validate(run, as_="ana")


def test_rows_of_a_row_rule_go_to_quarantine(make_world: Make) -> None:
    """They are counted and shown, and the transform does not see them."""
    rules = "    partition: day\n    rows: [{name: test, expression: \"account = 'a0'\", action: quarantine}]\n"
    rules += "    quarantine: {warn: 90%, block: 100%}\n"
    world = make_world(days=1, product=PRODUCT_FILE.replace("    partition: day\n", rules))
    run = world.to("validated")
    assert [(one.reason, one.rows) for one in world.client.quarantine(run).reasons] == [("test", 2)]
    assert world.rows(_candidate(world)) == [row for row in world.expected() if row[1] != "a0"]


def _candidate(world: MemoryWorld) -> str:
    return next(ref for ref in world.refs() if "_c1_" in ref)


def test_an_expiry_leaves_what_a_rollback_needs(make_world: Make) -> None:
    """Refs of ours keep their snapshots: after an expiry the run can still be taken back."""
    world = make_world(days=2)
    run = world.to("published")
    world.table.expire(older_than_ms=world.lake.now_ms() + 1000)
    assert GUARD in world.refs()
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def test_a_project_is_opened_on_a_lake_by_one_call(make_world: Make) -> None:
    """``open_project`` gives a client on the lake; its clock is the one of the commits, its hooks are those given."""
    world = make_world(days=1)
    clock = FrozenClock(datetime(2026, 3, 1, tzinfo=UTC))
    lake = Lake(clock)
    lake.create(TABLE, COLUMNS, partition=("day", "identity")).append(
        [{"day": "2026-01-01", "account": "a0", "gross": "1.00", "n": 1}]
    )
    hooks = Hooks()
    with open_project(world.root, lake, transforms={PRODUCT: build}, hooks=hooks) as client:
        plan = client.plan(PRODUCT, partitions="2026-01-01", reason="x", as_="ana")
        client.approve(plan.id, digest=plan.digest, as_="bo")
        client.run(plan.id, as_="ana")
        client.validate(plan.id, as_="ana")
        hooks.suppressions.suppress("someone", "2026-01-01")
        with pytest.raises(Refused, match="the list of suppressed subjects has moved"):
            client.publish(plan.id, as_="bo")
    head = lake.table(TABLE).metadata.head
    assert head is not None
    assert head.at_ms == int(clock().timestamp() * 1000)
    world.lake.tables |= lake.tables
