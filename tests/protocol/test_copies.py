"""Copies follow what the lake has accepted: what is owed, in which order, and what a person is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from errata.delivery.attempts import count_attempts
from errata.delivery.payment import pay
from errata.errors import MissingCredentials, MissingDriver, PermissionRefused, UsageError
from errata.failpoints import arm
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.copy.delivery import WarehouseColumn
from errata.model.copy.marker import MarkerState
from errata.testing.copies import MemoryCopies, MemoryCopy
from support.clock import Clock, stopped_clock
from support.copy_world import build_product
from support.memory_world import MemoryWorld as World
from support.terminal import next_lines

Make = Callable[..., World]
ACTOR = Actor("ana", "ana", "host")
PROJECT = '\nwarehouses:\n  pg: {type: postgres, uri: "postgresql://errata@127.0.0.1/bi"}\n'
COLUMNS = {"day": "date", "account": "text", "gross": "numeric(12,2)", "n": "bigint"}


@pytest.fixture
def clock() -> Iterator[Clock]:
    """The ledger's clock, which waits for nobody."""
    with stopped_clock() as stopped:
        yield stopped


@pytest.fixture
def make(make_world: Make) -> Make:
    """Makes lakes with an empty copy in memory."""

    def _make(*, copy: str = "{warehouse: pg, table: shop.sales}", more: str = "", **options: Any) -> World:
        world = make_world(product=build_product(copy, more), project=PROJECT, **options)
        copies(world).create("pg", "shop.sales", [WarehouseColumn(name, kind) for name, kind in COLUMNS.items()])
        return world

    return _make


def copies(world: World) -> MemoryCopies:
    return world.engines.warehouses


def table(world: World) -> MemoryCopy:
    return copies(world).tables["pg", "shop.sales"]


def rows(world: World) -> list[tuple[Any, ...]]:
    return sorted((str(row["day"]), row["account"], row["gross"], row["n"]) for row in table(world).rows)


def put(world: World, *found: tuple[Any, ...]) -> None:
    from datetime import date

    table(world).rows.extend(
        {"day": date.fromisoformat(day), "account": account, "gross": gross, "n": n} for day, account, gross, n in found
    )


def items(world: World) -> list[OutboxItem]:
    return [one for one in world.ledger.outbox.list() if one.effect is Effect.COPY]


def deliver(world: World, **options: Any) -> Any:
    return world.client.deliver(as_="bo", timeout="1s", **options)


def pay_until_it_ends(world: World, clock: Clock) -> None:
    """Pay as often as something is due."""
    while owed := [one for one in items(world) if one.state is ItemState.OWED]:
        clock.move(max(0.0, min(one.not_before for one in owed) / 1000 - clock.at.timestamp()))
        pay(world.workspace, ACTOR, seconds=60)


def in_waves(world: World) -> World:
    """The same world, whose product is published day by day."""
    world.client.close()
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("rollback_window: 30d}", "rollback_window: 30d, waves: {size: 1}}"))
    held = table(world)
    world.open()
    copies(world).tables["pg", "shop.sales"] = held
    return world


# ------------------------------------------------------------------------------------------------ what is delivered


def test_the_copy_holds_what_was_published_and_then_what_was_restored(make: Make) -> None:
    """Both are paid by the command that causes them; partitions that were never published are left alone."""
    world = make(days=3)
    run = world.to("published", f"{world.days[0]}..{world.days[1]}")
    assert rows(world) == world.expected(world.days[:2])
    view = world.client.rollback(run, partitions=world.days[0], reason="wrong rates", as_="bo")
    assert rows(world) == sorted([*world.wrong(world.days[:1]), *world.expected(world.days[1:2])])
    assert [one.state for one in view.copies] == ["delivered"]
    assert table(world).staging == {}


