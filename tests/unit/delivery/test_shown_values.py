"""Whether a consumer shows what it should, and what is told about a difference."""

from __future__ import annotations

import pytest

from errata.delivery.shown_values import Difference, describe_differences, find_differences, name_for_consumer
from errata.model.partition import Grain

DAY = "2026-01-03"


@pytest.mark.parametrize(
    "shown,expected,tolerance,is_same",
    [
        ("10.00", "10", "0", True),
        ("1E1", "10", "0", True),
        ("10.01", "10", "0", False),
        ("10.01", "10", "0.01", True),
        ("10.02", "10", "0.01", False),
        ("105", "100", "5%", True),
        ("95", "100", "5%", True),
        ("105.1", "100", "5%", False),
        ("12345678901234567890.01", "12345678901234567890.02", "0", False),
        (None, "0", "0", True),
        (None, "0.00", "0", True),
        (None, None, "0", True),
        ("0", None, "0", True),
        (None, "1", "0", False),
        ("1", None, "0", False),
        ("", "0", "0", False),
        ("NaN", "10", "100%", False),
        ("Infinity", "10", "100%", False),
        ("EU", "EU", "0", True),
        ("eu", "EU", "0", False),
        ("10", "EU", "100%", False),
    ],
)
def test_values_are_compared_as_numbers_or_exactly(
    shown: str | None, expected: str | None, tolerance: str, is_same: bool
) -> None:
    """Within the tolerance, which never helps a text; nothing is the same as zero."""
    found = find_differences({DAY: shown}, {DAY: expected}, tolerance)
    assert found == (() if is_same else (Difference(DAY, shown, expected),))


def test_only_numbers_are_told() -> None:
    """What a cache holds may be anything, also the name of a person."""
    found = [Difference(DAY, "Ana Arias", "10"), Difference("2026-01-04", None, "10")]
    told = describe_differences("bi", Grain.DAY, found, is_classified=False)
    assert told == f"bi shows something else for {DAY}, expected 10; shows nothing for 2026-01-04, expected 10"
    assert describe_differences("bi", Grain.DAY, found, is_classified=True) == f"bi differs for {DAY} … 2026-01-04"


def test_many_differences_are_counted() -> None:
    """Three are enough to start with."""
    found = [Difference(f"2026-01-{n:02}", "1", "2") for n in range(1, 31)]
    told = describe_differences("bi", Grain.DAY, found, is_classified=False)
    assert (told.count("expected 2"), told.endswith("; and 27 more")) == (3, True)


def test_a_long_number_is_cut() -> None:
    """Nobody needs all its digits."""
    told = describe_differences("bi", Grain.DAY, [Difference(DAY, "1" * 500, "2")], is_classified=False)
    assert len(told) < 150


def test_consumers_know_values_without_quotes() -> None:
    """Only Errata quotes values that would read as null."""
    names = {text: name_for_consumer(Grain.VALUE, text) for text in ("EU", "null", '"null"', '"\\"x"', '""')}
    assert names == {"EU": "EU", "null": "null", '"null"': "null", '"\\"x"': '"x', '""': ""}
