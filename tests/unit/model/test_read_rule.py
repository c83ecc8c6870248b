"""Which partitions of an input a partition is computed from, and which partitions a changed one touches."""

from __future__ import annotations

import calendar
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from errata.canonical import canonical_bytes, from_plain, to_plain
from errata.model.graph.read_rule import ReadRule, Shift, Window, find_window, is_aligned, rule_of_input, rule_of_pin
from errata.model.manifest import InputPin
from errata.model.partition import (
    NULL,
    Grain,
    end_of,
    expand_range,
    from_ordinal,
    shift_partition,
    sort_oldest_first,
    start_of,
    to_ordinal,
)
from errata.model.product import Input

TIMES = (Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR)
NEAR_2026 = {grain: to_ordinal(grain, "2026-02-27T22"[: grain.width]) for grain in TIMES}
SPREAD = {Grain.HOUR: 24 * 45, Grain.DAY: 800, Grain.MONTH: 40, Grain.YEAR: 5}
FEW = 40  # an example may be a year of hours
DURATIONS = ("0d", "1h", "5h", "1d", "2d", "30d", "1w", "1mo", "2mo", "13mo", "1y")


@st.composite
def rules(draw: st.DrawFn) -> ReadRule:
    """Any pair of grains with look-back and look-ahead that a product file can declare."""
    grain, input_grain = draw(st.sampled_from(TIMES)), draw(st.sampled_from(TIMES))
    fits = [text for text in DURATIONS if is_aligned(text, max(grain, input_grain, key=lambda one: one.width))]
    back, ahead = draw(st.sampled_from(fits)), draw(st.sampled_from(fits))
    is_own = grain is input_grain and draw(st.booleans()) and back != "0d"
    return ReadRule(grain, input_grain, Shift.parse(back), Shift.parse("0d" if is_own else ahead), is_own)


def near(grain: Grain) -> st.SearchStrategy[str]:
    """Partitions around the end of February 2026, which is where months are short."""
    return st.integers(-SPREAD[grain], SPREAD[grain]).map(lambda n: from_ordinal(grain, NEAR_2026[grain] + n))