def test_rows_that_are_lost_on_the_way_are_noticed_before_anything_is_locked(make: Make) -> None:
    """Fewer rows in staging than in the lake: nothing is written, and they are still owed."""
    world = make(days=1)
    compared: list[str] = []
    with (
        arm("copy.after_load", lambda: next(iter(table(world).staging.values())).pop()),
        arm("copy.after_compare", lambda: compared.append("under the lock")),
    ):
        world.to("published")
    assert compared == []
    [item] = items(world)
    assert (item.state, item.last_error) == (
        ItemState.OWED,
        "the rows that reached pg:shop.sales are not those of the lake, in 2026-01-01",
    )
    assert (rows(world), table(world).staging) == ([], {})


def test_each_wave_is_delivered_with_its_publication(make: Make) -> None:
    """A wave that is out is in the copy before the next one is released."""
    world = in_waves(make(days=3))
    run = world.to("validated")
    seen = []
    for _ in world.days:
        world.client.publish(run, as_="bo")
        seen.append(sorted({row[0] for row in rows(world)}))
    assert seen == [[world.days[2]], list(world.days[1:]), list(world.days)]
    assert rows(world) == world.expected()


def test_live_rows_after_the_publication_are_left_to_the_live_job(make: Make, clock: Clock) -> None:
    """The copy gets what was accepted; rows that live appended to the lake since are its own to bring."""
    world = make(days=2)
    copies(world).down = "pg cannot be reached"
    world.to("published", world.days[0])
    world.live(world.days[0], "late")
    copies(world).down = ""
    pay_until_it_ends(world, clock)
    assert rows(world) == world.expected(world.days[:1])


def test_repeating_any_command_changes_nothing(make: Make) -> None:
    """A second publish, deliver or rollback delivers nothing again."""
    world = make(days=2)
    run = world.to("published")
    markers = dict(table(world).markers)
    world.client.publish(run, as_="bo")
    assert deliver(world).paid == 0
    assert table(world).markers == markers
    world.client.rollback(run, reason="wrong", as_="bo")
    world.client.rollback(run, reason="wrong", as_="bo")
    assert list(table(world).markers.values()) == [MarkerState.DONE] * 2
    assert rows(world) == world.wrong()


# ---------------------------------------------------------------------------------------------- state, not events


def test_a_rolled_back_publication_never_reaches_the_copy(make: Make, clock: Clock) -> None:
    """The warehouse was down all the while: it goes from the old rows to the restored rows, and shows no others."""
    world = make(days=2)
    put(world, *world.wrong())
    world.client.baseline("fin.sales", reason="loaded by the old job", as_="bo")
    seen: list[list[Any]] = []
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    world.client.rollback(run, reason="wrong rates", as_="bo")
    copies(world).down = ""
    with arm("copy.after_commit", lambda: seen.append(rows(world))):
        pay_until_it_ends(world, clock)
    assert seen == [world.wrong()]
    first, second = items(world)
    assert (first.state, second.state) == (ItemState.PAID, ItemState.PAID)
    assert first.result == {"absorbed_by": second.key}


def test_waves_that_a_warehouse_missed_are_delivered_as_they_are_accepted(make: Make, clock: Clock) -> None:
    """Three waves went out and one of them was rolled back: each partition gets its newest state, and no other."""
    world = in_waves(make(days=3))
    copies(world).down = "pg cannot be reached"
    run = world.to("validated")
    for _ in world.days:
        world.client.publish(run, as_="bo")
    world.client.rollback(run, partitions=world.days[1], reason="wrong rates", as_="bo")
    copies(world).down = ""
    seen: list[Any] = []
    with arm("copy.after_commit", lambda: seen.extend(rows(world))):
        pay_until_it_ends(world, clock)
    wanted = sorted([*world.expected((world.days[0], world.days[2])), *world.wrong(world.days[1:2])])
    assert rows(world) == wanted
    assert set(seen) == set(wanted)
    assert {one.state for one in items(world)} == {ItemState.PAID}


