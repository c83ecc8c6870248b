from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.model.calendar_math import first_second, format_stored_ordinal, is_unnameable, ordinal_at
from errata.model.graph.read_rule import ReadRule, Shift
from errata.model.partition import (
    Grain,
    end_of,
    from_ordinal,
    is_nameable,
    next_start,
    parse_partition,
    to_ordinal,
)

TIMES = [Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR]
LAST = {Grain.HOUR: "9999-12-31T23", Grain.DAY: "9999-12-31", Grain.MONTH: "9999-12", Grain.YEAR: "9999"}
FIRST = {Grain.HOUR: "0001-01-01T00", Grain.DAY: "0001-01-01", Grain.MONTH: "0001-01", Grain.YEAR: "0001"}


@given(st.sampled_from(TIMES), st.integers(-3_000_000, 30_000_000))
def test_every_second_of_a_partition_has_its_ordinal(grain: Grain, number: int):
    """Also before the year 1 and after 9999, where a datetime cannot go."""
    assert ordinal_at(grain, first_second(grain, number)) == number
    assert ordinal_at(grain, first_second(grain, number + 1) - 1) == number


@given(st.sampled_from(TIMES), st.integers(-3_000_000, 30_000_000))
def test_what_a_table_holds_has_a_text_that_only_dates_can_be_chosen_by(grain: Grain, number: int):
    """Inside the years 1 to 9999 it is the partition's own text; outside it is told and refused as a choice."""
    text = format_stored_ordinal(grain, number)
    assert is_unnameable(grain, text) is not is_nameable(grain, number)
    if is_nameable(grain, number):
        assert text == from_ordinal(grain, number)
    else:
        with pytest.raises(UsageError, match="was refused"):
            parse_partition(grain, text)


@pytest.mark.parametrize("grain", TIMES)
def test_the_first_and_the_last_partition_have_neighbours_that_are_told(grain: Grain):
    """One step before 0001 is the year 0, one after 9999 is +10000, and nothing of it can be looked back to."""
    last, first = to_ordinal(grain, LAST[grain]), to_ordinal(grain, FIRST[grain])
    assert format_stored_ordinal(grain, last + 1).startswith("+10000")
    assert format_stored_ordinal(grain, first - 1).startswith("0000")
    assert next_start(grain, LAST[grain]) == "10000-01-01 00:00:00"
    assert end_of(grain, LAST[grain]).isoformat() == "9999-12-31T23:59:59.999999+00:00"
    two = Shift.of_steps(2, grain)
    assert ReadRule(grain, grain, ahead=two).list_reads([LAST[grain]]) == (LAST[grain],)
    assert ReadRule(grain, grain, back=two).list_reads([FIRST[grain]]) == (FIRST[grain],)
