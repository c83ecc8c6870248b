"""Lineage tells what ran on what, from the record, and never stands in the way of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import ErrataError
from errata.model.consumer.outbox import Effect, ItemState
from support.lineage import list_endings, read_events, require_valid
from support.memory_world import MemoryWorld as World
from support.memory_world import build as total_by_day
from support.world import PRODUCT, PRODUCT_FILE, TABLE

Make = Callable[..., World]
Event = dict[str, Any]

CHUNK, GATE, ROLLBACK = (f"{PRODUCT}.{name}" for name in ("chunk", "gate", "rollback"))
LINEAGE = "\nlineage: {file: lineage.jsonl}\n"
STRICT = PRODUCT_FILE.replace("mustBeGreaterOrEqualTo: 0", "mustBeGreaterOrEqualTo: 1000")


def list_events(world: World, job: str | None = None) -> list[Event]:
    """The events that were sent, in order, each valid; those of one job, if it is named."""
    found = read_events(world.root / "lineage.jsonl")
    require_valid(found)
    list_endings(found)
    return [one for one in found if job is None or one["job"]["name"] == job]


def list_kinds(world: World, job: str = PRODUCT) -> list[str]:
    return [one["eventType"] for one in list_events(world, job)]


def list_partitions(dataset: Event, side: str = "output") -> list[str]:
    condition = dataset[f"{side}Facets"]["subset"][f"{side}Condition"]
    return [one["identifier"] for one in condition["partitions"]]


def list_items(world: World, state: ItemState | None = None) -> list[Any]:
    items = [one for one in world.ledger.outbox.list() if one.effect is Effect.LINEAGE]
    return [one for one in items if state is None or one.state is state]


def test_a_correction_is_one_run_with_a_child_for_each_chunk(make_world: Make) -> None:
    """One START and one COMPLETE for the correction, and for each chunk, which names the correction as its parent."""
    world = make_world(days=3, project=LINEAGE, chunk_bytes="1")
    run = world.to("published")
    assert list_kinds(world) == ["START", "COMPLETE"]
    assert list_kinds(world, CHUNK) == ["START", "COMPLETE"] * 3
    start, end = list_events(world, PRODUCT)
    assert start["run"]["runId"] == end["run"]["runId"]
    chunks = list_events(world, CHUNK)
    assert len({one["run"]["runId"] for one in chunks}) == 3
    assert {one["run"]["facets"]["parent"]["run"]["runId"] for one in chunks} == {start["run"]["runId"]}
    assert {one["run"]["facets"]["parent"]["job"]["name"] for one in chunks} == {PRODUCT}
    assert {one["run"]["facets"]["errata"]["run_id"] for one in list_events(world)} == {run}


def test_the_output_is_the_snapshot_with_its_partitions(make_world: Make) -> None:
    """The version is the snapshot of the publication, the lifecycle OVERWRITE, the subset the corrected partitions."""
    world = make_world(days=4, project=LINEAGE)
    run = world.to("published", partitions=f"{world.days[1]}..{world.days[2]}")
    (output,) = list_events(world, PRODUCT)[-1]["outputs"]
    assert f"{output['namespace']}.{output['name']}" == TABLE
    landed = world.ledger.publications.list(run)[0]
    assert output["facets"]["version"]["datasetVersion"] == landed.result_snapshot_id == world.snapshot()
    assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
    assert list_partitions(output) == [world.days[1], world.days[2]]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == len(world.expected(world.days[1:3]))


def test_the_gate_is_a_child_that_reads_the_candidate(make_world: Make) -> None:
    """It has the rules with their outcome, and the rows; no value of a row."""
    world = make_world(days=2, project=LINEAGE, product=STRICT)
    with pytest.raises(ErrataError):
        world.to("validated")
    world.client.deliver(as_="ana")
    (judged,) = list_events(world, GATE)[-1]["inputs"]
    assert list_kinds(world, GATE) == ["START", "FAIL"]
    rules = {one["name"]: one for one in judged["inputFacets"]["dataQualityAssertions"]["assertions"]}
    assert (rules["rowCount"]["success"], rules["rowCount"]["severity"]) == (False, "error")
    assert all(one["success"] for name, one in rules.items() if name != "rowCount")
    assert judged["inputFacets"]["dataQualityMetrics"]["rowCount"] == len(world.expected())
    assert judged["facets"]["version"]["datasetVersion"] == world.ledger.candidates.list(last(world))[-1].snapshot_id
    end = list_events(world, PRODUCT)[-1]
    assert (end["eventType"], end["run"]["facets"]["errorMessage"]["message"]) == ("FAIL", "rejected")


def last(world: World) -> str:
    return str(world.ledger.runs.list()[-1].run_id)


def test_a_rollback_is_a_run_of_its_own(make_world: Make) -> None:
    """A correction that is complete stays complete; its rollback is a child with the snapshot that it made."""
    world = make_world(days=2, project=LINEAGE)
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    assert list_kinds(world) == ["START", "COMPLETE"]
    assert list_kinds(world, ROLLBACK) == ["START", "COMPLETE"]
    end = list_events(world)[-1]
    (output,) = end["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == world.snapshot()
    assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
    assert list_partitions(output) == list(world.days)
    assert end["run"]["facets"]["parent"]["run"]["runId"] == list_events(world)[0]["run"]["runId"]


def test_a_run_that_is_cancelled_aborts(make_world: Make) -> None:
    """One that had started aborts; of one that never started there is no lineage."""
    world = make_world(days=2, project=LINEAGE)
    never = world.to("approved")
    world.client.cancel(never, reason="no", as_="ana")
    assert list_items(world) == []
    started = world.to("staged")
    world.client.cancel(started, reason="no", as_="ana")
    world.client.deliver(as_="ana")
    assert list_kinds(world) == ["START", "ABORT"]


def test_a_correction_that_goes_on_after_it_failed_is_another_run(make_world: Make) -> None:
    """The failed run stays failed; what follows has an id of its own and the same job."""
    broken = True

    def build(ctx: Any, raw: Any) -> Any:
        if broken:
            raise ValueError("row 4711 of Jane Doe")
        return total_by_day(ctx, raw)

    world = make_world(days=2, project=LINEAGE + "chunks: {attempts: 1}\n", chunk_bytes="1", transform=build)
    with pytest.raises(ErrataError):
        world.to("staged")
    run = last(world)
    world.client.deliver(as_="ana")
    assert list_kinds(world) == ["START", "FAIL"]
    failed = list_events(world, CHUNK)
    assert {one["eventType"] for one in failed} == {"START", "FAIL"}
    broken = False
    world.client.retry(run, as_="ana")
    world.client.run(run, as_="ana")
    assert list_kinds(world) == ["START", "FAIL", "START"]
    ids = [one["run"]["runId"] for one in list_events(world, PRODUCT)]
    assert ids[0] == ids[1] != ids[2]
    assert "Jane" not in (world.root / "lineage.jsonl").read_text()


def test_without_lineage_nothing_is_owed(make_world: Make) -> None:
    """A project that does not ask for lineage has no items of it."""
    world = make_world(days=2)
    world.to("published")
    assert list_items(world) == []


def test_lineage_that_is_asked_for_later_begins_with_the_first_moment(make_world: Make) -> None:
    """The events of a run are written from the record, so those from before are there, too."""
    world = make_world(days=2, project="\nretention: {pins: 30d}\n")
    run = world.to("validated")
    world.configure("retention: {pins: 30d}", LINEAGE)
    world.client.publish(run, as_="bo")
    assert list_kinds(world) == ["START", "COMPLETE"]
    assert list_kinds(world, CHUNK) == ["START", "COMPLETE"]


def test_every_moment_is_sent_once(make_world: Make) -> None:
    """Nothing is sent twice unless a process dies, and a second delivery finds nothing to do."""
    world = make_world(days=3, project=LINEAGE, chunk_bytes="1")
    world.to("published")
    before = list_events(world)
    assert len({(one["run"]["runId"], one["eventType"]) for one in before}) == len(before)
    world.client.deliver(as_="ana")
    assert list_events(world) == before
    assert list_items(world, ItemState.PAID) == list_items(world)


def test_columns_have_the_origin_that_the_product_declares(make_world: Make) -> None:
    """As column lineage of the output; an origin that is no input is refused."""
    declared = PRODUCT_FILE + "made_from: {gross: [raw.amount], day: [raw.day]}\n"
    world = make_world(days=1, project=LINEAGE, product=declared)
    world.to("published")
    (output,) = list_events(world, PRODUCT)[-1]["outputs"]
    fields = output["facets"]["columnLineage"]["fields"]
    found = {name: [(one["name"], one["field"]) for one in field["inputFields"]] for name, field in fields.items()}
    assert found == {"gross": [("files.raw", "amount")], "day": [("files.raw", "day")]}
    with pytest.raises(ErrataError, match=r"made_from\.gross\[0\].*expected an input of this product"):
        make_world(days=1, product=PRODUCT_FILE + "made_from: {gross: [row.amount]}\n")


def test_waves_tell_what_each_of_them_published(make_world: Make) -> None:
    """A RUNNING event for each wave before the last, with its snapshot and partitions; COMPLETE has all."""
    waved = PRODUCT_FILE.replace("rollback_window: 30d}", "rollback_window: 30d, waves: {size: 1}}")
    world = make_world(days=3, project=LINEAGE, product=waved, chunk_bytes="1")
    run = world.to("staged")
    for _ in world.days:
        world.client.validate(run, as_="ana")
        world.client.publish(run, as_="bo")
    assert list_kinds(world) == ["START", "RUNNING", "RUNNING", "COMPLETE"]
    told = [one["outputs"][0] for one in list_events(world, PRODUCT)[1:]]
    landed = world.ledger.publications.list(run)
    names = [list(one.partitions) for one in landed]
    assert [list_partitions(one) for one in told] == [*names[:2], [name for one in names for name in one]]
    assert [one["facets"]["version"]["datasetVersion"] for one in told] == [one.result_snapshot_id for one in landed]
