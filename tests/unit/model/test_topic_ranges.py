"""Offsets of topics: what is sealed, what is lost, and what makes a sealed range unreadable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.model.kafka.declaration import KafkaTopic
from errata.model.kafka.topic_range import (
    BROKER,
    PRODUCER,
    LogState,
    LostRange,
    OffsetRange,
    TopicPin,
    TopicState,
    find_changes,
    find_lost_ranges,
    fingerprint_ranges,
    merge_ranges,
    seal_ranges,
)

DAY = 86_400_000
LOGS = (LogState(0, 0, 100, 10), LogState(1, 40, 90, 5 * DAY))
STATE = TopicState("id", PRODUCER, "delete", 7 * DAY, -1, LOGS)


def test_a_time_bounds_the_end_only_where_the_broker_sets_it() -> None:
    """Times of producers are not in order, so such a range ends where the log ends."""
    starts, ends = {0: 10, 1: 50}, {0: 20, 1: -1}
    assert seal_ranges(STATE, starts, ends) == (OffsetRange(0, 10, 100), OffsetRange(1, 50, 90))
    by_broker = replace(STATE, clock=BROKER)
    assert seal_ranges(by_broker, starts, ends) == (OffsetRange(0, 10, 20), OffsetRange(1, 50, 90))


def test_no_record_from_a_time_on_is_an_empty_range() -> None:
    """A broker answers -1 for a time after its last record."""
    assert seal_ranges(STATE, {0: -1, 1: -1}, {}) == (OffsetRange(0, 100, 100), OffsetRange(1, 90, 90))


def test_ranges_of_several_partitions_are_read_as_one() -> None:
    """One range for each topic partition, around all of them; an empty one adds nothing."""
    one, other = (OffsetRange(0, 5, 9), OffsetRange(1, 3, 3)), (OffsetRange(0, 8, 20), OffsetRange(2, 1, 2))
    assert merge_ranges((one, other)) == (OffsetRange(0, 5, 20), OffsetRange(2, 1, 2))


@pytest.mark.parametrize(
    "from_ms,lost",
    [
        (6 * DAY, ()),  # the first record that is left is older
        (5 * DAY, (LostRange(1, 40, 5 * DAY, 5 * DAY),)),  # others of the same time may have been before it
        (DAY, (LostRange(1, 40, DAY, 5 * DAY),)),
    ],
)
def test_a_log_that_begins_inside_the_range_has_lost_records(from_ms: int, lost: tuple[LostRange, ...]) -> None:
    """Partition 0 begins at offset 0, so nothing was removed from it."""
    assert find_lost_ranges(STATE, from_ms, now_ms=8 * DAY) == lost


def test_an_emptied_log_has_lost_nothing_that_time_could_not_remove() -> None:
    """A quiet partition of a topic is empty after its retention; a younger range misses nothing there."""
    empty = replace(STATE, logs=(LogState(0, 90, 90, None),))
    assert find_lost_ranges(empty, 20 * DAY, now_ms=21 * DAY) == ()
    assert find_lost_ranges(empty, 13 * DAY, now_ms=21 * DAY) == (LostRange(0, 90, 13 * DAY, None),)
    assert find_lost_ranges(replace(empty, retention_bytes=1), 20 * DAY, now_ms=21 * DAY)


PIN = TopicPin(KafkaTopic("c", "t"), "id", 2, PRODUCER, ())


@pytest.mark.parametrize(
    "state,said",
    [
        (None, "topic t is gone"),
        (replace(STATE, topic_id="other"), "was deleted and created again"),
        (replace(STATE, logs=LOGS[:1]), "has 1 partitions; 2 were planned"),
        (replace(STATE, cleanup="compact"), "is compacted now"),
        (
            replace(STATE, logs=(LogState(0, 8, 100, 10), LOGS[1])),
            "retention removed 3 of 15 offsets of partition 0: [5, 8)",
        ),
        (replace(STATE, logs=(LogState(0, 0, 12, 10), LOGS[1])), "partition 0 ends at offset 12; 20 was planned"),
    ],
)
def test_a_topic_that_is_not_as_planned_is_not_read(state: TopicState | None, said: str) -> None:
    """Each change that loses or exchanges records is named."""
    ranges = (OffsetRange(0, 5, 20), OffsetRange(1, 50, 60))
    assert find_changes(PIN, ranges, STATE) == ()
    (told,) = find_changes(PIN, ranges, state)
    assert said in told


def test_a_fingerprint_tells_topics_of_one_name_apart() -> None:
    """The same offsets of a topic that was created again are other records."""
    ranges = (OffsetRange(0, 5, 20),)
    assert fingerprint_ranges("a", ranges) == fingerprint_ranges("a", ranges)
    assert fingerprint_ranges("a", ranges) != fingerprint_ranges("b", ranges)
    assert fingerprint_ranges("a", ranges) != fingerprint_ranges("a", (OffsetRange(0, 5, 21),))
