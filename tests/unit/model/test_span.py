"""Spans never rule out a partition that a file holds rows of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model.partition import NULL, Grain, from_ordinal, value_to_text
from errata.model.span import Span, unit_transform

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=6)


@given(st.lists(st.integers(-40_000, 40_000), min_size=1), st.sampled_from([Grain.DAY, Grain.MONTH, Grain.HOUR]))
def test_every_partition_of_time_between_the_ends_may_be_held(numbers: list[int], grain: Grain) -> None:
    """And one value is the only one."""
    numbers = [number // 40 for number in numbers]
    span = Span(grain, (min(numbers), max(numbers)), has_null=False)
    names = [from_ordinal(grain, number) for number in numbers]
    assert span.filter_possible(names) == tuple(names)
    assert span.only == (names[0] if len(set(names)) == 1 else None)
    assert not span.may_hold(from_ordinal(grain, max(numbers) + 1))
    assert not span.may_hold(NULL)


@given(st.lists(TEXT, min_size=1))
def test_text_is_compared_by_its_bytes(values: list[str]) -> None:
    """As the bounds in table metadata are."""
    coded = sorted(value.encode() for value in values)
    span = Span(Grain.VALUE, (coded[0], coded[-1]))
    assert all(span.may_hold(value_to_text(value)) for value in values)
    assert span.only is None  # rows without a value cannot be ruled out
    assert Span(Grain.VALUE, (coded[0], coded[0]), has_null=False).only == value_to_text(coded[0].decode())


def test_without_bounds_anything_may_be_held() -> None:
    """Metrics may be switched off."""
    assert Span(Grain.DAY).filter_possible(["2026-01-01", NULL]) == ("2026-01-01", NULL)
    assert Span(Grain.DAY).only is None
    assert Span(Grain.VALUE, (3, 5), has_null=True).filter_possible(["2", "3", "5", "6", NULL]) == ("3", "5", NULL)


@pytest.mark.parametrize(
    "kind,grain,transform",
    [
        ("date", Grain.DAY, "identity"), ("date", Grain.MONTH, "month"), ("date", Grain.HOUR, None),
        ("date", Grain.VALUE, None), ("timestamptz", Grain.HOUR, "hour"), ("timestamp", Grain.YEAR, "year"),
        ("timestamp", Grain.VALUE, None), ("string", Grain.DAY, "identity"), ("string", Grain.VALUE, "identity"),
        ("int", Grain.VALUE, "identity"), ("long", Grain.DAY, None), ("double", Grain.VALUE, None),
    ],
)  # fmt: skip
def test_a_grain_is_told_from_values_where_their_type_has_it(kind: str, grain: Grain, transform: str | None) -> None:
    """What a product may declare, whatever the table is partitioned by."""
    assert unit_transform(kind, grain) == transform
