"""Which partitions are stale, on a real ledger and on tables in memory: each way in which it could be missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from errata.cli.render.late import render_stale
from errata.errors import Differs, PlanRefused, ProjectFileError
from errata.testing.lake import FrozenClock
from support.graph_world import PRODUCTS, GraphWorld
from support.memory_world import MemoryWorld

DAYS = "lake.ops.daily"
ROLLING = "ops.rolling"
ALONE = {"hourly": "", "daily": "", "monthly": ""}
"""Only the rolling sum is a product; the table that it reads with a look-back of two days is anybody's."""
Make = Callable[..., GraphWorld]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[GraphWorld] = []

    def build(**options: Any) -> GraphWorld:
        options = {"first": "2026-01-01", "days": 10, "products": ALONE, **options}
        made.append(GraphWorld.make(tmp_path / f"world{len(made)}", **options))
        return made[-1]

    yield build
    for world in made:
        world.client.close()


def find(world: GraphWorld, product: str = ROLLING, state: str = "stale") -> list[str]:
    return [one.partition for one in world.client.stale(product).partitions if one.state == state]


def why(world: GraphWorld, partition: str, product: str = ROLLING) -> list[tuple[str | None, str, str]]:
    (found,) = [one for one in world.client.stale(product).partitions if one.partition == partition]
    return [(one.input, one.basis, one.what) for one in found.reasons]


def write(world: GraphWorld, amounts: Mapping[str, int], **summary: str) -> str:
    """A foreign job overwrites days of the input."""
    rows = [{"day": date.fromisoformat(day), "amount": amount} for day, amount in amounts.items()]
    return world.lake.table(DAYS).overwrite(rows, **{"app-name": "foreign", **summary})


def remove(world: GraphWorld, day: str) -> None:
    world.lake.table(DAYS).remove_where(lambda row: str(row["day"]) != day)


def finish(world: GraphWorld, plan: Any) -> None:
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    world.client.publish(plan.id, as_="bo")


def publish_all(world: GraphWorld) -> None:
    world.correct(ROLLING, "2026-01-01..2026-01-10")
    assert find(world) == []


def test_two_changed_days_make_exactly_the_four_partitions_stale_that_read_them(make: Make) -> None:
    """With a look-back of two days: the two days themselves and the two after them, and a plan makes them current."""
    world = make()
    publish_all(world)
    snapshot = write(world, {"2026-01-04": 7, "2026-01-05": 8})
    assert find(world) == ["2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07"]
    told = f"changed: overwrite by foreign (snapshot {snapshot})"
    assert why(world, "2026-01-06") == [("days", "recorded", f"2026-01-04 … 2026-01-05 {told}")]
    assert why(world, "2026-01-07") == [("days", "recorded", f"2026-01-05 {told}")]
    plan = world.client.plan(ROLLING, stale=True, reason="late", as_="ana")
    assert plan.partitions == ("2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07")
    finish(world, plan)
    assert find(world) == []
    assert world.client.stale(ROLLING).ok


def test_a_partition_of_the_input_that_was_missing_and_appears_counts(make: Make) -> None:
    """It had no fingerprint when the run was planned, so that only the predicate tells that it is read."""
    world = make()
    remove(world, "2026-01-05")
    plan = world.client.plan(
        ROLLING, partitions="2026-01-01..2026-01-10", reason="all", overrides={"source-missing": "a holiday"}, as_="ana"
    )
    finish(world, plan)
    assert find(world) == []
    write(world, {"2026-01-05": 3})
    assert find(world) == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert "2026-01-05 is new" in why(world, "2026-01-06")[0][2]


def test_a_partition_of_the_input_that_is_emptied_counts(make: Make) -> None:
    """No file is left whose time could be newer."""
    world = make()
    publish_all(world)
    remove(world, "2026-01-05")
    assert find(world) == ["2026-01-05", "2026-01-06", "2026-01-07"]
    assert "2026-01-05 is empty now" in why(world, "2026-01-06")[0][2]


def test_delete_files_belong_to_what_was_read(make: Make) -> None:
    """Of one partition, and those that apply to any."""
    world = make()
    publish_all(world)
    world.lake.table(DAYS).delete("2026-01-10", day=date(2026, 1, 10))
    assert find(world) == ["2026-01-10"]
    world.lake.table(DAYS).delete(None, amount=-1)
    assert len(find(world)) == 10


