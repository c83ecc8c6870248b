"""Gaps: commits on a governed table that no run and no registered live job made, and the runs that answer for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from errata.errors import Differs
from support.memory_world import MemoryWorld
from support.terminal import answer, text
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
REGISTERED = PRODUCT_FILE + "live: [finsight-daily]\n"
ROW = {"account": "foreign", "gross": "1.00", "n": 1}


def _write(world: MemoryWorld, day: str, **summary: str) -> str:
    """One commit by a job that says these things about itself."""
    return world.table.append([{"day": day, **ROW}], **{name.replace("_", "-"): it for name, it in summary.items()})


def _attest(world: MemoryWorld, partitions: str) -> str:
    plan = world.plan(partitions, kind="attest", reason="who wrote this?")
    world.client.run(plan.id, as_="ana")
    with suppress(Differs):
        world.client.validate(plan.id, as_="ana")
    return str(plan.id)


def _gaps(world: MemoryWorld) -> Any:
    (found,) = world.client.audit_gaps().products
    return found


def test_a_table_is_governed_from_its_first_plan_on(make_world: Make) -> None:
    """What was there before is nobody's fault; without a plan there is nothing to say."""
    world = make_world(days=1)
    assert (_gaps(world).adopted_at, world.client.audit_gaps().ok) == (None, True)
    plan = world.plan()
    assert (_gaps(world).adopted_at, _gaps(world).gaps) == (plan.planned_at, ())


def test_a_foreign_commit_is_a_gap_and_a_publication_or_rollback_is_not(make_world: Make) -> None:
    """The commit is named with its writer, its time and the partitions that it touched."""
    world = make_world(days=3)
    run = world.to("published", world.days[0])
    world.client.rollback(run, reason="not yet", as_="bo")
    snapshot = _write(world, world.days[1], app_name="notebook")
    found = _gaps(world)
    (gap,) = found.gaps
    assert (gap.snapshot_id, gap.application, gap.operation) == (snapshot, "notebook", "append")
    assert (gap.partitions, gap.open, gap.closed_by) == ((world.days[1],), (world.days[1],), {})
    assert (found.complete, world.client.audit_gaps().ok) == (True, False)


@pytest.mark.parametrize("by", ["app_name", "app_id", "spark.app.id", "errata.live"])
def test_a_registered_live_job_makes_no_gap(make_world: Make, by: str) -> None:
    """By its application's name or id, or by the name that its lease gave it; anybody else is still found."""
    world = make_world(days=2, product=REGISTERED)
    world.plan()
    _write(world, world.days[0], **{by: "finsight-daily"})
    assert _gaps(world).gaps == ()
    _write(world, world.days[1], **{by: "finsight-daily-copy"})
    assert [gap.partitions for gap in _gaps(world).gaps] == [(world.days[1],)]


def test_a_lease_gives_the_property_that_names_its_job(make_world: Make) -> None:
    """What a live job passes on to its commit is what the gaps are read by."""
    world = make_world(days=1, product=REGISTERED)
    world.plan()
    with world.client.writing("lake.fin.sales", [world.days[0]], name="finsight-daily") as lease:
        world.table.append([{"day": world.days[0], **ROW}], **lease.properties)
    assert _gaps(world).gaps == ()


def test_compaction_by_anyone_is_maintenance(make_world: Make) -> None:
    """It changes files and no rows."""
    world = make_world(days=2)
    world.plan()
    world.compact()
    found = _gaps(world)
    assert (found.gaps, [one.operation for one in found.maintenance]) == ((), ["replace"])


def test_an_attestation_closes_a_gap_and_a_later_commit_opens_another(make_world: Make) -> None:
    """Only over the partitions that it compared, only if main is right, and only up to the snapshot that it pinned."""
    world = make_world(days=3)
    world.to("published")
    rows = [row for row in world.table.rows() if str(row["day"]) != world.days[2]]
    world.table.overwrite(rows)  # a foreign job writes the same rows again
    (gap,) = _gaps(world).gaps
    assert gap.open == world.days[:2]
    first = _attest(world, world.days[0])
    (gap,) = _gaps(world).gaps
    assert (gap.open, gap.closed_by) == ((world.days[1],), {world.days[0]: first})
    second = _attest(world, world.days[1])
    assert (_gaps(world).gaps[0].closed_by[world.days[1]], world.client.audit_gaps().ok) == (second, True)
    _write(world, world.days[0])
    newest, oldest = _gaps(world).gaps
    assert (newest.open, oldest.open) == ((world.days[0],), ())
    _attest(world, world.days[0])  # main is wrong now, so nothing is closed
    assert _gaps(world).gaps[0].open == (world.days[0],)


def test_an_attestation_that_was_planned_before_a_commit_does_not_answer_for_it(make_world: Make) -> None:
    """The pinned snapshot decides, not the time of the verdict."""
    world = make_world(days=1)
    world.to("published")
    plan = world.plan(kind="attest", reason="nightly")
    _write(world, world.days[0])
    world.client.run(plan.id, as_="ana")
    assert world.client.validate(plan.id, as_="ana").state == "attested"
    assert [gap.open for gap in _gaps(world).gaps] == [(world.days[0],)]


def test_a_correction_closes_a_gap_until_it_is_rolled_back(make_world: Make) -> None:
    """What the foreign job wrote is gone with the correction, and back with the rollback."""
    world = make_world(days=2)
    world.plan(world.days[1], reason="adopts the table")
    _write(world, world.days[0])
    run = world.to("published", world.days[0])
    assert [(gap.open, gap.closed_by) for gap in _gaps(world).gaps] == [((), {world.days[0]: run})]
    world.client.rollback(run, reason="not yet", as_="bo")
    assert [gap.open for gap in _gaps(world).gaps] == [(world.days[0],)]


def test_expired_history_is_said(make_world: Make) -> None:
    """What cannot be seen is not claimed to be fine."""
    world = make_world(days=1)
    plan = world.plan()
    _write(world, world.days[0])
    world.client.cancel(plan.id, reason="not needed", as_="ana")
    world.client.cleanup(as_="ana")
    _write(world, world.days[0])
    world.expire()
    assert not _gaps(world).complete


def test_the_command_says_what_to_plan_and_its_exit_code_tells(make_world: Make) -> None:
    """1 with an open gap, 0 when every gap is closed; the line after next: closes it."""
    world = make_world(days=2)
    world.to("published")
    world.table.overwrite([row for row in world.table.rows() if str(row["day"]) == world.days[0]])
    code, said = text(world, "errata audit gaps fin.sales", "ana")
    assert code == 1
    assert f"plan fin.sales --as ana --partitions {world.days[0]} --kind attest" in said.partition("next: ")[2]
    _attest(world, world.days[0])
    view = answer(world, "errata audit gaps", "ana")
    assert (view["ok"], view["products"][0]["gaps"][0]["open"]) == (True, [])
