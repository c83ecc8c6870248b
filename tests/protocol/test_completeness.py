"""Plans wait for their inputs: for a marker, for announced rows, or for a watermark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import PlanRefused
from support.memory_world import MemoryWorld as World
from support.memory_world import build
from support.world import PRODUCT_FILE

Make = Callable[..., World]
ORDERS, BATCHES = "lake.raw.orders", "lake.ops.batches"
MARKED = PRODUCT_FILE.replace("    partition: day\n", "    partition: day\n    complete: {marker: _SUCCESS}\n", 1)


def from_table(complete: str) -> str:
    """The product reads a table instead of files."""
    files = 'files: "raw/day={day}/*.parquet"\n'
    return PRODUCT_FILE.replace(files, f"table: {ORDERS}\n    complete: {complete}\n")


def refused(world: World, partitions: str | None = None) -> tuple[str, str]:
    """The only refusal of a plan, and the advice."""
    with pytest.raises(PlanRefused) as caught:
        world.plan(partitions)
    (verdict,) = [one for one in caught.value.fields["plan"].verdicts if one.level == "refuse"]
    assert verdict.rule == "waiting"
    return verdict.message, caught.value.hint or ""


def test_a_plan_waits_for_the_marker_of_each_day(make_world: Make) -> None:
    """It is refused by name, with the plan that is possible; a file that came after the marker reopens the day."""
    world = make_world(days=3, product=MARKED)
    for day in world.days[:2]:
        (world.root / f"raw/day={day}/_SUCCESS").touch()
    message, hint = refused(world)
    assert message == f"raw is not complete for 1 of 3 partitions: {world.days[2]}: no _SUCCESS beside its files"
    assert f"--partitions {world.days[0]}..{world.days[1]}" in hint
    assert "or override, on the record: " in hint
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    assert any("raw is complete by _SUCCESS" in one.message for one in world.client.show(run).verdicts)
    (file,) = (world.root / f"raw/day={world.days[0]}").glob("*.parquet")
    later = time.time() + 60
    os.utime(file, (later, later))
    assert "_SUCCESS is older than the newest file beside it" in refused(world, world.days[0])[0]
    world.plan(world.days[0], overrides={"waiting": "the clock of the source is wrong"})


def make_orders(world: World, days: int) -> Any:
    """The rows of the first days as a table."""
    import pyarrow.parquet as pq

    table = world.lake.create(
        ORDERS, {"day": "date", "account": "string", "amount": "decimal(12, 2)"}, partition=("day", "identity")
    )
    for day in world.days[:days]:
        rows = pq.read_table(world.root / f"raw/day={day}", partitioning=None).to_pylist()
        table.append([{"day": day, "account": row["account"], "amount": row["amount"]} for row in rows])
    return table


def test_a_plan_waits_until_the_watermark_has_passed_the_day(make_world: Make) -> None:
    """The newest value of the column has to reach the end and the delay; rows of the future do not count."""
    world = make_world(days=3, product=from_table("{watermark: day, after: 1d}"), transform=build)
    table = make_orders(world, 3)
    message, hint = refused(world)
    assert "raw is not complete for 2 of 3 partitions" in message
    assert f"{world.days[1]}: day has reached 2026-01-03 00:00 UTC, 2026-01-04 00:00 UTC is needed" in message
    assert f"--partitions {world.days[0]} " in hint
    table.append([{"day": "9999-12-31", "account": "z", "amount": "1.00"}])
    assert "values of day that lie in the future are ignored" in refused(world)[0]
    table.append([{"day": "2026-01-05", "account": "z", "amount": "1.00"}])
    plan = world.plan()
    (verdict,) = [one for one in plan.verdicts if one.rule == "waiting"]
    assert verdict.level == "warn"


def test_a_plan_waits_for_the_rows_that_were_announced(make_world: Make) -> None:
    """As many as the table of batches says, no fewer and no more."""
    world = make_world(days=2, product=from_table(f"{{rows_from: {BATCHES}.n}}"), transform=build)
    table = make_orders(world, 2)
    batches = world.lake.create(BATCHES, {"day": "date", "n": "long"})
    counts = {day: sum(str(row["day"]) == day for row in table.rows()) for day in world.days}
    batches.append([{"day": world.days[0], "n": counts[world.days[0]]}])
    assert f"{world.days[1]}: {BATCHES} has no row for it" in refused(world)[0]
    batches.append([{"day": world.days[1], "n": counts[world.days[1]] - 1}])
    assert f"{counts[world.days[1]]} rows, {counts[world.days[1]] - 1} were announced" in refused(world)[0]
    batches.append([{"day": world.days[1], "n": 1}])
    assert world.plan().state == "planned"


def test_a_trial_does_not_wait(make_world: Make) -> None:
    """Nothing is published, and people try on what is there."""
    world = make_world(days=1, product=MARKED)
    assert world.client.try_out("fin.sales", world.days[0], as_="ana").rows > 0


def test_a_plan_without_the_key_is_the_plan_of_before(make_world: Make) -> None:
    """Neither its guardrails nor its manifest change."""
    world = make_world(days=1)
    plan = world.plan()
    assert "waiting" not in {one.rule for one in plan.verdicts}
    assert b"complete" not in world.client.manifest_bytes(plan.id)