def test_a_rollback_on_the_input_counts_though_its_snapshot_is_old(make: Make) -> None:
    """What main holds is compared, not how new it is."""
    world = make()
    old = world.lake.table(DAYS).metadata.head
    assert old is not None
    write(world, {"2026-01-10": 5})
    publish_all(world)
    world.lake.table(DAYS).set_main(old.snapshot_id)
    assert find(world) == ["2026-01-10"]


def test_compaction_of_input_and_output_changes_nothing(make: Make) -> None:
    """Files are others, rows are the same; a later write to one day still counts alone."""
    world = make()
    publish_all(world)
    world.lake.table(DAYS).compact()
    world.lake.table("lake.ops.rolling").compact()
    assert find(world) == []
    write(world, {"2026-01-10": 5})
    assert find(world) == ["2026-01-10"]


def test_a_record_is_silent_once_somebody_else_wrote_the_partition(make: Make) -> None:
    """The pins of the run say nothing about rows that a live job wrote over its output."""
    world = make()
    publish_all(world)
    world.lake.table("lake.ops.rolling").overwrite([{"day": date(2026, 1, 3), "amount": 1}])
    assert find(world) == ["2026-01-03"]
    (reason,) = why(world, "2026-01-03")
    assert reason[:2] == (None, "time")
    assert "live.longest_run is not declared" in reason[2]


def test_a_partition_that_somebody_removed_is_stale(make: Make) -> None:
    """It is on record, and main no longer has it."""
    world = make()
    publish_all(world)
    world.lake.table("lake.ops.rolling").remove_where(lambda row: str(row["day"]) != "2026-01-03")
    assert find(world) == ["2026-01-03"]


def test_a_gap_is_stale_only_where_the_inputs_have_data(make: Make) -> None:
    """A day that neither has is not listed; one that the input got is, and so is one that was asked for."""
    world = make()
    remove(world, "2026-01-05")
    world.lake.table("lake.ops.rolling").remove_where(lambda row: str(row["day"]) != "2026-01-05")
    names = [one.partition for one in world.client.stale(ROLLING).partitions]
    assert "2026-01-05" not in names
    write(world, {"2026-01-05": 3, "2026-01-12": 3})
    assert "has no such partition" in why(world, "2026-01-05")[0][2]
    assert "2026-01-12" not in find(world)
    asked = world.client.stale(ROLLING, "2026-01-11", "2026-01-14").partitions
    assert [(one.partition, one.state) for one in asked] == [("2026-01-12", "stale")]


def test_code_config_and_version_are_reasons(make: Make) -> None:
    """Of the files that the transform uses; another file of the project is not."""
    world = make()
    publish_all(world)
    world.write("transforms/other.py", "def other(): ...\n")
    assert find(world) == []
    product = PRODUCTS["rolling"]
    world.write("products/rolling.yaml", product.replace("version: 1.0.0", "version: 1.1.0"))
    assert why(world, "2026-01-03") == [(None, "recorded", "the transform was version 1.0.0 and is 1.1.0")]
    world.write("products/rolling.yaml", product.replace("version: 1.0.0", "version: 1.0.0, config: {a: 1}"))
    assert why(world, "2026-01-03") == [(None, "recorded", "the config of the transform changed")]
    world.write("products/rolling.yaml", product)
    world.write("transforms/graph.py", (world.root / "transforms/graph.py").read_text() + "\nSCALE = 2\n")
    told = "the code of transforms.graph:rolling changed within version 1.0.0"
    assert why(world, "2026-01-03") == [(None, "recorded", told)]


def test_a_wider_look_back_reads_partitions_that_nobody_read(make: Make) -> None:
    """The product file of now says what is read; what was recorded is less."""
    world = make()
    publish_all(world)
    world.write("products/rolling.yaml", PRODUCTS["rolling"].replace("lookback: 2d", "lookback: 3d"))
    assert find(world) == [f"2026-01-{day:02d}" for day in range(4, 11)]  # before these there was nothing to read
    assert why(world, "2026-01-10") == [("days", "recorded", "2026-01-07 was not read then")]


