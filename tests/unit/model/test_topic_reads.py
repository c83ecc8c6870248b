"""Whether a partition reads other records of a topic than it did, on offsets alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.kafka.topic_range import BROKER, PRODUCER, OffsetRange
from errata.model.kafka.topic_reads import TopicReads, describe_margin, describe_other_records, has_other_records

DAY = "2026-01-02"
THEN = TopicReads("id", BROKER, 7200, {DAY: (OffsetRange(0, 10, 20), OffsetRange(1, 5, 9))})


def _now(*ranges: OffsetRange, earliest: dict[int, int] | None = None, clock: str = BROKER) -> TopicReads:
    return TopicReads("id", clock, 7200, {DAY: ranges} if ranges else {}, earliest or {})


@pytest.mark.parametrize(
    "now, is_other",
    [
        (_now(OffsetRange(0, 10, 20), OffsetRange(1, 5, 9)), False),
        (_now(OffsetRange(0, 10, 20), OffsetRange(1, 5, 10)), True),
        # retention took some records of one topic partition, or all of both
        (_now(OffsetRange(0, 15, 20), OffsetRange(1, 5, 9), earliest={0: 15}), False),
        (_now(earliest={0: 30, 1: 30}), False),
        (_now(OffsetRange(0, 15, 21), OffsetRange(1, 5, 9), earliest={0: 15}), True),
        # a longer or a shorter lateness
        (_now(OffsetRange(0, 8, 20), OffsetRange(1, 5, 9)), True),
        (_now(OffsetRange(0, 11, 20), OffsetRange(1, 5, 9)), True),
        # a topic partition that is new
        (_now(OffsetRange(0, 10, 20), OffsetRange(1, 5, 9), OffsetRange(2, 0, 1)), True),
    ],
)
def test_only_records_that_came_since_make_a_difference(now: TopicReads, is_other: bool) -> None:
    """Records never change, and those that retention removed were read when they were there."""
    assert has_other_records(THEN, now, DAY) is is_other


def test_a_topic_that_was_created_again_has_other_records() -> None:
    """Its offsets say nothing about those of the topic before."""
    again = replace(THEN, topic_id="other")
    assert has_other_records(THEN, again, DAY)
    assert "deleted and created again" in describe_other_records(THEN, again, DAY)


def test_the_words_say_may_and_count_the_records() -> None:
    """Offsets do not tell to which partition a record belongs."""
    ranges = (OffsetRange(0, 10, 22), OffsetRange(1, 5, 10))
    told = describe_other_records(THEN, _now(*ranges), DAY)
    assert told.startswith(
        "may have changed: 3 records came since in its time or within 2 h 00 m of it, and only a run"
    )
    told = describe_other_records(THEN, _now(*ranges, clock=PRODUCER), DAY)
    assert told.startswith("may have changed: 3 records came since of any time, because producers set the times")
    assert describe_margin(THEN) == (
        "has no record of that time, but some within its lateness of 2 h 00 m, which may belong to it"
    )
