"""Publication modes on tables in memory: what readers of main and of side tables see, and what a rollback leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import PlanRefused, PublishConflict, RunFailed
from support.memory_world import MemoryWorld, build
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., MemoryWorld]
RECONCILE = "reconcile:" + PRODUCT_FILE.partition("reconcile:")[2].partition("lineage_columns:")[0]
CORRECTIONS, VERSIONS, VIEW = "lake.fin.sales_corrections", "lake.fin.sales_versions", "lake.fin.sales_accepted"


def mode(text: str) -> str:
    """The product in another mode."""
    return PRODUCT_FILE.replace("{mode: replace_partitions,", "{" + text + ",")


MERGE = mode("mode: merge, merge: {version: n, delete: gone}").replace(RECONCILE, "")


def changes(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    """Account a0 is not given, a1 is deleted, the rest is corrected at an equal version."""
    return [{**row, "gone": row["account"] == "a1"} for row in build(ctx, raw) if row["account"] != "a0"]


def told(world: MemoryWorld, publication: str) -> list[tuple[str, str, str, str | None, str | None]]:
    """Corrections of a publication: day, account, kind, old and new gross."""
    rows = [row for row in world.lake.table(CORRECTIONS).rows() if row["publication_id"] == publication]
    sides = [[json.loads(row[side])["gross"] if row[side] else None for side in ("old", "new")] for row in rows]
    return sorted(
        (row["partition"], row["account"], row["kind"], *side) for row, side in zip(rows, sides, strict=True)
    )  # fmt: skip


def corrected(world: MemoryWorld, days: tuple[str, ...]) -> list[tuple[str, str, str, str, str]]:
    """What the corrections should say, computed here."""
    return [(day, name, "changed", str(gross * 2), str(gross)) for day, name, gross, _ in world.expected(days)]


def test_an_append_adds_new_partitions_in_one_append_commit(make_world: Make) -> None:
    """A partition that is not empty is refused at planning, and is a conflict if it was filled since."""
    world = make_world(days=3, product=mode("mode: append"), history=False)
    world.write_history(world.days[:1])
    with pytest.raises(PlanRefused, match=f"1 of 3 partitions is not empty: {world.days[0]}"):
        world.plan()
    run = world.to("validated", f"{world.days[1]}..{world.days[2]}")
    world.live(world.days[1])
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.publish(run, as_="bo")
    world.client.publish(run, partitions=world.days[2], as_="bo")
    assert world.table.metadata.snapshots[world.snapshot()].operation == "append"
    world.client.rollback(run, reason="too early", as_="bo")
    assert [row for row in world.rows() if row[0] == world.days[2]] == []


def test_a_merge_keeps_what_is_not_given_and_removes_what_is_deleted(make_world: Make) -> None:
    """By key, at the newest version; a rollback brings the old rows back."""
    world = make_world(days=2, product=MERGE, transform=changes)
    run = world.to("published")
    kept = [row for row in world.wrong() if row[1] == "a0"]
    assert world.rows() == sorted([*kept, *(row for row in world.expected() if row[1] == "a2")])
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == world.wrong()


def test_an_ambiguous_merge_fails_its_chunk(make_world: Make) -> None:
    """Two changes of one key at one version."""
    world = make_world(days=1, product=MERGE, transform=lambda ctx, raw: [*changes(ctx, raw), *changes(ctx, raw)])
    with pytest.raises(RunFailed, match="two changes of one key have the same version"):
        world.to("staged")


@pytest.mark.parametrize("alone", [False, True], ids=["beside", "alone"])
def test_corrections_say_what_changed_by_key_and_a_rollback_says_the_reverse(make_world: Make, alone: bool) -> None:
    """Beside a replacement the target is corrected too; alone it is left as it was."""
    kind = "corrections" if alone else "replace_partitions"
    world = make_world(days=2, product=mode(f"mode: {kind}, corrections: {CORRECTIONS}"))
    run = world.to("published")
    assert told(world, world.publication(run)) == corrected(world, world.days)
    assert world.rows() == (world.wrong() if alone else world.expected())
    world.client.rollback(run, partitions=world.days[0], reason="not this day", as_="bo")
    back = [(day, name, what, new, old) for day, name, what, old, new in corrected(world, world.days[:1])]
    assert told(world, world.publication(run, 2)) == back


def test_versions_stand_side_by_side_and_the_view_shows_the_accepted_ones(make_world: Make) -> None:
    """The target is left as it was; a second run gets the next number."""
    world = make_world(days=2, product=mode(f"mode: version, versions: {VERSIONS}, view: {VIEW}"))
    world.to("published")
    second = world.to("published", world.days[0], reason="again")
    rows = world.lake.table(VERSIONS).rows()
    numbers = {(str(row["day"]), row["errata_version"]) for row in rows}
    assert numbers == {(world.days[0], 1), (world.days[0], 2), (world.days[1], 1)}
    assert {row["errata_run_id"] for row in rows if row["errata_version"] == 2} == {second}
    assert world.rows() == world.wrong()
    assert VIEW in world.lake.views


def test_a_swapped_view_leaves_the_target_alone(make_world: Make) -> None:
    """The view names the side table after the publication."""
    world = make_world(days=2, product=mode(f"mode: swap_view, view: {VIEW}"))
    run = world.to("published")
    assert "errata_swap_sales" in world.lake.views[VIEW]
    assert world.rows() == world.wrong()
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.client.status(run).state == "rolled_back"


def test_new_columns_appear_with_the_publication(make_world: Make) -> None:
    """They are staged on a shadow; the second part finds them, and a day that is old or taken back has NULL there."""

    def with_events(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        return [{**row, "events": row["n"] * 10} for row in build(ctx, raw)]

    product = PRODUCT_FILE.replace("  key: [day, account]\n", "  key: [day, account]\n  add_columns: {events: long}\n")
    world = make_world(days=2, product=product, transform=with_events)
    run = world.to("validated")
    assert "events" not in {one.name for one in world.table.metadata.schema.fields}

    def held() -> dict[str, int | None]:
        return {str(row["day"]): row["events"] for row in world.table.rows()}

    world.client.publish(run, partitions=world.days[0], as_="bo")
    assert held() == {world.days[0]: 20, world.days[1]: None}
    assert world.client.publish(run, as_="bo").state == "published"
    assert held() == dict.fromkeys(world.days, 20)
    world.client.rollback(run, partitions=world.days[1], reason="too early", as_="bo")
    assert held() == {world.days[0]: 20, world.days[1]: None}
    assert world.rows() == sorted([*world.expected(world.days[:1]), *world.wrong(world.days[1:])])
    assert world.client.why(TABLE, world.days[0]).history[-1].action == "published"
