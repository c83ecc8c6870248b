"""Why a number changed: everyone who wrote a day, and each row of a part of the key by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.memory_world import MemoryWorld as World
from support.terminal import text
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., World]
TWO_CURRENCIES = PRODUCT_FILE.replace("key: [day, account]", "key: [day, account, n]").replace(
    "columns: [day, account]", "columns: [day, account, n]"
)


def test_a_rollback_is_told_with_its_own_people_and_live_writes_are_told_too(make_world: Make) -> None:
    """Published by bo, taken back by cy, then written by a job and compacted: who did what, in the order of main."""
    world = make_world(days=2)
    run = world.to("published")
    day, other = world.days
    world.client.rollback(run, partitions=day, reason="wait for the bank", as_="cy")
    world.live(day, account="late")
    world.live(other, account="late")
    world.compact()
    history = world.client.why(TABLE, day).history
    assert [one.action for one in history] == ["live", "published", "rolled_back", "live"]
    _, published, back, late = history
    assert (published.published_by, published.approved_by, published.requested_by) == ("bo", "bo", "ana")
    assert (back.rolled_back_by, back.reason) == ("cy", "wait for the bank")
    assert (back.published_by, back.approved_by, back.requested_by, back.released_by) == (None, None, None, None)
    assert (back.checks_passed, back.manifest_digest) == (None, None)
    assert (late.added_rows, late.removed_rows, late.run_id) == (1, 0, None)
    assert [one.action for one in world.client.why(TABLE, other).history] == ["live", "published", "live"]
    code, told = text(world, f"errata why {TABLE} {day}")
    assert code == 0
    assert "rolled back by cy" in told
    assert "+1 −0 rows" in told


def assert_rows_told_apart(world: Any, day: str) -> None:
    """Check what ``why`` tells of two rows of one account, of which the correction leaves one."""
    gross = {row[1]: row[2] for row in world.expected()}["a1"]
    view = world.client.why(TABLE, day, key={"account": "a1"})
    assert view.history == ()
    rows = {row.key["n"]: next(e for e in row.history if e.action == "published") for row in view.rows}
    assert {n: (e.before or {}).get("gross") for n, e in rows.items()} == {"2": str(gross * 2), "7": "50.00"}
    assert {n: (e.after or {}).get("gross") for n, e in rows.items()} == {"2": str(gross), "7": None}
    code, told = text(world, f"errata why {TABLE} {day} --key account=a1")
    assert code == 0
    assert "n=7" in told
    assert "gross 50.00 → gone" in told
    whole = world.client.why(TABLE, day, key={"account": "a1", "n": "7"})
    assert whole.rows == ()
    assert whole.history[-1].after == {}
    everyone = world.client.why(TABLE, day, key={"day": day})
    assert [row.key["account"] for row in everyone.rows] == ["a0", "a1", "a1", "a2"]


def test_a_part_of_the_key_shows_each_row_by_itself(make_world: Make) -> None:
    """Two rows of one account are two histories, also when only one of them is left; none is made of both."""
    world = make_world(days=1, product=TWO_CURRENCIES)
    day = world.days[0]
    world.table.append([{"day": day, "account": "a1", "gross": "50.00", "n": 7}])
    world.to("published")
    assert_rows_told_apart(world, day)


def test_many_rows_are_shown_up_to_a_number_and_that_is_said(make_world: Make) -> None:
    """The note names the column that tells them apart."""
    world = make_world(days=1, rows=25)
    world.to("published")
    view = world.client.why(TABLE, world.days[0], key={"day": world.days[0]})
    assert len(view.rows) == 20
    assert "only 20 of the matching rows are shown; --key account=… narrows them down" in view.note
