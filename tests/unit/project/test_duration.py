from __future__ import annotations

from datetime import UTC, datetime

import pytest

from errata.errors import UsageError
from errata.model.duration import count_steps, subtract_duration, to_seconds
from errata.model.partition import Grain


@pytest.mark.parametrize(
    "text,grain,count",
    [
        ("0d", Grain.VALUE, 0),
        ("0h", Grain.YEAR, 0),
        ("36h", Grain.HOUR, 36),
        ("1w", Grain.HOUR, 168),
        ("48h", Grain.DAY, 2),
        ("2w", Grain.DAY, 14),
        ("1y", Grain.MONTH, 12),
        ("24mo", Grain.YEAR, 2),
    ],
)
def test_a_duration_is_a_number_of_partitions(text: str, grain: Grain, count: int):
    """Lengths are counted in the grain of the product."""
    assert count_steps(text, grain) == count


@pytest.mark.parametrize(
    "text,grain",
    [
        ("12h", Grain.DAY),
        ("1mo", Grain.DAY),
        ("30d", Grain.MONTH),
        ("6mo", Grain.YEAR),
        ("1d", Grain.VALUE),
        ("1m", Grain.MONTH),
        ("5min", Grain.HOUR),
        ("3600s", Grain.HOUR),
        ("-1d", Grain.DAY),
        ("1.5d", Grain.DAY),
        ("1D", Grain.DAY),
        ("", Grain.DAY),
        ("٣d", Grain.DAY),
    ],
)
def test_what_is_not_whole_partitions_is_refused(text: str, grain: Grain):
    """A month is not thirty days, and half a day is no day."""
    with pytest.raises(UsageError):
        count_steps(text, grain)


def test_months_are_calendar_months():
    """Going back a month keeps the day where there is one."""
    end_of_march = datetime(2026, 3, 31, 5, tzinfo=UTC)
    assert subtract_duration("1mo", end_of_march) == datetime(2026, 2, 28, 5, tzinfo=UTC)
    assert subtract_duration("1y", datetime(2024, 2, 29, tzinfo=UTC)) == datetime(2023, 2, 28, tzinfo=UTC)
    assert subtract_duration("36h", end_of_march) == datetime(2026, 3, 29, 17, tzinfo=UTC)


@pytest.mark.parametrize("text,length", [("0s", 0), ("90s", 90), ("5min", 300), ("8h", 28_800), ("2d", 172_800)])
def test_a_length_is_a_number_of_seconds(text: str, length: int):
    """Waits have a grammar of their own."""
    assert to_seconds(text) == length


@pytest.mark.parametrize("text", ["5m", "5", "1mo", "1y", "1w", "-5s", "1.5h", "5 min", "٣s", ""])
def test_a_length_without_a_clear_unit_is_refused(text: str):
    """`5m` would be minutes to one reader and months to the next."""
    with pytest.raises(UsageError, match="s, min, h or d"):
        to_seconds(text)