def move(moment: datetime, shift: Shift, sign: int) -> datetime:
    """The shift by the calendar of the standard library; an oracle that shares no code with the rule."""
    moved = moment + sign * timedelta(hours=shift.hours)
    year, month = divmod(moved.year * 12 + moved.month - 1 + sign * shift.months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moved.replace(year=year, month=month + 1, day=min(moved.day, last))


def is_read(rule: ReadRule, product: str, other: str, grain: Grain) -> bool:
    """Whether two partitions have time in common once the one is widened, by instants."""
    start, end = move(start_of(rule.grain, product), rule.back, -1), end_of(rule.grain, product)
    end = start_of(rule.grain, product) if rule.is_own else move(end, rule.ahead, 1)
    # only whole partitions of the input are read
    first, last = (
        from_ordinal(rule.input_grain, to_ordinal(rule.input_grain, cut(rule.input_grain, at)))
        for at in (start, end - timedelta(microseconds=1))
    )
    return start_of(grain, other) < end_of(rule.input_grain, last) and start_of(rule.input_grain, first) < end_of(
        grain, other
    )


def cut(grain: Grain, moment: datetime) -> str:
    """The partition that an instant is in."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H")[: grain.width]


@settings(max_examples=FEW)
@given(rules(), st.data())
@example(ReadRule(Grain.DAY, Grain.DAY, back=Shift(months=1)), None)
def test_an_input_partition_is_read_exactly_by_the_partitions_it_touches(rule: ReadRule, data: st.DataObject | None):
    """q is among the reads of p if and only if p is among those that q touches, for every pair of grains."""
    changed = data.draw(near(rule.input_grain)) if data else "2026-02-28"
    touched = rule.list_touched([changed])
    around = {data.draw(near(rule.grain))} if data else {"2026-03-31", "2026-03-28", "2026-04-01"}
    # an interval has no gaps, so that its ends and what is beside them say everything
    for name in (*touched[:1], *touched[-1:]):
        around |= {name, *(shift_partition(rule.grain, name, step) for step in (-1, 1))}
    for name in around:
        assert (changed in rule.list_reads([name])) == (name in touched), (name, changed)


@settings(max_examples=FEW)
@given(rules(), st.data())
def test_reads_are_the_widened_interval_by_the_calendar(rule: ReadRule, data: st.DataObject):
    """What is read agrees with the calendar of the standard library, month ends included."""
    product, other = data.draw(near(rule.grain)), data.draw(near(rule.input_grain))
    assert (other in rule.list_reads([product])) == is_read(rule, product, other, rule.input_grain)


@settings(max_examples=FEW)
@given(rules(), st.sampled_from(TIMES), st.data())
def test_a_change_of_another_grain_touches_what_reads_a_part_of_it(rule: ReadRule, grain: Grain, data: st.DataObject):
    """The changed partitions may be those of the product that makes the input, whatever its grain."""
    changed, product = data.draw(near(grain)), data.draw(near(rule.grain))
    assert (product in rule.list_touched([changed], grain)) == is_read(rule, product, changed, grain)


@settings(max_examples=FEW)
@given(rules(), st.data())
def test_many_changes_touch_what_each_of_them_touches(rule: ReadRule, data: st.DataObject):
    """Ranges and gaps give the same partitions as one change at a time."""
    changed = data.draw(st.lists(near(rule.input_grain), max_size=3))
    each = {name for one in changed for name in rule.list_touched([one])}
    assert rule.list_touched(changed) == sort_oldest_first(rule.grain, each)


@given(st.sampled_from(TIMES), st.integers(0, 5), st.integers(0, 5), st.data())
def test_look_back_in_steps_adds_exactly_the_neighbours(grain: Grain, back: int, ahead: int, data: st.DataObject):
    """Look-back and look-ahead reach every step and no further."""
    found = data.draw(st.lists(near(grain), max_size=5))
    wanted = {shift_partition(grain, text, step) for text in found for step in range(-back, ahead + 1)}
    rule = ReadRule(grain, grain, Shift.of_steps(back, grain), Shift.of_steps(ahead, grain))
    assert rule.list_reads(found) == sort_oldest_first(grain, wanted)


def test_a_look_back_of_a_month_ends_with_the_month():
    """31 March less a month is 28 February, and 28 February touches every day until then."""
    rule = ReadRule(Grain.DAY, Grain.DAY, back=Shift(months=1))
    assert rule.list_reads(["2026-03-31"]) == expand_range(Grain.DAY, "2026-02-28", "2026-04-01")
    assert rule.list_touched(["2026-02-28"]) == expand_range(Grain.DAY, "2026-02-28", "2026-04-01")
    assert rule.list_touched(["2026-02-27"]) == expand_range(Grain.DAY, "2026-02-27", "2026-03-28")


@pytest.mark.parametrize("rule", [
    ReadRule(Grain.HOUR, Grain.HOUR, back=Shift(months=1)),
    ReadRule(Grain.HOUR, Grain.DAY, ahead=Shift(months=1)),
])  # fmt: skip
def test_hours_whose_look_back_by_month_goes_back_and_forth_are_all_found(rule: ReadRule):
    """29 March 23:00 less a month is later than 30 March 00:00 less a month, so that readers may have gaps."""
    hours = expand_range(Grain.HOUR, "2026-01-27T00", "2026-04-02T00")
    reads = {hour: set(rule.list_reads([hour])) for hour in hours}
    around = expand_range(rule.input_grain, "2026-02-26T00"[: rule.input_grain.width], "2026-03-02T00"[
        : rule.input_grain.width])  # fmt: skip
    for changed in around:
        touched = set(rule.list_touched([changed]))
        assert {hour for hour in hours if changed in reads[hour]} == touched & set(hours)


def test_a_day_reads_its_hours_and_a_month_its_days():
    """Hour to day to month, with look-back in the unit of the input."""
    hours = ReadRule(Grain.DAY, Grain.HOUR, back=Shift(hours=2))
    read = hours.list_reads(["2026-03-01"])
    assert (read[0], read[-1], len(read)) == ("2026-02-28T22", "2026-03-01T23", 26)
    assert hours.list_touched(["2026-02-28T21", "2026-02-28T22"]) == ("2026-02-28", "2026-03-01")
    days = ReadRule(Grain.MONTH, Grain.DAY, back=Shift(hours=7 * 24))
    assert days.list_reads(["2026-03"]) == expand_range(Grain.DAY, "2026-02-22", "2026-04-01")
    assert days.list_touched(["2026-02-22"]) == ("2026-02", "2026-03")


def test_a_day_reads_the_month_that_it_is_in():
    """A wider partition of the input serves every partition that lies in it."""
    rule = ReadRule(Grain.DAY, Grain.MONTH)
    assert rule.list_reads(["2026-02-28", "2026-03-01"]) == ("2026-02", "2026-03")
    assert rule.list_touched(["2026-02"]) == expand_range(Grain.DAY, "2026-02-01", "2026-03-01")
    assert rule.is_wider


@pytest.mark.parametrize("input_grain", TIMES)
def test_rows_without_a_value_are_read_for_rows_without_a_value(input_grain: Grain):
    """NULL reads NULL and touches NULL, whatever the grains; own output has nothing before it."""
    rule = ReadRule(Grain.DAY, input_grain, back=Shift(months=1))
    assert rule.list_reads([NULL]) == (NULL,) == rule.list_touched([NULL])
    own = ReadRule(Grain.DAY, Grain.DAY, back=Shift(hours=24), is_own=True)
    assert own.list_reads([NULL]) == () == own.list_touched([NULL])


def test_partitions_by_value_read_their_own_value():
    """Values have no order, so nothing lies beside them."""
    rule = ReadRule(Grain.VALUE, Grain.VALUE)
    assert rule.list_reads(["EU", NULL]) == (NULL, "EU") == rule.list_touched(["EU", NULL])


def test_an_input_that_is_read_whole_has_no_partitions_to_read():
    """Reference data is read as it is."""
    assert rule_of_input(Input("r", table="l.n.t"), Grain.DAY).list_reads(["2026-01-10"]) == ()


@pytest.mark.parametrize(
    "source",
    [
        Input("e", table="l.n.t", partition="d", lookback="2d", lookahead="1d"),
        Input("e", table="l.n.t", partition="d", lookback="1mo"),
        Input("e", table="l.n.t", partition="d", grain=Grain.HOUR, lookback="6h", lookahead="1d"),
        Input("e", table="l.n.t", partition="d", grain=Grain.MONTH),
        Input("e", table="l.n.t", partition="d", lookback="2d", own=True),
        Input("e", table="l.n.t"),
    ],
)
def test_a_manifest_reads_what_the_product_file_says(source: Input):
    """The rule of a sealed pin is the rule of the input that it was made from."""
    steps = {"2d": 2, "1d": 1}
    window = find_window(source, Grain.DAY)
    back, ahead = (0, 0) if window else (steps.get(source.lookback, 0), steps.get(source.lookahead, 0))
    pin = InputPin(
        source.name, "table", "l.n.t", source.partition, "date", back, ahead, (), {}, 0, 0, 0, own=source.own,
        window=window,
    )  # fmt: skip
    assert rule_of_pin(pin, Grain.DAY) == rule_of_input(source, Grain.DAY)


def test_a_pin_without_a_window_is_sealed_as_before_there_were_windows():
    """Plans that do not use the key keep their bytes and digests, and old manifests are read."""
    pin = InputPin("e", "table", "l.n.t", "d", "date", 0, 0, (), {}, 0, 0, 0)
    assert b"window" not in canonical_bytes(pin)
    assert from_plain(InputPin, to_plain(pin)) == pin
    wide = replace(pin, window=Window(Grain.HOUR, "6h"))
    assert to_plain(wide)["window"] == {"grain": "hour", "lookback": "6h", "lookahead": "0d"}
    assert from_plain(InputPin, to_plain(wide)) == wide