def test_a_stale_parent_makes_its_readers_stale_until_it_is_corrected(tmp_path: Path) -> None:
    """Through all products, and a plan for the reader says which product comes first."""
    world = GraphWorld.make(tmp_path, first="2026-01-30", days=4)
    for name, scope in (
        ("ops.hourly", "2026-01-30T00..2026-02-02T23"), ("ops.daily", "2026-01-30..2026-02-02"),
        ("ops.monthly", "2026-01,2026-02"), ("ops.rolling", "2026-01-30..2026-02-02"),
    ):  # fmt: skip
        world.correct(name, scope)
    assert world.client.stale().ok
    world.change("2026-01-31T05", 1000)
    stale = {(one.product, one.partition) for one in world.client.stale().partitions if one.state == "stale"}
    assert stale == {
        ("ops.hourly", "2026-01-31T05"), ("ops.daily", "2026-01-31"), ("ops.monthly", "2026-01"),
        ("ops.rolling", "2026-01-31"), ("ops.rolling", "2026-02-01"), ("ops.rolling", "2026-02-02"),
    }  # fmt: skip
    assert why(world, "2026-01-31", "ops.daily") == [("hours", "recorded", "2026-01-31T05 of ops.hourly is stale")]
    run = world.correct("ops.hourly", "2026-01-31T05").id
    assert "published by" in why(world, "2026-01-31", "ops.daily")[0][2]
    world.correct("ops.daily", "2026-01-31")
    world.correct("ops.monthly", "2026-01")
    world.correct("ops.rolling", "2026-01-31..2026-02-02")
    assert world.client.stale().ok
    world.client.rollback(run, reason="wrong after all", as_="bo")
    (reason,) = why(world, "2026-01-31", "ops.daily")[:1]
    assert f"rolled back with {run}" in reason[2]
    world.client.close()


LIVE = PRODUCTS["rolling"] + "live: {jobs: [nightly], longest_run: 2h}\n"


def at_clock(world: GraphWorld) -> FrozenClock:
    clock = FrozenClock(datetime.now(UTC) + timedelta(days=1))  # after what the world began with
    world.lake.clock = clock
    return clock


def write_output(world: GraphWorld, day: str, **summary: str) -> None:
    rows = [row for row in world.expect()["ops.rolling"] if str(row["day"]) == day]
    world.lake.table("lake.ops.rolling").overwrite(rows, **{"app-name": "nightly", **summary})


def test_by_time_a_partition_is_current_only_if_its_inputs_are_older_than_the_longest_run(make: Make) -> None:
    """A job that took two hours may have read before a change that came one hour before its commit."""
    world = make(products={**ALONE, "rolling": LIVE})
    clock = at_clock(world)
    for day in range(1, 11):
        write_output(world, f"2026-01-{day:02d}")
    assert find(world) == []
    write(world, {"2026-01-04": 7})
    clock.advance(hours=1)
    write_output(world, "2026-01-05")
    assert find(world) == ["2026-01-04", "2026-01-05", "2026-01-06"]
    assert "the job that wrote this may have read it before" in why(world, "2026-01-05")[0][2]
    assert "after this was written" in why(world, "2026-01-06")[0][2]
    clock.advance(hours=1, minutes=1)
    write_output(world, "2026-01-05")
    assert find(world) == ["2026-01-04", "2026-01-06"]


def test_by_time_a_rollback_of_the_input_counts_from_when_it_became_current(make: Make) -> None:
    """The snapshot is older than the output, but main holds it only since."""
    world = make(products={**ALONE, "rolling": LIVE})
    clock = at_clock(world)
    old = world.lake.table(DAYS).metadata.head
    assert old is not None
    write(world, {"2026-01-04": 7})
    clock.advance(hours=5)
    for day in range(1, 11):
        write_output(world, f"2026-01-{day:02d}")
    assert find(world) == []
    clock.advance(hours=5)
    world.lake.table(DAYS).set_main(old.snapshot_id)
    assert len(find(world)) == 10
    assert "rollback" in why(world, "2026-01-09")[0][2]


