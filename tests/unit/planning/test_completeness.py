"""Which partitions of an input wait for rows, and what that means for the partitions that read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.manifest import Override
from errata.model.partition import Grain, end_of, expand_range, shift_partition
from errata.model.product import Completeness, Input
from errata.planning.completeness import find_waiting, list_waiting, with_latest
from errata.ports.tables import Arrival, FileTimes, InputState, PartitionSize
from unit.planning.worlds import INPUTS, PRODUCT, ask, levels, message, plan

DAYS = expand_range(Grain.DAY, "2026-01-01", "2026-01-05")
ONE, TWO, THREE, FOUR = DAYS
MARKED = Completeness(marker="_SUCCESS")
ANNOUNCED = Completeness(rows_from="lake.ops.batches.n")
REACHED = Completeness(watermark="at", after="2h")


def waiting(rule: Completeness, arrival: Arrival | None, names: tuple[str, ...] = DAYS) -> dict[str, str]:
    """What waits, of an input with ten rows on each of the first three days."""
    source = Input("raw", table="lake.raw.t", partition="day", complete=rule)
    sizes = {name: PartitionSize(10, 100, 1) for name in DAYS[:3]}
    return find_waiting(
        source, InputState("raw", "table", "lake.raw.t", "date", sizes, arrival=arrival), Grain.DAY, names
    )


def test_a_marker_counts_unless_a_file_beside_it_is_newer() -> None:
    """One of the attempt before is no sign that the files of this one are all there."""
    marked = {ONE: FileTimes(7, 7), TWO: FileTimes(7, 8), THREE: FileTimes(None, 7), FOUR: FileTimes(9, None)}
    assert waiting(MARKED, Arrival(marked)) == {
        TWO: "_SUCCESS is older than the newest file beside it",
        THREE: "no _SUCCESS beside its files",
    }
    assert set(waiting(MARKED, Arrival())) == set(DAYS)


def test_rows_are_those_that_were_announced_and_no_others() -> None:
    """Fewer have not arrived, more were sent twice; what nobody announced, or nobody can count, waits."""
    arrival = Arrival(announced={ONE: 10, TWO: 11, THREE: 9, FOUR: 0})
    assert waiting(ANNOUNCED, arrival) == {TWO: "10 rows, 11 were announced", THREE: "10 rows, 9 were announced"}
    assert waiting(ANNOUNCED, Arrival(), (ONE,)) == {ONE: "lake.ops.batches has no row for it"}
    uncounted = replace(arrival, uncounted=frozenset({ONE}))
    assert waiting(ANNOUNCED, uncounted, (ONE,)) == {ONE: "its rows cannot be counted from metadata"}


def test_a_watermark_has_to_reach_the_end_and_the_delay() -> None:
    """At the very instant it is reached; without any value nothing is."""
    reached = end_of(Grain.DAY, TWO) + timedelta(hours=2)
    at_ms = int(reached.timestamp() * 1000)
    assert set(waiting(REACHED, Arrival(watermark_ms=at_ms))) == {THREE, FOUR}
    assert waiting(REACHED, Arrival(watermark_ms=at_ms - 1))[TWO] == (
        "at has reached 2026-01-03 01:59 UTC, 2026-01-03 02:00 UTC is needed"
    )
    assert waiting(REACHED, Arrival(), (ONE,)) == {ONE: "at has no value"}
    assert waiting(REACHED, Arrival(watermark_ms=at_ms), ("null",)) == {
        "null": "the partition of NULL has no end in time"
    }


def test_an_input_that_says_nothing_never_waits() -> None:
    """Neither does one of a restore, which nobody asked."""
    source = Input("raw", table="lake.raw.t", partition="day")
    facts = InputState("raw", "table", "lake.raw.t", "date", {}, arrival=Arrival())
    assert find_waiting(source, facts, Grain.DAY, DAYS) == {}
    assert waiting(MARKED, None) == {}


@given(st.integers(0, 3), st.integers(0, 2), st.sets(st.integers(0, 19)))
def test_a_partition_waits_exactly_if_something_that_it_reads_waits(back: int, ahead: int, late: set[int]) -> None:
    """Look-back and look-ahead included, in both directions."""
    names = expand_range(Grain.DAY, "2026-01-05", "2026-01-16")
    first = "2026-01-01"
    wide = [shift_partition(Grain.DAY, first, n) for n in range(20)]
    marked = {name: FileTimes(None if n in late else 5, 4) for n, name in enumerate(wide)}
    source = replace(PRODUCT.inputs[0], name="raw", lookback=f"{back}d", lookahead=f"{ahead}d", complete=MARKED)
    product = replace(PRODUCT, inputs=(source,))
    facts = InputState("raw", "files", "raw", None, {}, arrival=Arrival(marked))
    found = list_waiting(product, {"raw": facts}, names)
    for name in names:
        n = wide.index(name)
        read = {wide[m] for m in range(n - back, n + ahead + 1) if m in late}
        assert set(found.get(name, {}).get("raw", {})) == read


def test_an_input_that_is_read_whole_has_to_reach_the_end_of_each_partition() -> None:
    """A table of rates that ends on Monday serves no Tuesday."""
    source = Input("rates", table="lake.ref.rates", complete=Completeness(watermark="day"))
    product = replace(PRODUCT, inputs=(source,))
    at_ms = int(end_of(Grain.DAY, TWO).timestamp() * 1000)
    facts = InputState("rates", "table", "lake.ref.rates", None, {}, PartitionSize(1, 1, 1),
                       arrival=Arrival(watermark_ms=at_ms))  # fmt: skip
    assert set(list_waiting(product, {"rates": facts}, DAYS)) == {THREE, FOUR}


def with_arrival(rule: Completeness, arrival: Arrival) -> dict[str, object]:
    """A world whose table input says when it is complete."""
    source = replace(PRODUCT.inputs[1], complete=rule)
    facts = replace(INPUTS["adjustments"], arrival=arrival)
    product = replace(PRODUCT, inputs=(PRODUCT.inputs[0], source, PRODUCT.inputs[2]))
    return {"product": product, "inputs": {**INPUTS, "adjustments": facts}}


def test_a_plan_that_reads_what_waits_is_refused_with_a_plan_that_is_possible() -> None:
    """By name and reason; the partitions to leave out are those that read it."""
    arrival = Arrival(announced=dict.fromkeys(DAYS, 5) | {THREE: 6})
    made = plan(ask(partitions=f"{ONE}..{THREE}"), **with_arrival(ANNOUNCED, arrival))
    (result,) = [one for one in made.verdicts if one.rule == "waiting"]
    assert (result.level, result.final, result.leave_out) == ("refuse", False, frozenset({THREE}))
    assert result.message == ("adjustments is not complete for 1 of 3 partitions: 2026-01-03: 5 rows, 6 were announced")
    assert made.manifest is None


def test_an_override_is_sealed_like_any_other() -> None:
    """Whoever knows better says why."""
    arrival = Arrival(announced={ONE: 6})
    request = ask(partitions=ONE, overrides=(Override("waiting", "the rest never comes"),))
    made = plan(request, **with_arrival(ANNOUNCED, arrival))
    assert made.manifest is not None
    assert [(one.rule, one.why) for one in made.manifest.overrides] == [("waiting", "the rest never comes")]


def test_values_in_the_future_are_named_although_the_others_suffice() -> None:
    """The row is wrong, and somebody should know."""
    at_ms = int(end_of(Grain.DAY, FOUR).timestamp() * 1000)
    late = Arrival(watermark_ms=at_ms, ignored=tuple(f"year 5797{n} in f{n}" for n in range(5)))
    made = plan(ask(partitions=ONE), **with_arrival(Completeness(watermark="at"), late))
    assert levels(made, "waiting") == ["warn"]
    assert message(made, "waiting") == (
        "adjustments: values of at that lie in the future are ignored: year 57970 in f0, year 57971 in f1, "
        "year 57972 in f2 and 2 more"
    )


def test_complete_inputs_say_by_what() -> None:
    """And plans without the key have no such rule."""
    made = plan(ask(partitions=ONE), **with_arrival(ANNOUNCED, Arrival(announced={ONE: 5})))
    assert message(made, "waiting") == "adjustments is complete by the row counts of lake.ops.batches.n"
    assert levels(plan(), "waiting") == []


def test_a_watermark_may_be_an_hour_ahead_of_the_clock() -> None:
    """Clocks differ; later values are wrong."""
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    made = with_latest(Input("raw", table="lake.raw.t", complete=REACHED), now)
    assert made.complete is not None
    assert made.complete.latest_ms == int((now + timedelta(hours=1)).timestamp() * 1000)
    plain = Input("raw", files="raw/*", complete=MARKED)
    assert with_latest(plain, now) == plain


@pytest.mark.parametrize("rule", [MARKED, ANNOUNCED, REACHED])
def test_every_partition_that_waits_has_a_reason(rule: Completeness) -> None:
    """Nothing is known, so everything waits, and says for what."""
    assert all(waiting(rule, Arrival()).values())
    assert set(waiting(rule, Arrival())) == set(DAYS)
