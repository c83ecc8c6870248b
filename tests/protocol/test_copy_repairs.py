"""A copy that somebody edited is repaired by a run: planned, approved, through the same swap, without a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest

from errata.cli.render.plan import render_plan
from errata.cli.render.run import render_run
from errata.cli.render.status import render_run_status
from errata.errors import ApprovalRefused, CopyChanged, PlanRefused, StateRefused
from errata.failpoints import arm
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.copy.delivery import WarehouseColumn
from errata.model.copy.marker import MarkerState
from errata.model.run import RunState
from errata.testing.copies import MemoryCopy
from support.clock import Clock, stopped_clock
from support.copy_world import build_product
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]
PROJECT = '\nwarehouses:\n  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}\n'
COLUMNS = {"day": "date", "account": "text", "gross": "numeric(12,2)", "n": "bigint"}


@pytest.fixture(autouse=True)
def clock() -> Iterator[Clock]:
    """The ledger's clock, which waits for nobody."""
    with stopped_clock() as stopped:
        yield stopped


@pytest.fixture
def world(make_world: Make) -> World:
    """A lake whose three days are in a copy, with a row of the second that somebody changed."""
    made = make_world(days=3, product=build_product(), project=PROJECT)
    columns = [WarehouseColumn(name, kind) for name, kind in COLUMNS.items()]
    made.engines.warehouses.create("pg", "shop.sales", columns)
    made.to("published")
    edit(made, made.days[1], "edited")
    return made


def table(world: World) -> MemoryCopy:
    found: MemoryCopy = world.engines.warehouses.tables["pg", "shop.sales"]
    return found


def rows(world: World) -> list[tuple[Any, ...]]:
    return sorted((str(row["day"]), row["account"], row["gross"], row["n"]) for row in table(world).rows)


def edit(world: World, day: str, account: str) -> None:
    """Somebody changes a row of the copy by hand."""
    next(row for row in table(world).rows if row["day"] == date.fromisoformat(day))["account"] = account


def plan(world: World, **options: Any) -> Any:
    scope = f"{world.days[0]}..{world.days[-1]}"
    return world.client.plan(
        "fin.sales", partitions=scope, reason="edited by hand", kind="repair", copies=(), as_="ana", **options
    )


def approve(world: World, view: Any) -> str:
    world.client.approve(view.run_id, digest=view.digest, as_="bo")
    return str(view.run_id)


def items(world: World, run: str) -> list[OutboxItem]:
    return [one for one in world.ledger.outbox.list(run_id=run) if one.effect is Effect.COPY]


def test_an_edited_copy_gets_back_what_is_accepted(world: World) -> None:
    """Only the partitions that differ are replaced; the lake has the same snapshot before and after."""
    before = world.snapshot()
    view = plan(world)
    assert [one.partitions for one in world.ledger.runs.manifest(view.run_id).repairs] == [(world.days[1],)]
    done = world.client.run(approve(world, view), as_="ana")
    assert (done.state, [one.state for one in done.copies]) == ("published", ["delivered"])
    assert rows(world) == world.expected()
    assert world.snapshot() == before
    assert world.client.check_copies("fin.sales").ok
    assert table(world).staging == {}


def test_the_stages_of_a_repair_are_its_plan_its_approval_and_its_delivery(world: World) -> None:
    """`plan --explain` names no gate and no publication: nothing is computed, and main is left alone."""
    stages = plan(world, explain=True).stages
    assert [one.name for one in stages] == ["plan", "approve", "deliver"]
    assert stages[-1].writes[0] == "pg:shop.sales: 1 partition, one commit"


def test_a_repair_needs_a_second_person(world: World) -> None:
    """Without an approval nothing is written; the approval is over the digest of what is replaced."""
    view = plan(world)
    before = rows(world)
    with pytest.raises(StateRefused):
        world.client.run(view.run_id, as_="ana")
    with pytest.raises(ApprovalRefused):
        world.client.approve(view.run_id, digest="0" * 64, as_="bo")
    assert rows(world) == before


def test_a_change_after_the_plan_is_a_conflict(world: World) -> None:
    """What was approved is not what would be replaced: nothing is written, and a new plan can be made."""
    run = approve(world, plan(world))
    edit(world, world.days[1], "edited again")
    before = rows(world)
    with pytest.raises(CopyChanged, match="holds other rows than when the repair was planned") as refused:
        world.client.run(run, as_="ana")
    assert (refused.value.exit_code, refused.value.state) == (5, "nothing was written")
    assert rows(world) == before
    assert world.client.status(run).next == f'errata cancel {run} --as ana --reason "…"'
    world.client.cancel(run, reason="edited again", as_="ana")
    again = approve(world, plan(world, supersede=run))
    assert world.client.run(again, as_="ana").state == "published"
    assert rows(world) == world.expected()


def test_what_was_published_after_the_plan_is_not_undone(world: World) -> None:
    """The plan says something else about the partition than the lake: a conflict, nothing is written."""
    run = approve(world, plan(world))
    first = next(one.run_id for one in world.ledger.runs.list() if one.run_id != run)
    world.client.rollback(first, partitions=world.days[1], reason="wrong", as_="bo")
    before = rows(world)
    with pytest.raises(CopyChanged, match="since the plan"):
        world.client.run(run, as_="ana")
    assert rows(world) == before