def test_by_time_compaction_of_the_output_does_not_make_it_newer(make: Make) -> None:
    """The rows are as old as the commit that computed them."""
    world = make(products={**ALONE, "rolling": LIVE})
    clock = at_clock(world)
    for day in range(1, 11):
        write_output(world, f"2026-01-{day:02d}")
    clock.advance(hours=3)
    write(world, {"2026-01-10": 7})
    clock.advance(hours=3)
    world.lake.table("lake.ops.rolling").compact()
    assert find(world) == ["2026-01-10"]


def test_by_time_the_oldest_rows_of_a_partition_count(make: Make) -> None:
    """A late append computes no row again that was there before."""
    world = make(products={**ALONE, "rolling": LIVE})
    clock = at_clock(world)
    for day in range(1, 11):
        write_output(world, f"2026-01-{day:02d}")
    clock.advance(hours=3)
    write(world, {"2026-01-10": 7})
    clock.advance(hours=3)
    world.lake.table("lake.ops.rolling").append([{"day": date(2026, 1, 10), "amount": 1}])
    assert find(world) == ["2026-01-10"]


def test_by_time_nothing_is_claimed_where_history_has_expired(make: Make) -> None:
    """Neither of the input nor of the output."""
    world = make(products={**ALONE, "rolling": LIVE})
    clock = at_clock(world)
    for day in range(1, 11):
        write_output(world, f"2026-01-{day:02d}")
    clock.advance(hours=3)
    world.lake.table("lake.ops.rolling").expire(older_than_ms=world.lake.now_ms() + 1)
    assert len(find(world)) == 9  # the newest commit is the head
    assert "expired" in why(world, "2026-01-01")[0][2]


def test_after_a_rollback_to_rows_of_before_errata_nothing_is_claimed(make: Make) -> None:
    """The rollback committed the files again, which does not make their rows newer."""
    world = make(products={**ALONE, "rolling": LIVE})
    plan = world.correct(ROLLING, "2026-01-09..2026-01-10")
    world.client.rollback(plan.id, reason="no", as_="bo")
    assert {"2026-01-09", "2026-01-10"} <= set(find(world))
    assert (
        "comes from a rollback" in why(world, "2026-01-10")[0][2]
        or "come from a rollback" in (why(world, "2026-01-10")[0][2])
    )


def test_an_attestation_closes_staleness_for_exactly_the_pins_it_compared(make: Make) -> None:
    """A late file that changes nothing needs no publication; the next change makes the partition stale again."""
    world = make()
    publish_all(world)
    rows = {str(row["day"]): row["amount"] for row in world.lake.table(DAYS).rows()}
    write(world, {"2026-01-10": rows["2026-01-10"]})  # other files, the same rows
    assert find(world) == ["2026-01-10"]
    plan = world.client.plan(ROLLING, partitions="2026-01-10", kind="attest", reason="late, but the same", as_="ana")
    world.client.run(plan.id, as_="ana")
    assert world.client.validate(plan.id, as_="ana").state == "attested"
    assert find(world) == []
    write(world, {"2026-01-09": rows["2026-01-09"]})
    assert find(world) == ["2026-01-09", "2026-01-10"]


def test_an_attestation_that_differs_closes_nothing(make: Make) -> None:
    """It says that main does not follow from its inputs."""
    world = make()
    publish_all(world)
    write(world, {"2026-01-10": 1})
    plan = world.client.plan(ROLLING, partitions="2026-01-10", kind="attest", reason="look", as_="ana")
    world.client.run(plan.id, as_="ana")
    with pytest.raises(Differs):
        world.client.validate(plan.id, as_="ana")
    assert find(world) == ["2026-01-10"]


def test_a_restored_partition_has_no_inputs_on_record(make: Make) -> None:
    """Old rows are back; what they were computed from is not known."""
    world = make()
    head = world.lake.table("lake.ops.rolling").metadata.head
    assert head is not None
    publish_all(world)
    plan = world.client.plan(ROLLING, partitions="2026-01-10", restore=head.snapshot_id, reason="as before", as_="ana")
    finish(world, plan)
    assert find(world) == ["2026-01-10"]
    assert "put back rows of an older snapshot" in why(world, "2026-01-10")[0][2]