def test_a_run_that_was_superseded_meanwhile_is_not_delivered(make: Make, clock: Clock) -> None:
    """The warehouse was down during both: it gets the newer one, once."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    world.to("published")
    world.to("published")
    copies(world).down = ""
    pay_until_it_ends(world, clock)
    first, second = items(world)
    assert first.result == {"absorbed_by": second.key}
    done = [one.publication for one, state in table(world).markers.items() if state is MarkerState.DONE]
    assert done == [second.pub_id]
    assert rows(world) == world.expected()


def test_an_item_that_failed_for_good_does_not_hold_up_a_later_one(make: Make, clock: Clock) -> None:
    """A rollback of the same partitions is delivered although the publication before it could not be."""
    world = make(days=1)
    run = world.to("published")
    put(world, (world.days[0], "foreign", 1, 1))
    second = world.client.rollback(run, reason="wrong", as_="bo")
    assert second.copies[0].state == "failed"
    table(world).rows = [row for row in table(world).rows if row["account"] != "foreign"]
    world.client.retry_outbox(failed=True, as_="ana")
    pay_until_it_ends(world, clock)
    assert rows(world) == world.wrong()


def test_items_of_other_partitions_do_not_wait(make: Make, clock: Clock) -> None:
    """A partition that somebody else wrote stops only itself."""
    world = make(days=2)
    put(world, (world.days[0], "foreign", 1, 1))
    world.to("published", world.days[0])
    world.to("published", world.days[1])
    pay_until_it_ends(world, clock)
    assert [one.state for one in items(world)] == [ItemState.FAILED, ItemState.PAID]
    assert rows(world) == sorted([(world.days[0], "foreign", 1, 1), *world.expected(world.days[1:])])


def test_what_is_accepted_while_rows_are_loaded_is_what_is_delivered(make: Make, clock: Clock) -> None:
    """A rollback between loading and the swap: what was staged is thrown away, not shown."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    copies(world).down = ""
    done: list[str] = []

    def undo() -> None:
        if not done:
            done.append(run)
            other = world.another_client()
            other.rollback(run, reason="wrong", as_="bo")
            other.close()

    seen: list[list[Any]] = []
    with arm("copy.after_load", undo), arm("copy.after_commit", lambda: seen.append(rows(world))):
        pay_until_it_ends(world, clock)
    assert seen == [world.wrong()]
    assert rows(world) == world.wrong()


# ---------------------------------------------------------------------------------------------------- lost answers


def test_a_lost_answer_to_a_commit_is_looked_up_in_the_marker(make: Make) -> None:
    """The rows are there once, and the item is paid by the same attempt."""
    world = make(days=2)
    copies(world).lose_answers = True
    world.to("published")
    [item] = items(world)
    assert (item.state, item.attempts) == (ItemState.PAID, 1)
    assert rows(world) == world.expected()
    assert list(table(world).markers.values()) == [MarkerState.DONE]


@pytest.mark.parametrize(
    "point",
    ["copy.after_load", "copy.after_open", "copy.after_lock", "copy.after_compare", "copy.before_commit",
     "copy.after_commit", "copy.after_swap", "deliver.after_pay"],
)  # fmt: skip
def test_an_attempt_that_ends_anywhere_is_followed_by_another(make: Make, clock: Clock, point: str) -> None:
    """Whatever it had done: rows once, one marker done, nothing staged."""
    world = make(days=2)
    put(world, *world.wrong())
    world.client.baseline("fin.sales", reason="loaded by the old job", as_="bo")
    run = world.to("validated")

    def stop() -> None:
        raise KeyboardInterrupt

    with arm(point, stop), pytest.raises(KeyboardInterrupt):
        world.client.publish(run, as_="bo")
    assert rows(world) in (world.wrong(), world.expected())
    clock.move(3600)  # the claim of the process that ended
    pay_until_it_ends(world, clock)
    assert rows(world) == world.expected()
    markers = [state for marker, state in table(world).markers.items() if not marker.publication.startswith("base")]
    assert markers.count(MarkerState.DONE) == 1
    assert MarkerState.OPEN not in markers
    assert table(world).staging == {}


