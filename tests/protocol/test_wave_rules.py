"""What a wave is judged by, who lets it go, and what becomes of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.errors import (
    ApprovalRefused,
    NeedsAcceptance,
    PlanRefused,
    PublishConflict,
    Rebased,
    StateRefused,
    ValidationRejected,
)
from errata.model.refs import undo_branch
from support.clock import later
from support.memory_world import MemoryWorld as World
from support.memory_world import build
from support.waves import ALONE, in_waves, seen
from support.world import PRODUCT_FILE

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own
LIMITED = "size: 1, release: first, within: {rows: 10%}"
CY = "  cy: {roles: [requester, operator, approver, publisher]}\n"


def with_rule(rule: str, settings: str = "size: 1", product: str = PRODUCT_FILE) -> str:
    """The product in waves, with one more check."""
    return in_waves(settings, product.replace("reconcile:", f"  - {rule}\nreconcile:"))


def wrong_on(*days: str) -> Callable[[Any, Any], list[dict[str, Any]]]:
    """The transform with an error on these days that the gate finds."""

    def transform(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        return [{**row, "gross": row["gross"] + (str(row["day"]) in days)} for row in build(ctx, raw)]

    return transform


def states(world: World, run: str) -> list[str]:
    return [wave.state for wave in world.client.status(run).waves]


def actions(world: World, run: str) -> list[str]:
    return [entry.action for entry in world.ledger.audit.entries(run)]


# ------------------------------------------------------------------------------------------------------ a bad wave


def test_a_rejected_wave_stops_publication_and_new_chunks(make_world: Make) -> None:
    """Earlier waves stay, later ones are not computed, and whoever runs it again is told why nothing starts."""
    world = make_world(
        days=4, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", ALONE),
        transform=wrong_on("2026-01-03"),
    )  # fmt: skip
    run = world.to("approved")
    world.client.run(run, max_chunks=2, as_="ana")
    with pytest.raises(ValidationRejected, match="2026-01-03"):
        world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    assert states(world, run) == ["published", "rejected", "computing", "computing"]
    world.client.run(run, as_="ana")
    assert any("a wave was rejected" in line for line in world.said)
    assert states(world, run) == ["published", "rejected", "computing", "computing"]
    with pytest.raises(StateRefused, match="rejected"):
        world.client.publish(run, as_="bo")
    assert seen(world, world.days[3:])
    assert world.client.status(run).next == f"errata diff {run}"


def test_what_is_under_way_when_a_wave_is_rejected_is_finished(make_world: Make) -> None:
    """Its output is kept and judged if the run continues; it is not published."""
    begun, judged = threading.Event(), threading.Event()
    wrong = wrong_on("2026-01-02")

    def transform(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        if ctx.partitions[0] == "2026-01-01":
            begun.set()
            assert judged.wait(60)
        return wrong(ctx, raw)

    world = make_world(
        days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", ALONE), transform=transform
    )
    run = world.to("approved")
    other = world.another_client()
    worker = threading.Thread(target=lambda: other.run(run, parallel=1, as_="ana"))
    worker.start()
    assert begun.wait(60)
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    judged.set()
    worker.join(60)
    assert states(world, run) == ["rejected", "staged"]
    assert seen(world, ())


def test_run_publish_ends_with_the_verdict_of_the_rejected_wave(make_world: Make) -> None:
    """The error is that of validate; waves before it are out."""
    world = make_world(
        days=3, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", ALONE),
        transform=wrong_on("2026-01-02"),
    )  # fmt: skip
    run = world.to("approved")
    with pytest.raises(ValidationRejected, match="2026-01-02") as rejected:
        world.client.run(run, publish=True, parallel=1, as_="cy")
    assert str(rejected.value.state).startswith("wave 2 is not published; wave 1 stays published")
    assert "--partitions 2026-01-01..2026-01-02" in str(rejected.value.hint)
    assert seen(world, world.days[2:])
    assert states(world, run)[:2] == ["published", "rejected"]


# -------------------------------------------------------------------------------------------- rules of the whole run


def test_a_rule_that_can_only_get_worse_blocks_at_once(make_world: Make) -> None:
    """Two waves have six rows; the third would bring nine, and more rows never make it fewer."""
    few = "{name: few, metric: rowCount, mustBeLessOrEqualTo: 7, per: run}"
    world = make_world(days=4, product=with_rule(few))
    run = world.to("staged")
    with pytest.raises(ValidationRejected, match="few blocks"):
        world.client.validate(run, as_="ana")
    assert states(world, run) == ["validated", "validated", "rejected", "staged"]


def test_a_rule_that_may_get_better_counts_with_the_last_wave(make_world: Make) -> None:
    """Twelve rows are there when all four waves are; before that it is no finding, and no warning to get used to."""
    many = "{name: many, metric: rowCount, mustBeGreaterOrEqualTo: 12, per: run}"
    world = make_world(days=4, product=with_rule(many))
    run = world.to("validated")
    verdicts = world.ledger.candidates.verdicts(run)
    assert [["many"] if any(c["name"] == "many" for c in one.checks) else [] for one in verdicts] == [[]] * 3 + [
        ["many"]
    ]
    (check,) = [check for check in verdicts[-1].checks if check["name"] == "many"]
    assert (check["level"], check["value"]) == ("ok", "12")


def test_a_rule_of_the_run_that_fails_with_the_last_wave_leaves_it_published_in_part(make_world: Make) -> None:
    """What is out stays, and a rollback of the run is possible."""
    many = "{name: many, metric: rowCount, mustBeGreaterOrEqualTo: 13, per: run}"
    world = make_world(days=2, product=with_rule(many))
    run = world.to("staged")
    with pytest.raises(ValidationRejected, match="many blocks"):
        world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    shown = world.client.status(run)
    assert (shown.state, [wave.state for wave in shown.waves]) == ("part_published", ["published", "rejected"])
    world.client.rollback(run, reason="not all of it", as_="bo")
    assert seen(world, ())


def test_duplicates_across_waves_are_found_with_the_last(make_world: Make) -> None:
    """Within its own wave every account is there once; over the run each is there three times."""
    once = "{name: once, metric: duplicateValues, columns: [account], mustBe: 0, per: run}"
    world = make_world(days=3, product=with_rule(once))
    run = world.to("staged")
    with pytest.raises(ValidationRejected, match="once blocks"):
        world.client.validate(run, as_="ana")
    assert states(world, run) == ["validated", "validated", "rejected"]


def test_totals_of_the_run_are_reconciled_with_the_last_wave(make_world: Make) -> None:
    """Source and target of all waves are compared once, with everything there."""
    rule = '  - {name: all of it, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0, per: run}\n'
    product = in_waves("size: 1").replace("lineage_columns", rule + "lineage_columns")
    world = make_world(days=3, product=product)
    run = world.to("validated")
    named = [
        [c["level"] for c in one.checks if c["name"] == "all of it"] for one in world.ledger.candidates.verdicts(run)
    ]
    assert named == [[], [], ["ok"]]


def test_the_last_wave_is_not_judged_before_the_others(make_world: Make) -> None:
    """The rules of the run add up what was measured in the waves before it."""
    many = "{name: many, metric: rowCount, mustBeGreaterOrEqualTo: 1, per: run}"
    world = make_world(days=3, product=with_rule(many))
    run = world.to("staged")
    with pytest.raises(StateRefused, match="wave 1 is not judged yet"):
        world.client.validate(run, wave=3, as_="ana")
    assert states(world, run) == ["staged"] * 3


# ------------------------------------------------------------------------------------------------ who lets a wave go


def released_first(make_world: Make, product: str, days: int = 3, **options: Any) -> tuple[World, str]:
    """A run whose waves are judged and whose first one a person has released and published."""
    world = make_world(days=days, product=product, **options)
    run = world.to("validated")
    world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
    world.client.publish(run, by_itself=True, as_="cy")
    return world, run


def test_later_waves_go_on_the_release_of_the_first(make_world: Make) -> None:
    """Nobody is asked again; the record says that they went by rule."""
    world, run = released_first(make_world, in_waves(LIMITED))
    world.client.publish(run, by_itself=True, as_="cy")
    world.client.publish(run, by_itself=True, as_="cy")
    assert seen(world, world.days)
    assert [row.kind for row in world.ledger.releases.list(run)] == ["release", "automatic", "automatic"]


def _pause(world: World, run: str) -> None:
    world.client.pause(run, as_="ana")
    world.client.resume(run, as_="bo")


def _roll_back(world: World, run: str) -> None:
    world.client.rollback(run, wave=1, reason="wrong", as_="bo")
    world.client.resume(run, as_="bo")


def _lose_role(world: World, _run: str) -> None:
    world.configure("bo: {roles: [approver, publisher]}", "bo: {roles: [approver]}")


def _change_thresholds(world: World, run: str) -> None:
    path = world.root / "products/sales.yaml"
    path.write_text(path.read_text().replace("mustBeGreaterOrEqualTo: 0", "mustBeGreaterOrEqualTo: 1"))
    world.client.close()
    world.open()
    world.client.validate(run, thresholds="one row at least", as_="bo")


def _suppress(world: World, run: str) -> None:
    world.engines.suppressions.suppress("ann")
    world.client.validate(run, as_="ana")


@pytest.mark.parametrize(
    "event, said",
    [
        (_suppress, "the list of suppressed subjects has moved"),
        (_pause, "the waves were stopped"),
        (_roll_back, "something was rolled back"),
        (_lose_role, "bo no longer has the role publisher"),
        (_change_thresholds, "thresholds were changed"),
    ],
)
def test_whatever_happened_since_makes_a_person_look_again(
    make_world: Make, event: Callable[[World, str], None], said: str
) -> None:
    """A wave that would have gone by itself waits, says why, and goes with a release of its own."""
    world, run = released_first(make_world, in_waves(LIMITED))
    event(world, run)
    with pytest.raises(ApprovalRefused, match=f"wave 2 waits for a person: .*{said}"):
        world.client.publish(run, by_itself=True, as_="cy")
    if event is not _lose_role:
        world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
        assert world.client.publish(run, by_itself=True, as_="cy").partitions == (world.days[1],)


def test_a_wave_that_changes_more_than_the_sealed_limit_waits(make_world: Make) -> None:
    """The middle day lost two of its three rows before the run, so the correction brings back more than a tenth."""
    world = make_world(days=3, product=in_waves(LIMITED), history=False)
    world.write_history((world.days[0], world.days[2]))
    world.live(world.days[1])
    run = world.to("validated")
    world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
    world.client.publish(run, by_itself=True, as_="cy")
    with pytest.raises(ApprovalRefused, match=f"rows of {world.days[1]} changes from 1 to 3, more than 10%"):
        world.client.publish(run, by_itself=True, as_="cy")


def test_a_wave_with_nothing_before_it_cannot_be_compared_and_waits(make_world: Make) -> None:
    """A day that was not there is a change of everything."""
    world = make_world(days=2, product=in_waves(LIMITED), history=False)
    world.write_history((world.days[1],))
    run = world.to("validated")
    world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
    world.client.publish(run, by_itself=True, as_="cy")
    with pytest.raises(ApprovalRefused, match="wave 2 waits for a person"):
        world.client.publish(run, by_itself=True, as_="cy")


def test_the_first_wave_needs_a_person(make_world: Make) -> None:
    """There is nothing yet that a rule could rest on."""
    world = make_world(days=2, product=in_waves(LIMITED))
    run = world.to("validated")
    with pytest.raises(ApprovalRefused, match="no person has released this candidate"):
        world.client.publish(run, by_itself=True, as_="cy")


def test_with_release_each_every_wave_needs_a_person(make_world: Make) -> None:
    """Also where the product would publish by itself without waves."""
    world = make_world(days=2, product=in_waves("size: 1", ALONE))
    run = world.to("validated")
    for _ in range(2):
        with pytest.raises(ApprovalRefused, match="no person has released this candidate"):
            world.client.publish(run, by_itself=True, as_="cy")
        world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
        world.client.publish(run, by_itself=True, as_="cy")
    assert seen(world, world.days)


def test_with_release_none_a_clean_gate_is_enough(make_world: Make) -> None:
    """Every wave by itself."""
    world = make_world(days=2, product=in_waves("size: 1, release: none", ALONE))
    run = world.to("validated")
    world.client.publish(run, by_itself=True, as_="cy")
    world.client.publish(run, by_itself=True, as_="cy")
    assert seen(world, world.days)


def test_an_accepted_warning_counts_for_its_own_wave_only(make_world: Make) -> None:
    """The same words about another wave are another warning."""
    few = "{name: few, metric: rowCount, mustBeGreaterOrEqualTo: 4, severity: warn}"
    world = make_world(days=2, product=with_rule(few))
    run = world.to("staged")
    with pytest.raises(NeedsAcceptance):
        world.client.validate(run, as_="ana")
    world.client.validate(run, accept={"few": "a quiet day"}, as_="bo")
    assert states(world, run) == ["validated", "staged"]
    with pytest.raises(NeedsAcceptance):
        world.client.validate(run, as_="ana")
    assert states(world, run) == ["validated", "needs_acceptance"]


# --------------------------------------------------------------------------------------------------- live and undone


def test_live_wins_in_its_own_wave_and_the_others_stay(make_world: Make) -> None:
    """The wave is computed again, at most three times; what is out is not touched."""
    product = in_waves("size: 1").replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: live_wins")
    world = make_world(days=2, product=product)
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    for _ in range(3):
        world.live(world.days[0])
        with pytest.raises(Rebased):
            world.client.publish(run, as_="bo")
        assert states(world, run) == ["published", "computing"]
        world.client.run(run, as_="ana")
        world.client.validate(run, as_="ana")
    world.live(world.days[0])
    with pytest.raises(PublishConflict, match="live won 3 times in this wave"):
        world.client.publish(run, as_="bo")
    assert states(world, run)[0] == "published"


def test_a_worker_that_began_before_a_rebase_reads_what_is_pinned_anew(make_world: Make) -> None:
    """The wave is computed again next, before the waves behind it, and the row that live added is in the result."""
    product = in_waves("size: 1").replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: live_wins")
    order: list[str] = []

    def transform(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        order.extend(ctx.partitions)
        if len(order) == 2:  # the newest day is computed; meanwhile live writes to it
            amounts = pa.array([Decimal("5.00")], pa.decimal128(12, 2))
            late = world.root / f"raw/day={world.days[2]}/late.parquet"
            pq.write_table(pa.table({"account": ["late"], "amount": amounts}), late)
            world.live(world.days[2], "late", "10.00")
            with pytest.raises(Rebased):
                world.another_client().validate(run, wave=1, as_="ana")
        return build(ctx, raw)

    world = make_world(days=3, chunk_bytes=ONE_DAY, product=product, transform=transform)
    run = world.to("approved")
    world.client.run(run, parallel=1, as_="ana")
    assert order == [world.days[2], world.days[1], world.days[2], world.days[0]]
    world.client.validate(run, as_="ana")
    world.client.publish(run, wait=True, as_="bo")
    assert world.rows() == world.expected()


def test_a_rebase_says_which_published_days_read_what_is_pinned_anew(make_world: Make) -> None:
    """Day 2 is out and looked back at day 1, which is computed again with newer inputs."""
    product = in_waves("size: 1").replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: live_wins")
    product = product.replace("    partition: day\n", "    partition: day\n    lookback: 1d\n", 1)

    def own_days(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        return [row for row in build(ctx, raw) if str(row["day"]) in ctx.partitions]

    world = make_world(days=3, product=product, transform=own_days)
    run = world.to("validated", f"{world.days[1]}..{world.days[2]}")
    world.client.publish(run, as_="bo")
    world.live(world.days[1])
    with pytest.raises(Rebased):
        world.client.publish(run, as_="bo")
    (entry,) = [one for one in world.ledger.audit.entries(run) if one.action == "waves.stale"]
    assert entry.body["partitions"] == [world.days[2]]


def test_a_rollback_of_a_wave_pauses_a_run_that_is_still_computed(make_world: Make) -> None:
    """Nothing more is computed or published until a person resumes; what was rolled back stays out."""
    world = make_world(days=3, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", ALONE))
    run = world.to("approved")
    world.client.run(run, max_chunks=1, publish=True, as_="cy")
    assert states(world, run) == ["published", "computing", "computing"]
    world.client.rollback(run, wave=1, reason="wrong", as_="bo")
    assert world.client.status(run).state == "paused"
    assert seen(world, ())
    world.client.resume(run, as_="cy")
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert seen(world, world.days[:2])


def test_cancel_ends_what_is_not_out_and_leaves_what_is(make_world: Make) -> None:
    """The rest never goes; what is out keeps its undo through a cleanup and can be rolled back."""
    world = make_world(days=2, product=in_waves("size: 1"))
    run = world.to("validated")
    first = world.client.publish(run, as_="bo")
    world.client.cancel(run, reason="enough", as_="ana")
    assert states(world, run) == ["published", "cancelled"]
    with pytest.raises(StateRefused):
        world.client.publish(run, as_="bo")
    with later(hours=1):
        world.client.cleanup(as_="ana")
    assert undo_branch(first.publication_id) in world.refs()
    assert seen(world, world.days[1:])
    assert world.client.rollback(run, reason="after all", as_="bo").state == "rolled_back"
    assert seen(world, ())


def test_the_undo_of_the_first_wave_lives_as_long_as_that_of_the_last(make_world: Make) -> None:
    """Each publication prolongs what the undo of the earlier ones needs, so all of it can be taken back."""
    world = make_world(days=2, product=in_waves("size: 1, pause: 20d"))
    run = world.to("validated")
    first = world.client.publish(run, as_="bo")
    kept = world.table.metadata.refs[undo_branch(first.publication_id)].age_ms or 0
    with later(days=21):
        world.client.publish(run, as_="bo")
    assert (world.table.metadata.refs[undo_branch(first.publication_id)].age_ms or 0) > kept
    assert kept >= 50 * 86_400_000


def test_waves_that_outlive_what_they_read_are_refused(make_world: Make) -> None:
    """Two pauses of thirty days are longer than pins are kept."""
    world = make_world(days=3, product=in_waves("size: 1, pause: 30d"))
    with pytest.raises(PlanRefused, match="3 waves with 30d between them"):
        world.plan()


def test_two_workers_share_a_run_and_one_of_them_publishes(make_world: Make) -> None:
    """Every wave goes once, in order, whoever computed it."""
    world = make_world(days=6, chunk_bytes=ONE_DAY, product=in_waves("size: 2, release: none", ALONE))
    run = world.to("approved")
    other = world.another_client()
    worker = threading.Thread(target=lambda: other.run(run, parallel=1, as_="ana"))
    worker.start()
    world.client.run(run, parallel=1, publish=True, as_="cy")
    worker.join(60)
    landed = [one for one in world.ledger.publications.list(run) if one.state.value == "committed"]
    assert [one.partitions for one in landed] == [world.days[4:], world.days[2:4], world.days[:2]]
    assert seen(world, world.days)
    assert world.client.status(run).state == "published"


def test_a_preview_shows_the_next_wave_and_stays_with_it(make_world: Make) -> None:
    """Judging another wave does not move its name."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1"))
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    world.client.validate(run, as_="ana")
    shown = world.client.dark(run, name="preview", as_="bo")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    assert world.table.metadata.refs["preview"].snapshot_id == shown.snapshot_id