def test_a_partition_waits_while_its_input_is_not_complete(make: Make) -> None:
    """It is not stale then; the exit code of the command does not count it, and a plan leaves it out."""
    waits = PRODUCTS["rolling"].replace("lookback: 2d", "lookback: 2d, complete: {watermark: day, after: 24h}")
    world = make(products={**ALONE, "rolling": waits})
    world.correct(ROLLING, "2026-01-01..2026-01-08")
    states = {one.partition: one.state for one in world.client.stale(ROLLING, "2026-01-08", "2026-01-11").partitions}
    assert states == {"2026-01-08": "current", "2026-01-09": "waiting", "2026-01-10": "waiting"}
    assert world.client.stale(ROLLING).ok
    assert "is not complete" in why(world, "2026-01-10")[0][2]
    with pytest.raises(PlanRefused, match="2026-01-09 … 2026-01-10 waits for inputs that are not complete") as refused:
        world.client.plan(ROLLING, stale=True, reason="late", as_="ana")
    assert not refused.value.fields["nothing_stale"]
    write(world, {"2026-01-08": 7})
    assert world.client.plan(ROLLING, stale=True, reason="late", as_="ana").partitions == ("2026-01-08",)


def test_a_plan_of_what_is_stale_is_refused_where_there_is_nothing_to_compute(make: Make, tmp_path: Path) -> None:
    """Nothing is stale, or only a parent is; the refusal says which, and what to plan first."""
    world = make()
    publish_all(world)
    with pytest.raises(PlanRefused, match="nothing is stale: every partition follows from its inputs") as refused:
        world.client.plan(ROLLING, stale=True, reason="late", as_="ana")
    assert refused.value.fields["nothing_stale"]
    graph = GraphWorld.make(tmp_path / "graph", first="2026-01-31", days=1)
    graph.correct("ops.hourly", "2026-01-31T00..2026-01-31T23")
    graph.correct("ops.daily", "2026-01-31")
    graph.correct("ops.monthly", "2026-01")
    graph.change("2026-01-31T05", 1000)
    for name, parent in (("ops.daily", "ops.hourly"), ("ops.monthly", "ops.daily")):
        with pytest.raises(PlanRefused, match=f"only follow from {parent}, which is stale itself") as refused:
            graph.client.plan(name, stale=True, reason="late", as_="ana")
        # the first of them all: the one in between would be refused in the same way
        assert 'errata plan ops.hourly --stale --cascade --reason "…"' in str(refused.value.hint)
    members = graph.client.plan_campaign("ops.hourly", stale=True, reason="late", as_="ana").members
    assert [one.product for one in members] == ["ops.hourly", "ops.daily", "ops.monthly", "ops.rolling"]
    graph.client.close()


def test_products_are_listed_after_those_that_they_read(tmp_path: Path) -> None:
    """So that the commands below can be typed in their order."""
    world = GraphWorld.make(tmp_path, first="2026-01-31", days=1)
    found = world.client.stale().products
    assert [one.product for one in found] == ["ops.hourly", "ops.daily", "ops.monthly", "ops.rolling"]
    world.client.close()


def test_what_an_active_run_has_is_not_suggested_again(make: Make) -> None:
    """The plan would be refused; the rest can be planned, and then there is only the run to look at."""
    world = make()
    publish_all(world)
    write(world, {"2026-01-03": 70})

    def suggested() -> str:
        return world.client.stale(ROLLING).products[0].next

    assert suggested() == 'errata plan ops.rolling --stale --reason "late data"'
    run = world.client.plan(ROLLING, partitions="2026-01-03", reason="late", as_="ana").id
    assert suggested() == 'errata plan ops.rolling --stale --partitions 2026-01-04..2026-01-05 --reason "late data"'
    rest = world.client.plan(ROLLING, partitions="2026-01-04..2026-01-05", stale=True, reason="late", as_="ana").id
    assert suggested() == f"errata status {rest}"
    world.client.cancel(run, reason="not needed", as_="ana")
    assert "--partitions 2026-01-03 " in suggested()


