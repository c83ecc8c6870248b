from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.model.partition import (
    NULL,
    Grain,
    expand_range,
    fold_ranges,
    format_partition_list,
    format_ranges,
    from_ordinal,
    parse_list,
    parse_partition,
    shift_partition,
    sort_newest_first,
    sort_oldest_first,
    start_of,
    to_ordinal,
    value_from_text,
    value_to_text,
)

TIMES = [Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR]
SPAN = {Grain.HOUR: 8_000_00, Grain.DAY: 40_000, Grain.MONTH: 1_500, Grain.YEAR: 500}
grains = st.sampled_from(TIMES)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Grain, list[str]]:
    grain = draw(grains)
    start = draw(st.integers(-SPAN[grain], SPAN[grain]))
    steps = draw(st.lists(st.integers(0, 40), min_size=1, max_size=30))
    return grain, [from_ordinal(grain, start + step) for step in steps]


@given(grains, st.data())
def test_ordinals_and_texts_are_inverses(grain: Grain, data: st.DataObject):
    """Every ordinal has one canonical text, which parses to itself and back to the ordinal."""
    number = data.draw(st.integers(-SPAN[grain], SPAN[grain]))
    text = from_ordinal(grain, number)
    assert parse_partition(grain, text) == text
    assert to_ordinal(grain, text) == number
    assert shift_partition(grain, text, 1) == from_ordinal(grain, number + 1)


@given(partitions())
def test_a_list_written_for_the_command_line_reads_back(case: tuple[Grain, list[str]]):
    """What a hint prints for --partitions names the same partitions when it is typed."""
    grain, found = case
    assert parse_list(grain, format_partition_list(grain, found)) == sort_oldest_first(grain, set(found))


@given(partitions())
def test_folding_loses_and_invents_nothing(case: tuple[Grain, list[str]]):
    """Expanding the folded runs gives the partitions again, and neighbouring runs do not touch."""
    grain, found = case
    runs = fold_ranges(grain, set(found))
    unfolded = [text for first, last in runs for text in expand_range(grain, first, shift_partition(grain, last, 1))]
    assert tuple(unfolded) == sort_oldest_first(grain, set(found))
    assert all(shift_partition(grain, a[1], 1) < b[0] for a, b in pairwise(runs))


@given(partitions())
def test_text_order_is_time_order(case: tuple[Grain, list[str]]):
    """Sorting texts sorts instants; newest first is the reverse."""
    grain, found = case
    ordered = sort_oldest_first(grain, found)
    assert [start_of(grain, text) for text in ordered] == sorted(start_of(grain, text) for text in found)
    assert sort_newest_first(grain, found) == ordered[::-1]


@given(st.one_of(st.none(), st.text()))
def test_values_survive_their_text(value: str | None):
    """Any value, also one that looks like NULL or is quoted, is read back as itself."""
    assert value_from_text(value_to_text(value)) == value


def test_null_is_a_partition_of_every_grain():
    """NULL sorts first and folds alone."""
    assert parse_partition(Grain.DAY, NULL) == NULL
    assert sort_oldest_first(Grain.DAY, ["2026-01-01", NULL]) == (NULL, "2026-01-01")
    assert format_ranges(Grain.DAY, ["2026-01-02", NULL, "2026-01-01"]) == "null, 2026-01-01 … 2026-01-02"


@pytest.mark.parametrize(
    "grain,text",
    [
        (Grain.DAY, "2026-02-30"),
        (Grain.DAY, "2026-01"),
        (Grain.HOUR, "2026-01-03"),
        (Grain.MONTH, "2026-13"),
        (Grain.YEAR, "26"),
        (Grain.VALUE, ""),
    ],
)
def test_what_is_no_partition_is_refused(grain: Grain, text: str):
    """A text of another grain or an impossible date is a usage error."""
    with pytest.raises(UsageError):
        parse_partition(grain, text)


@pytest.mark.parametrize(
    "grain, text", [("day", "2026-09-31"), ("day", "2026-02-29"), ("month", "2026-13"), ("hour", "2026-01-03T24")]
)
def test_a_time_that_does_not_exist_is_not_called_misspelt(grain: str, text: str) -> None:
    """The form is right, so an example of it would not help."""
    with pytest.raises(UsageError, match=f"^partition '{text}' was refused; this {grain} does not exist$"):
        parse_partition(Grain(grain), text)


def test_ranges_are_half_open_and_never_empty():
    """The end is left out; an empty or backward range, or one by value, is refused."""
    assert expand_range(Grain.DAY, "2026-01-30", "2026-02-01") == ("2026-01-30", "2026-01-31")
    for start, end in [("2026-01-02", "2026-01-02"), ("2026-01-02", "2026-01-01")]:
        with pytest.raises(UsageError, match="half-open"):
            expand_range(Grain.DAY, start, end)
    with pytest.raises(UsageError, match="no order"):
        expand_range(Grain.VALUE, "a", "b")