def test_an_outcome_that_nobody_knows_is_not_guessed(make: Make, clock: Clock) -> None:
    """While an earlier swap may still commit, nothing is loaded and nothing concluded; afterwards the marker tells."""
    world = make(days=1)
    run = world.to("validated")

    def stop() -> None:
        raise KeyboardInterrupt

    with arm("copy.after_open", stop), pytest.raises(KeyboardInterrupt):
        world.client.publish(run, as_="bo")
    [marker] = table(world).markers
    table(world).locked_markers.add(marker)
    clock.move(3600)
    pay(world.workspace, ACTOR, seconds=60)
    [item] = items(world)
    assert (item.state, item.progress["code"], rows(world)) == (ItemState.OWED, "copy-locked", [])
    assert table(world).markers == {marker: MarkerState.OPEN}
    table(world).locked_markers.clear()
    pay_until_it_ends(world, clock)
    assert rows(world) == world.expected()
    assert table(world).markers[marker] is MarkerState.VOID


# --------------------------------------------------------------------------------------------- writes by others


def test_rows_of_somebody_else_stop_the_delivery_by_name(make: Make, clock: Clock) -> None:
    """Nothing is written, the item has failed, and the command that it names makes the next attempt succeed."""
    world = make(days=3)
    run = world.to("published")
    put(world, (world.days[1], "foreign", 1, 1))
    before = rows(world)
    view = world.client.rollback(run, reason="wrong", as_="bo")
    [line] = view.copies
    assert (line.state, line.code, line.missing) == ("failed", "copy-changed", world.days)
    assert line.error is not None
    assert "holds other rows than the last delivery left there, in 2026-01-02" in line.error
    assert "errata deliver fin.sales --baseline --partitions 2026-01-02" in line.error
    assert "foreign" not in line.error
    assert rows(world) == before
    shown = world.client.baseline("fin.sales", partitions=world.days[1], as_="bo")
    assert (shown.is_accepted, shown.copies[0].differing) == (False, (world.days[1],))
    assert deliver(world).ok is False
    done = world.client.baseline("fin.sales", partitions=world.days[1], reason="it was a test row", as_="bo")
    assert (done.is_accepted, len(done.retried)) == (True, 1)
    assert deliver(world).ok is True
    assert rows(world) == world.wrong()


def test_a_copy_with_a_history_needs_a_baseline(make: Make) -> None:
    """Rows that nobody accepted are not replaced, even on the first delivery."""
    world = make(days=2)
    put(world, *world.wrong())
    run = world.to("published")
    [item] = items(world)
    assert item.state is ItemState.FAILED
    assert "has rows that Errata did not deliver, in 2026-01-01 … 2026-01-02" in (item.last_error or "")
    assert rows(world) == world.wrong()
    world.client.baseline("fin.sales", reason="loaded by the old job", as_="bo")
    assert deliver(world).ok is True
    assert rows(world) == world.expected()
    assert world.client.status(run).delivered == "yes"


def test_the_next_command_of_a_refused_delivery_is_for_someone_who_may_decide(make: Make) -> None:
    """An operator sees the command of a publisher: looking at the rows and accepting them are the same decision."""
    world = make(days=1)
    put(world, (world.days[0], "foreign", 1, 1))
    run = world.to("published")
    (line,) = next_lines(world, f"errata --as ana status {run}")
    assert " deliver fin.sales --as bo --baseline" in line
    with pytest.raises(PermissionRefused):
        world.client.baseline("fin.sales", partitions=world.days[0], reason="a test row", as_="ana")
    assert world.client.baseline("fin.sales", partitions=world.days[0], reason="a test row", as_="bo").is_accepted


def test_a_baseline_comes_before_the_first_plan(make: Make) -> None:
    """In a project without a ledger it is the first decision on record, and the publication after it is delivered."""
    world = make(days=1)
    put(world, *world.wrong())
    (world.root / ".errata/ledger.db").unlink()
    known = world.engines.warehouses
    world.open()
    world.engines.warehouses = known
    world.client.baseline("fin.sales", reason="loaded by the old job", as_="bo")
    world.to("published")
    assert rows(world) == world.expected()