def test_a_repair_that_was_cancelled_is_not_made(world: World) -> None:
    """The warehouse was down when it ran; nothing is owed any more when it is back."""
    run = approve(world, plan(world))
    world.engines.warehouses.down = "pg cannot be reached"
    assert world.client.run(run, as_="ana").state == "running"
    world.client.cancel(run, reason="not needed", as_="ana")
    world.engines.warehouses.down = ""
    before = rows(world)
    assert world.client.deliver(as_="ana", timeout="1s").ok
    assert rows(world) == before
    (item,) = items(world, run)
    assert (item.state, item.waived_by, item.waived_why) == (ItemState.WAIVED, "ana", "cancelled: not needed")
    assert world.client.status(run).next == ""
    # the publication's own delivery was not given up
    assert world.client.check_copies("fin.sales").copies[0].waived_by is None


def test_a_cancellation_gives_up_no_delivery(world: World) -> None:
    """An older item for the same partition stays owed: the copy still lacks what was accepted."""
    first = world.ledger.runs.list()[0].run_id
    world.engines.warehouses.down = "pg cannot be reached"
    world.client.rollback(first, partitions=world.days[0], reason="wrong", as_="bo")
    world.engines.warehouses.down = ""
    run = approve(world, plan(world))
    world.engines.warehouses.down = "pg cannot be reached"
    assert world.client.run(run, as_="ana").state == "running"
    world.client.cancel(run, reason="not needed", as_="ana")
    assert [one.state for one in items(world, first)] == [ItemState.PAID, ItemState.OWED]


def test_a_cancellation_that_was_cut_off_is_finished(world: World) -> None:
    """The run is cancelled, and its item is still there: it names the command, and the same cancellation ends it."""
    run = approve(world, plan(world))
    world.engines.warehouses.down = "pg cannot be reached"
    world.client.run(run, as_="ana")
    world.ledger.runs.move(run, RunState.CANCELLED, actor=Actor("ana", "ana", "host"))
    world.engines.warehouses.down = ""
    before = rows(world)
    world.client.retry_outbox([str(items(world, run)[0].item_id)], as_="ana")
    assert not world.client.deliver(as_="ana", timeout="1s").ok
    assert rows(world) == before
    assert "its repair is not made any more" in (items(world, run)[0].last_error or "")
    assert world.client.status(run).next == f'errata cancel {run} --as ana --reason "…"'
    world.client.cancel(run, reason="not needed", as_="ana")
    assert world.client.deliver(as_="ana", timeout="1s").ok


def test_there_is_no_repair_of_nothing(world: World) -> None:
    """A copy that is as accepted is refused at planning."""
    world.client.run(approve(world, plan(world)), as_="ana")
    with pytest.raises(PlanRefused, match="nothing to repair"):
        plan(world)


def test_people_read_what_a_repair_does_and_nothing_about_chunks_gate_or_main(world: World) -> None:
    """Nothing is computed or checked, no partition of main waits, and the copy is in the answer of `run`."""
    view = plan(world)
    told = "\n".join(render_plan(view, 100))
    assert "repairs     pg:shop.sales" in told
    assert not [word for word in ("  gate ", "  chunks ", "  estimate ", "  replaces ") if word in told]
    world.engines.warehouses.down = "pg cannot be reached"
    owed = world.client.run(approve(world, view), as_="ana")
    assert "pg cannot be reached" in "\n".join(render_run(owed, 100))
    world.engines.warehouses.down = ""
    world.client.retry_outbox([str(items(world, view.run_id)[0].item_id)], as_="ana")
    done = render_run(world.client.run(view.run_id, as_="ana"), 100)
    assert (done[0].split("   ")[0], len(done)) == (f"repaired {view.run_id}", 2)
    assert "✓ pg:shop.sales  delivered" in done[1]
    status = "\n".join(render_run_status(world.client.status(view.run_id), 100))
    assert not [word for word in ("chunk", "waiting", "newest first") if word in status]
    with pytest.raises(PlanRefused) as refused:
        plan(world)
    assert "replaces" not in "\n".join(render_plan(refused.value.fields["plan"], 100))


def test_the_same_edit_is_repaired_again(world: World) -> None:
    """The second plan has another digest, because the copy has had a delivery since."""
    first = approve(world, plan(world))
    world.client.run(first, as_="ana")
    edit(world, world.days[1], "edited")
    second = approve(world, plan(world))
    assert second != first
    world.client.run(second, as_="ana")
    assert rows(world) == world.expected()


@pytest.mark.parametrize(
    "point",
    ["run.after_start", "copy.after_load", "copy.after_open", "copy.after_lock", "copy.after_compare",
     "copy.before_commit", "copy.after_commit", "copy.after_swap", "deliver.after_pay"],
)  # fmt: skip
def test_a_repair_that_ends_anywhere_is_continued(world: World, clock: Clock, point: str) -> None:
    """The same command again: rows once, one marker done, nothing staged."""
    run = approve(world, plan(world))

    def stop() -> None:
        raise KeyboardInterrupt

    with arm(point, stop), pytest.raises(KeyboardInterrupt):
        world.client.run(run, as_="ana")
    clock.move(3600)
    assert world.client.run(run, as_="ana").state == "published"
    assert world.client.run(run, as_="ana").already
    assert rows(world) == world.expected()
    markers = [state for marker, state in table(world).markers.items() if marker.publication.startswith(f"{run}/")]
    assert (markers.count(MarkerState.DONE), markers.count(MarkerState.OPEN)) == (1, 0)
    assert table(world).staging == {}