def test_a_parent_with_other_partitions_is_named_by_its_own(tmp_path: Path) -> None:
    """A day that reads a table by hour without naming its grain: the reason has hours."""
    daily = PRODUCTS["daily"].replace(", grain: hour", "")
    world = GraphWorld.make(tmp_path, first="2026-01-31", days=1, products={"daily": daily})
    world.correct("ops.hourly", "2026-01-31T00..2026-01-31T23")
    world.correct("ops.daily", "2026-01-31")
    world.change("2026-01-31T05", 1000)
    assert why(world, "2026-01-31", "ops.daily") == [("hours", "recorded", "2026-01-31T05 of ops.hourly is stale")]
    text = "\n".join(render_stale(world.client.stale("ops.daily"), [], 100))
    assert "hours: 2026-01-31T05 of ops.hourly is stale" in text
    world.client.close()


def test_changed_partitions_of_an_input_are_shown_as_they_are(make: Make) -> None:
    """Not as if everything between the first and the last of them had changed."""
    world = make()
    publish_all(world)
    write(world, {"2026-01-01": 70, "2026-01-08": 80})
    text = "\n".join(render_stale(world.client.stale(ROLLING), [], 200))
    assert "days: 2026-01-01, 2026-01-08 changed: overwrite by foreign" in text


def test_files_are_compared_by_listing(make_world: Callable[..., MemoryWorld]) -> None:
    """A changed, a new and a removed file each make their own day stale."""
    world = make_world(days=4)
    world.to("published")
    raw = world.root / "raw"
    first = next((raw / f"day={world.days[0]}").glob("*.parquet"))
    (raw / f"day={world.days[1]}" / "late.parquet").write_bytes(first.read_bytes())
    next((raw / f"day={world.days[2]}").glob("*.parquet")).unlink()
    first.touch()
    found = {one.partition: one.reasons for one in world.client.stale("fin.sales").partitions if one.state == "stale"}
    assert {name: reasons[0].what for name, reasons in found.items()} == {
        world.days[0]: f"{world.days[0]} changed",
        world.days[1]: f"{world.days[1]} changed",
        world.days[2]: f"{world.days[2]} is empty now",
    }


def test_times_of_files_are_enough_only_where_all_are_there(make_world: Callable[..., MemoryWorld]) -> None:
    """A day without files tells nothing; a file that is newer than the output does."""
    import os

    from support.world import PRODUCT_FILE

    world = make_world(days=3, product=PRODUCT_FILE + "live: {longest_run: 1h}\n")
    old = (datetime.now(UTC) - timedelta(days=1)).timestamp()
    for file in (world.root / "raw").rglob("*.parquet"):
        os.utime(file, (old, old))
    assert world.client.stale("fin.sales").ok
    next((world.root / "raw" / f"day={world.days[1]}").glob("*.parquet")).touch()
    next((world.root / "raw" / f"day={world.days[2]}").glob("*.parquet")).unlink()
    found = {one.partition: one.reasons[0].what for one in world.client.stale("fin.sales").partitions if one.reasons}
    assert "changed at" in found[world.days[1]]
    assert "has no files" in found[world.days[2]]
    assert len(found) == 2


def report(world: GraphWorld, day: str, **summary: str) -> None:
    """A live job that says what it reads writes one day."""
    with world.client.writing("lake.ops.rolling", [day], name="nightly", report=True) as lease:
        write_output(world, day, **{"app-name": "spark", **lease.properties, **summary})


def fail_after_commit(world: GraphWorld, day: str) -> None:
    with world.client.writing("lake.ops.rolling", [day], name="nightly", report=True) as lease:
        write_output(world, day, **lease.properties)
        raise RuntimeError("broken")


def test_what_a_live_job_reports_speaks_for_what_it_wrote(make: Make) -> None:
    """Until an input that it read changes, or somebody else writes the partition."""
    world = make()
    report(world, "2026-01-10")
    assert "2026-01-10" not in find(world)
    (found,) = world.client.stale(ROLLING, "2026-01-10", "2026-01-11").partitions
    assert (found.state, found.basis) == ("current", "reported")
    world.lake.table("lake.ops.rolling").compact()
    assert "2026-01-10" not in find(world)
    write(world, {"2026-01-09": 4})
    (reason,) = why(world, "2026-01-10")
    assert reason[:2] == ("days", "reported")
    report(world, "2026-01-10")
    assert "2026-01-10" not in find(world)
    write_output(world, "2026-01-10", **{"app-name": "someone"})
    assert why(world, "2026-01-10")[0][1] == "time"