def test_a_baseline_is_a_person_s_decision_on_record(make: Make) -> None:
    """With who, why, and which partitions differ; a service account or an operator cannot make it."""
    world = make(days=2)
    put(world, *world.wrong(world.days[:1]))
    with pytest.raises(PermissionRefused):
        world.client.baseline("fin.sales", reason="fine", as_="ana")
    view = world.client.baseline("fin.sales", reason="loaded by the old job", as_="bo")
    assert [(one.partition, one.lake_rows, one.copy_rows, one.is_same) for one in view.copies[0].partitions] == [
        (world.days[0], 3, 3, True),
        (world.days[1], 3, 0, False),
    ]
    [entry] = [one for one in world.ledger.audit.readable_entries() if one.action == "copy.baseline"]
    assert (entry.actor.person, entry.body["reason"], entry.body["differing"]) == (
        "bo",
        "loaded by the old job",
        [world.days[1]],
    )
    assert rows(world) == world.wrong(world.days[:1])


def test_a_copy_with_other_columns_than_at_its_last_delivery_is_not_compared(make: Make) -> None:
    """A checksum over other columns proves nothing; a person accepts what is there."""
    world = make(days=1)
    run = world.to("published")
    table(world).columns = table(world).columns[:3]
    for row in table(world).rows:
        del row["n"]
    view = world.client.rollback(run, reason="wrong", as_="bo")
    assert "columns of pg:shop.sales changed since its last delivery" in (view.copies[0].error or "")


def test_a_session_that_keeps_a_lock_is_named(make: Make) -> None:
    """The delivery gives up, says who is in the way, and is tried again."""
    world = make(days=1)
    run = world.to("validated")
    from errata.model.copy.table import CopyColumn, CopyTable
    from errata.model.partition import Grain

    day = CopyColumn("day", "day", "date")
    with copies(world).hold_table(CopyTable("pg", "shop.sales", (day,), day, Grain.DAY)):
        view = world.client.publish(run, as_="bo")
    [item] = items(world)
    assert (item.state, item.progress) == (ItemState.OWED, {"code": "copy-locked", "blocked_by": ["4711"]})
    assert (view.copies[0].state, view.copies[0].code) == ("pending", "copy-locked")


# ------------------------------------------------------------------------------------------------------- retention


def test_rows_that_are_owed_outlive_expiry(make: Make, clock: Clock) -> None:
    """The tag of the publication stays until the copy is delivered, also through cleanup; then it goes."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    tag = f"errata_{world.publication(run)}_pub"
    world.client.cleanup(as_="ana")
    world.live(world.days[0], "late")
    world.compact()
    world.expire()
    assert tag in world.refs()
    copies(world).down = ""
    pay_until_it_ends(world, clock)
    assert rows(world) == world.expected()
    world.client.cleanup(as_="ana")
    assert tag not in world.refs()


def test_rows_that_are_gone_are_a_failure_by_name(make: Make, clock: Clock) -> None:
    """After copies.keep nobody can deliver what was accepted, and nothing else is delivered instead."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    world.drop_refs(f"errata_{world.publication(run)}_pub")
    world.live(world.days[0], "late")
    world.expire()
    copies(world).down = ""
    pay_until_it_ends(world, clock)
    [item] = items(world)
    assert (item.state, item.progress["code"]) == (ItemState.FAILED, "run-expired")
    assert (item.last_error or "").startswith("files expired: ")
    assert rows(world) == []


@pytest.mark.parametrize("keep, days", [("1h", 7), ("3d", 7), ("14d", 14), ("30d", 30)])
def test_the_tag_of_a_publication_lives_as_long_as_its_copies_ask(make: Make, keep: str, days: int) -> None:
    """At least a week, as without copies; made in the commit itself, and the same for a rollback."""
    world = make(days=1, copy=f"{{warehouse: pg, table: shop.sales, keep: {keep}}}")
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    ages = {ref.age_ms for name, ref in world.table.metadata.refs.items() if name.endswith("_pub")}
    assert ages == {days * 86_400_000}


# ---------------------------------------------------------------------------------------------- what people are told


def test_a_plan_names_the_copies_that_follow(make: Make) -> None:
    """Who approves knows which tables are replaced besides the target."""
    world = make(days=1, copy="{warehouse: pg, table: shop.sales, required: true}")
    assert world.plan().copies == ("pg:shop.sales (required)",)


