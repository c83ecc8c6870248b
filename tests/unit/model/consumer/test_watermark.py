"""Where an incremental job has to start again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.errors import UsageError
from errata.model.consumer.watermark import WatermarkType, choose_earlier, find_start_before, has_read, is_earlier
from errata.model.partition import Grain, from_ordinal, shift_partition

GRAINS = [Grain.HOUR, Grain.DAY, Grain.MONTH, Grain.YEAR]
ORDINALS = {Grain.HOUR: 490_000, Grain.DAY: 20_000, Grain.MONTH: 670, Grain.YEAR: 55}


@given(st.sampled_from(GRAINS), st.sampled_from(list(WatermarkType)), st.sets(st.integers(-400, 400), min_size=1))
def test_a_job_reads_the_partitions_and_nothing_before_them(grain: Grain, kind: WatermarkType, steps: set[int]) -> None:
    """With the watermark before the earliest it has read none of them, and everything that is earlier."""
    if grain is Grain.YEAR:
        steps = {step % 50 for step in steps}
    names = [from_ordinal(grain, ORDINALS[grain] + step) for step in steps]
    start = find_start_before(grain, names, kind)
    earliest = min(names)
    assert not has_read(grain, kind, start, [earliest])
    before = shift_partition(grain, earliest, -1)
    # a date cannot tell hours apart: the whole day is read again
    if not (grain is Grain.HOUR and kind is WatermarkType.DATE):
        assert has_read(grain, kind, start, [before])


def test_a_watermark_never_moves_forward() -> None:
    """Also where the texts sort differently than the times."""
    kind = WatermarkType.TIMESTAMPTZ
    found, start = "2026-01-03 01:00:00+02:00", "2026-01-03 00:00:00+00:00"
    assert is_earlier(Grain.DAY, kind, found, start)
    assert choose_earlier(Grain.DAY, kind, found, start) == found
    assert choose_earlier(Grain.DAY, kind, None, start) is None


def test_what_has_no_place_in_time_cannot_be_read_again() -> None:
    """Values, and rows without one; beside others they are left out."""
    with pytest.raises(UsageError, match="partitions by value have no order"):
        find_start_before(Grain.VALUE, ["EU"], WatermarkType.TEXT)
    with pytest.raises(UsageError, match="rows without a value have no place in time"):
        find_start_before(Grain.DAY, ["null"], WatermarkType.DATE)
    assert find_start_before(Grain.DAY, ["null", "2026-01-03"], WatermarkType.DATE) == "2026-01-02"
    assert has_read(Grain.DAY, WatermarkType.DATE, None, ["null"])
    assert not has_read(Grain.DAY, WatermarkType.DATE, None, ["2026-01-03"])
