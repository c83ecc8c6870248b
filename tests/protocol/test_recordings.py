"""Plans of products that read recorded files: which files they pin, and what retention leaves alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from errata.errors import PlanRefused
from errata.model.refs import DAY_MS, base_tag
from support.clock import later
from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
INPUT = """\
inputs:
  raw: {recording: orders, partition: day, columns: {account: string, amount: "decimal(12,2)", day: date}}
"""
PRODUCT = PRODUCT_FILE.replace(PRODUCT_FILE[PRODUCT_FILE.index("inputs:") : PRODUCT_FILE.index("publish:")], INPUT)
SOURCE = (
    'sources: {orders: {format: json, duplicates: correction, range: {name: "orders_{%Y-%m-%d}*"}, keep: 30d}}\n'
    "retention: {pins: 90d, candidates: 3d}\n"
)
DAYS = ("2026-01-01", "2026-01-02")


def drop(world: MemoryWorld, day: str, amount: str = "1.10", at: int = 1_767_500_000) -> str:
    place = world.root / "landing" / f"orders_{day}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(f'{{"day": "{day}", "account": "a", "amount": {amount}}}\n')
    os.utime(place, (at, at))
    return str(place)


@pytest.fixture
def world(make_world: Make) -> MemoryWorld:
    """Two days with a recorded file each."""
    world = make_world(days=2, product=PRODUCT, project=SOURCE)
    for day in DAYS:
        world.client.import_files(drop(world, day), "orders", as_="ana")
    return world


def test_a_plan_pins_the_files_of_its_partitions_by_their_hash(world: MemoryWorld):
    """And no others; the same request on the same recordings is the same run."""
    plan = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana")
    (pin,) = world.ledger.runs.manifest(plan.run_id).inputs
    (listed,) = json.loads(world.ledger.parts.get(str(pin.files_part))).values()
    held = {one.content_sha256: one for one in world.client.recordings().files}
    assert [held[file["version"].removeprefix("sha256:")].start for file in listed] == ["2026-01-01T00:00:00Z"]
    assert pin.counts == {"2026-01-01": 1}
    assert world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana").already


def test_a_file_that_an_open_run_needs_is_kept(world: MemoryWorld):
    """After its time it is kept for the run, by name; the other one goes, and the plan that needs it is refused."""
    run = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana").run_id
    with later(days=31):
        view = world.client.cleanup(as_="ana")
        assert [(one["ref"], one["why"]) for one in view.removed] == [
            ("orders_2026-01-02.json", "sources.orders.keep: 30d")
        ]
        assert [(one["ref"], one["why"]) for one in view.kept if "json" in one["ref"]] == [
            ("orders_2026-01-01.json", f"{run} needs it")
        ]
    with pytest.raises(PlanRefused, match=r"01-02\.json.* it was removed on .* \(sources\.orders\.keep: 30d\)"):
        world.client.plan("fin.sales", partitions=DAYS[1], reason="r", as_="ana")


def test_a_day_without_a_file_is_refused_by_name(make_world: Make):
    """A recording that does not reach a day says so before anything is computed."""
    world = make_world(days=2, product=PRODUCT, project=SOURCE)
    world.client.import_files(drop(world, DAYS[0]), "orders", as_="ana")
    with pytest.raises(PlanRefused, match="source-missing"):
        world.client.plan("fin.sales", partitions=",".join(DAYS), reason="r", as_="ana")


def test_pins_live_as_long_as_the_project_says(world: MemoryWorld):
    """Tags of the run carry the configured time, not the default."""
    run = world.client.plan("fin.sales", partitions=DAYS[0], reason="r", as_="ana").run_id
    age = world.table.metadata.refs[base_tag(run)].age_ms
    assert age is not None
    assert 90 * DAY_MS <= age < 91 * DAY_MS