def test_the_state_of_a_run_follows_the_lake_alone(make: Make) -> None:
    """Published is published; whether copies have it is a second word."""
    world = make(days=2, copy="{warehouse: pg, table: shop.sales, required: true}")
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    status = world.client.status(run)
    [line] = status.copies
    assert (status.state, status.delivered) == ("published", "pending")
    assert (line.warehouse, line.table, line.state, line.partitions) == ("pg", "shop.sales", "pending", world.days)
    assert (line.delivered_at, line.required, line.missing) == (None, True, world.days)
    copies(world).down = ""
    world.client.retry_outbox([str(items(world)[0].item_id)], as_="ana")
    deliver(world)
    [line] = world.client.status(run).copies
    assert (line.state, line.missing, line.delivered_at) == ("delivered", (), items(world)[0].ended_at)


def test_a_copy_that_is_given_up_is_not_delivered(make: Make, clock: Clock) -> None:
    """Waiving ends attempts and states no success; a later rollback owes the partitions again."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    world.client.waive_outbox(str(items(world)[0].item_id), reason="pg is switched off", as_="bo")
    status = world.client.status(run)
    [line] = status.copies
    assert (status.delivered, line.state, line.waived_by, line.missing) == ("waived", "waived", "bo", world.days)
    copies(world).down = ""
    world.client.rollback(run, reason="wrong", as_="bo")
    assert (world.client.status(run).delivered, rows(world)) == ("yes", world.wrong())


def test_all_attempts_used_up_is_failed(make: Make, clock: Clock) -> None:
    """A warehouse that stays down is a failed item, which a person retries."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    run = world.to("published")
    pay_until_it_ends(world, clock)
    [item] = items(world)
    assert (item.state, item.attempts) == (ItemState.FAILED, count_attempts(Effect.COPY))
    assert world.client.status(run).delivered == "failed"


def test_a_missing_driver_leaves_the_item_as_it_was(make: Make) -> None:
    """Another machine may have it: no attempt is counted, and the sentence names the extra."""
    world = make(days=1)
    run = world.to("validated")

    def refuse(_warehouse: str) -> Any:
        raise MissingDriver("a copy in PostgreSQL cannot be reached; expected the Python package psycopg, found none")

    world.engines.copies = refuse
    view = world.client.publish(run, as_="bo")
    [item] = items(world)
    assert (item.state, item.attempts, view.state) == (ItemState.OWED, 0, "published")
    assert any("expected the Python package psycopg" in one for one in view.warnings)


def test_a_missing_variable_leaves_the_item_as_it_was(make: Make) -> None:
    """Nothing is tried without the credentials of the warehouse."""
    world = make(days=1)
    run = world.to("validated")
    held = table(world)
    world.configure('uri: "postgresql://errata@127.0.0.1/bi"', 'uri: "${PG_OF_NOBODY}"')
    copies(world).tables["pg", "shop.sales"] = held
    view = world.client.publish(run, as_="bo")
    assert any("needs the variable PG_OF_NOBODY" in one for one in view.warnings)
    assert [(one.state, one.attempts) for one in items(world)] == [(ItemState.OWED, 0)]
    # a baseline owes nothing: what it says is true of every command
    with pytest.raises(MissingCredentials) as missing:
        world.client.baseline("fin.sales", as_="bo")
    assert missing.value.state == "nothing was changed"


def test_a_copy_that_is_no_longer_declared_is_named(make: Make) -> None:
    """Its items say what to do."""
    world = make(days=1)
    copies(world).down = "pg cannot be reached"
    world.to("published")
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("  copies: [{warehouse: pg, table: shop.sales}]\n", ""))
    world.client.close()
    world.open()
    world.client.retry_outbox([str(items(world)[0].item_id)], as_="ana")
    assert deliver(world).ok is False
    assert "is not a copy of fin.sales any more" in (items(world)[0].last_error or "")


def test_options_of_a_baseline_name_what_exists(make: Make) -> None:
    """An unknown copy is refused with those that there are."""
    world = make(days=1)
    with pytest.raises(UsageError, match=r"no copy pg:x; expected one of pg:shop\.sales"):
        world.client.baseline("fin.sales", copy="pg:x", as_="bo")
