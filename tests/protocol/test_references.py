"""Reference tables that changed over time: every partition reads the version of its own time, or of its own run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from errata.cli.render.plan import render_plan
from errata.errors import NeedsAcceptance, PlanRefused, ProjectFileError, Rebased, RunExpired, UsageError
from errata.testing.lake import FrozenClock
from support.memory_world import MemoryWorld as World
from support.world import FIRST, PRODUCT, PRODUCT_FILE

Make = Callable[..., World]
RATES = "lake.fin.rates"
COLUMNS = {"account": "string", "rate": "decimal(12, 2)"}
AS_RECORDED = PRODUCT_FILE.replace(
    "publish:", f"  rates: {{table: {RATES}, reference: as_recorded}}\npublish:"
).replace('reconcile:\n  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n', "")
AS_DECIDED = AS_RECORDED.replace("as_recorded", "as_decided")


def build(_ctx: Any, raw: Any, rates: Any) -> list[dict[str, Any]]:
    """One row per account and day, whose gross is the rate that was read."""
    known = {row["account"]: row["rate"] for row in rates.to_pylist()}
    found = {(row["day"], row["account"]) for row in raw.to_pylist()}
    return [
        {"day": day, "account": account, "gross": known.get(account, Decimal(0)), "n": 1}
        for day, account in sorted(found)
    ]


@contextmanager
def clock_at(world: World, moment: datetime) -> Iterator[None]:
    """Commits to the lake happen at this time."""
    before, world.lake.clock = world.lake.clock, FrozenClock(moment)
    try:
        yield
    finally:
        world.lake.clock = before


def noon_of(day: int) -> datetime:
    """Noon of the nth day of the history."""
    return datetime.combine(FIRST + timedelta(days=day), datetime.min.time(), UTC) + timedelta(hours=12)


def set_rate(world: World, moment: datetime, rate: str, accounts: tuple[str, ...] | None = None) -> str:
    """Overwrite the whole table of rates at this time."""
    table = world.lake.table(RATES)
    names = accounts or tuple(sorted({account for _, account, _, _ in world.wrong()}))
    with clock_at(world, moment):
        return table.overwrite([{"account": name, "rate": rate} for name in names])


@pytest.fixture
def world(make_world: Make) -> World:
    """Five days; the rate was 1 from before the first, 2 from noon of the third, 3 from noon of the fourth."""
    made = make_world(days=5, product=AS_RECORDED, transform=build)
    made.lake.create(RATES, COLUMNS)
    for day, rate in ((-1, "1.00"), (2, "2.00"), (3, "3.00")):
        set_rate(made, noon_of(day), rate)
    return made


def grosses(world: World) -> dict[str, set[str]]:
    """Day → what its rows hold."""
    found: dict[str, set[str]] = {}
    for day, _, gross, _ in world.rows():
        found.setdefault(day, set()).add(str(gross))
    return found


def finish(world: World, run: str) -> None:
    """Judge and publish."""
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")


def test_every_day_reads_the_version_of_its_own_end(world: World) -> None:
    """The newest snapshot committed before the day ended, whatever was committed since."""
    set_rate(world, datetime(2026, 6, 1, tzinfo=UTC), "9.00")
    finish(world, world.to("staged"))
    one, two, three, four, five = world.days
    assert grosses(world) == {one: {"1.00"}, two: {"1.00"}, three: {"2.00"}, four: {"3.00"}, five: {"3.00"}}


def test_a_commit_at_the_very_end_belongs_to_the_next_day(world: World) -> None:
    """Days are half-open."""
    midnight = datetime.combine(FIRST + timedelta(days=5), datetime.min.time(), UTC)
    set_rate(world, midnight, "9.00")
    finish(world, world.to("staged", world.days[4]))
    assert grosses(world)[world.days[4]] == {"3.00"}


def test_chunks_never_mix_versions_and_the_plan_shows_them(world: World) -> None:
    """Each snapshot with its days; the input has a tag for every one, so that none expires before the run."""
    plan = world.plan()
    (rates,) = [one for one in plan.inputs if one.name == "rates"]
    one, two, three, four, five = world.days
    assert [span.partitions for span in rates.snapshots] == [(one, two), (three,), (four, five)]
    assert {frozenset(chunk.partitions) for chunk in plan.chunks} == {
        frozenset({one, two}), frozenset({three}), frozenset({four, five})
    }  # fmt: skip
    table = world.lake.table(RATES)
    tagged = {ref.snapshot_id for name, ref in table.metadata.refs.items() if name.startswith(f"errata_{plan.id}")}
    assert tagged == {span.snapshot_id for span in rates.snapshots}
    text = "\n".join(render_plan(plan, 120))
    assert "3 snapshots" in text
    assert all(span.snapshot_id in text for span in rates.snapshots)
    table.expire(older_than_ms=world.lake.now_ms() + 1000)
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    finish(world, plan.id)
    assert grosses(world)[three] == {"2.00"}
    assert not [name for name in table.metadata.refs if name.startswith(f"errata_{plan.id}")]


def test_a_run_whose_days_read_one_snapshot_is_pinned_as_any_other(world: World) -> None:
    """The plan names that snapshot and what it means."""
    plan = world.plan(world.days[2])
    (rates,) = [one for one in plan.inputs if one.name == "rates"]
    assert (rates.snapshots, rates.reference) == ((), "as_recorded")
    then = world.lake.table(RATES).metadata.log[1][1]
    assert rates.snapshot_id == then


def test_the_same_plan_is_the_same_run_although_the_reference_moved_on(world: World) -> None:
    """What was current then does not change."""
    first = world.plan()
    set_rate(world, datetime(2026, 6, 1, tzinfo=UTC), "9.00")
    again = world.plan()
    assert (again.id, again.already) == (first.id, True)


def test_days_whose_version_has_expired_are_refused_by_name(world: World) -> None:
    """With the reason, the plan that is possible, and no override: another version would be another answer."""
    world.lake.table(RATES).expire(older_than_ms=int(noon_of(3).timestamp() * 1000))
    with pytest.raises(PlanRefused) as refused:
        world.plan()
    (verdict,) = [one for one in refused.value.fields["plan"].verdicts if one.level == "refuse"]
    assert verdict.rule == "reference"
    assert f"3 of 5 partitions: {world.days[0]} … {world.days[2]}" in verdict.message
    hint = refused.value.hint or ""
    assert f"--partitions {world.days[3]}..{world.days[4]}" in hint
    assert "no override sets aside reference" in hint
    with pytest.raises(PlanRefused):
        world.plan(overrides={"reference": "anyway"})
    finish(world, world.to("staged", f"{world.days[3]}..{world.days[4]}"))
    assert grosses(world)[world.days[3]] == {"3.00"}


def test_a_pinned_version_that_is_gone_expires_the_run(world: World) -> None:
    """Although only one of three is gone: its days would be read at another."""
    plan = world.plan()
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    table = world.lake.table(RATES)
    table.drop_ref(*[name for name in table.metadata.refs if name.startswith("errata_")])
    table.expire(older_than_ms=world.lake.now_ms() + 1000)
    with pytest.raises(RunExpired, match=RATES):
        world.client.run(plan.id, as_="ana")


def test_a_correction_as_decided_reads_what_the_accepted_run_read(world: World) -> None:
    """Not what is newest, and not what was current at the end of the day."""
    finish(world, world.to("staged"))
    before = grosses(world)
    set_rate(world, datetime(2026, 6, 1, tzinfo=UTC), "9.00")
    place = world.root / "products/sales.yaml"
    place.write_text(AS_DECIDED.replace("version: 2.0.0", "version: 2.0.1"))
    world.open()
    plan = world.plan(reason="code was wrong")
    (rates,) = [one for one in plan.inputs if one.name == "rates"]
    assert len(rates.snapshots) == 3
    finish(world, world.to("staged", reason="code was wrong"))
    assert grosses(world) == before


def test_days_that_no_run_decided_are_refused_as_decided(world: World) -> None:
    """Nobody knows what a live job read."""
    finish(world, world.to("staged", world.days[1]))
    (world.root / "products/sales.yaml").write_text(AS_DECIDED)
    world.open()
    with pytest.raises(PlanRefused, match="no run of this ledger decided it") as refused:
        world.plan(f"{world.days[0]}..{world.days[2]}")
    assert f"--partitions {world.days[1]} " in (refused.value.hint or "")


def test_keys_are_looked_up_in_the_version_of_their_day(make_world: Make) -> None:
    """An account that the reference got later is unknown on the days before."""
    references = "references: {input: rates, columns: [account]}"
    check = f"  - {{metric: missingReferences, column: account, {references}, mustBe: 0, severity: warn}}\n"
    made = make_world(days=3, product=AS_RECORDED.replace("checks:\n", "checks:\n" + check), transform=build)
    made.lake.create(RATES, COLUMNS)
    accounts = tuple(sorted({account for _, account, _, _ in made.wrong()}))
    set_rate(made, noon_of(-1), "1.00", accounts[:1])
    set_rate(made, noon_of(1), "2.00", accounts)
    run = made.to("staged")
    with pytest.raises(NeedsAcceptance) as waits:
        made.client.validate(run, as_="ana")
    found = {
        one["partition"]: one["value"]
        for one in waits.value.fields["validation"].checks
        if one["name"].startswith("missingReferences")
    }
    assert found == {made.days[0]: str(len(accounts) - 1), made.days[1]: "0", made.days[2]: "0"}


def test_a_trial_of_days_with_different_versions_is_refused(world: World) -> None:
    """It computes them together; one day at a time works."""
    with pytest.raises(UsageError, match="is read at 3 snapshots"):
        world.client.try_out(PRODUCT, f"{world.days[0]}..{world.days[4]}", as_="ana")
    assert world.client.try_out(PRODUCT, world.days[2], as_="ana").rows > 0


def test_a_total_over_versions_is_refused(make_world: Make) -> None:
    """A reference that is read whole has one total for each version, so a run has none."""
    rule = 'reconcile:\n  - {name: all, input: rates, source: "count(*)", target: "count(*)", per: run}\n'
    made = make_world(days=3, product=AS_RECORDED + rule, transform=build)
    made.lake.create(RATES, COLUMNS)
    set_rate(made, noon_of(-1), "1.00")
    set_rate(made, noon_of(1), "2.00")
    with pytest.raises(ProjectFileError, match="read at one snapshot, found 2"):
        made.plan()


def test_a_day_is_recomputed_after_a_live_write_with_its_own_version(make_world: Make) -> None:
    """Live wins over the target, not over the reference: what was current then stays."""
    product = AS_RECORDED.replace("rollback_window: 30d", "rollback_window: 30d, on_live_write: live_wins")
    made = make_world(days=3, product=product, transform=build)
    made.lake.create(RATES, COLUMNS)
    set_rate(made, noon_of(-1), "1.00")
    set_rate(made, noon_of(1), "2.00")
    run = made.to("staged")
    made.live(made.days[1])
    set_rate(made, datetime(2026, 6, 1, tzinfo=UTC), "9.00")
    with pytest.raises(Rebased, match="live wins"):
        made.client.validate(run, as_="ana")
    made.client.run(run, as_="ana")
    finish(made, run)
    one, two, three = made.days
    assert grosses(made) == {one: {"1.00"}, two: {"2.00"}, three: {"2.00"}}


def test_a_reference_with_partitions_is_cut_to_them_at_the_version_of_their_time(make_world: Make) -> None:
    """A day that was corrected later still reads what was there when it ended; one that came too late is missing."""
    product = AS_RECORDED.replace("reference: as_recorded", "partition: day, reference: as_recorded")
    made = make_world(days=3, product=product, transform=build)
    made.lake.create(RATES, {"day": "date", **COLUMNS}, partition=("day", "identity"))
    accounts = sorted({account for _, account, _, _ in made.wrong()})
    table = made.lake.table(RATES)

    def write(moment: datetime, day: str, rate: str) -> None:
        with clock_at(made, moment):
            table.overwrite([{"day": day, "account": name, "rate": rate} for name in accounts])

    for n, day in enumerate(made.days[:2]):
        write(noon_of(n), day, f"{n + 1}.00")
    write(datetime(2026, 6, 1, tzinfo=UTC), made.days[0], "9.00")
    write(datetime(2026, 6, 2, tzinfo=UTC), made.days[2], "3.00")
    with pytest.raises(PlanRefused, match=f"rates: 1 of 3 partitions missing: {made.days[2]}"):
        made.plan()
    finish(made, made.to("staged", f"{made.days[0]}..{made.days[1]}"))
    assert grosses(made) == {made.days[0]: {"1.00"}, made.days[1]: {"2.00"}, made.days[2]: grosses(made)[made.days[2]]}


def test_a_reference_with_partitions_stays_at_its_version_after_a_live_write(make_world: Make) -> None:
    """Rows of the target and of its source are pinned again, those of the reference are not."""
    product = AS_RECORDED.replace("reference: as_recorded", "partition: day, reference: as_recorded").replace(
        "rollback_window: 30d", "rollback_window: 30d, on_live_write: live_wins"
    )
    made = make_world(days=2, product=product, transform=build)
    made.lake.create(RATES, {"day": "date", **COLUMNS}, partition=("day", "identity"))
    accounts = sorted({account for _, account, _, _ in made.wrong()})
    for moment, rate in ((noon_of(-1), "1.00"), (datetime(2026, 6, 1, tzinfo=UTC), "9.00")):
        with clock_at(made, moment):
            made.lake.table(RATES).overwrite(
                [{"day": day, "account": name, "rate": rate} for day in made.days for name in accounts]
            )
    run = made.to("staged")
    made.live(made.days[1])
    with pytest.raises(Rebased):
        made.client.validate(run, as_="ana")
    made.client.run(run, as_="ana")
    finish(made, run)
    assert grosses(made) == {day: {"1.00"} for day in made.days}