def test_a_change_while_a_live_job_works_is_not_lost(make: Make) -> None:
    """What it reports is the state before it read."""
    world = make()
    with world.client.writing("lake.ops.rolling", ["2026-01-10"], name="nightly", report=True) as lease:
        write(world, {"2026-01-10": 4})
        write_output(world, "2026-01-10", **lease.properties)
    assert why(world, "2026-01-10")[0][:2] == ("days", "reported")


def test_a_report_is_left_out_where_another_job_wrote_too(make: Make) -> None:
    """Nobody could say whose rows are there; nor after a job that failed, or wrote nothing."""
    world = make()
    with world.client.writing("lake.ops.rolling", ["2026-01-10"], name="nightly", report=True) as lease:
        write_output(world, "2026-01-10", **lease.properties)
        write_output(world, "2026-01-10", **{"app-name": "someone"})
    assert why(world, "2026-01-10")[0][1] == "time"
    with world.client.writing("lake.ops.rolling", ["2026-01-09"], name="nightly", report=True):
        pass
    assert "committed nothing" in world.said[-1]
    with pytest.raises(RuntimeError, match="broken"):
        fail_after_commit(world, "2026-01-08")
    assert why(world, "2026-01-08")[0][1] == "time"


def test_a_report_is_about_partitions_that_the_job_wrote_whole(make: Make) -> None:
    """Not about one that it only named, nor about one that still has rows from before."""
    world = make()
    days = ["2026-01-08", "2026-01-09", "2026-01-10"]
    with world.client.writing("lake.ops.rolling", days, name="nightly", report=True) as lease:
        write_output(world, "2026-01-09", **lease.properties)
        row = {"day": date(2026, 1, 10), "amount": 1}
        world.lake.table("lake.ops.rolling").append([row], **lease.properties)
    assert "of 2026-01-08, 2026-01-10" in world.said[-1]
    found = {one.partition: one.basis for one in world.client.stale(ROLLING, "2026-01-08", "2026-01-11").partitions}
    assert found == {"2026-01-08": "time", "2026-01-09": "reported", "2026-01-10": "time"}


@pytest.mark.parametrize("first_out", ["early", "late"])
def test_of_two_calls_of_a_job_at_once_only_the_one_that_read_first_reports(make: Make, first_out: str) -> None:
    """Whose rows are there is not known: rather stale by what was read first than current by what was read last."""
    world = make()
    calls = {
        name: world.client.writing("lake.ops.rolling", ["2026-01-10"], name="nightly", report=True)
        for name in ("early", "late")
    }
    lease = calls["early"].__enter__()
    write(world, {"2026-01-10": 4})
    calls["late"].__enter__()
    write_output(world, "2026-01-10", **lease.properties)  # both call themselves nightly
    for name in (first_out, *calls.keys() - {first_out}):
        calls[name].__exit__(None, None, None)
    assert any("held a lease on the same partitions" in text for text in world.said)
    assert why(world, "2026-01-10")[0][:2] == ("days", "reported")


@pytest.mark.parametrize(
    "late, why",
    [
        ("{settle: 2h, latest: 1h}", "expected at least settle, which is 2h"),
        ("{policy: partition}", "expected lookback"),
        ("{policy: corrections}", "expected publish.mode corrections"),
        ("{act: always}", "expected one of report, propose, run"),
        ("{partitions: 0}", "late.partitions"),
        ("{settle: soon}", "late.settle"),
    ],
)
def test_a_key_that_contradicts_the_product_is_refused_at_check(make: Make, late: str, why: str) -> None:
    """With the key and what was expected."""
    world = make()
    with pytest.raises(ProjectFileError, match=why):
        world.write("products/rolling.yaml", PRODUCTS["rolling"] + f"late: {late}\n")
    world.write("products/rolling.yaml", PRODUCTS["rolling"] + "late: {act: propose, policy: lookback}\n")
    assert world.workspace.product(ROLLING).late is not None
    plan = world.client.plan(ROLLING, partitions="2026-01-10", reason="sealed", as_="ana")
    sealed = world.workspace.ledger.runs.manifest(plan.id).late
    assert (sealed and sealed.policy, sealed and sealed.act) == ("lookback", "propose")
