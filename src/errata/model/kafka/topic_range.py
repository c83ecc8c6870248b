"""Offsets of a topic that a run reads, and the facts of the topic that decide about them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from errata.canonical import digest_of
from errata.model.kafka.declaration import KafkaTopic

PRODUCER, BROKER = "CreateTime", "LogAppendTime"
"""Who sets the time of a record."""
ASSUMED_RECORD_BYTES = 400
"""Size of a record in estimates: brokers do not tell it."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition of a topic, half-open."""

    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets; some may have no record."""
        return self.end - self.start


OffsetsPart = Mapping[str, tuple[OffsetRange, ...]]
"""Sealed offsets of an input by its partitions."""


@dataclass(frozen=True, slots=True)
class TopicPin:
    """A topic as the run will read it."""

    declared: KafkaTopic
    topic_id: str
    partitions: int  # number of partitions of the topic
    clock: str  # CreateTime | LogAppendTime
    ranges: tuple[OffsetRange, ...]  # all that the run reads; a part of the manifest has them by partition


@dataclass(frozen=True, slots=True)
class LogState:
    """One partition of a topic as it is now."""

    partition: int
    earliest: int
    end: int  # last stable offset: what a reader of committed records may see
    first_ms: int | None  # time of the first record that is still there


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the broker describes it."""

    topic_id: str
    clock: str
    cleanup: str  # delete | compact | compact,delete
    retention_ms: int  # -1: for ever
    retention_bytes: int  # -1: any size
    logs: tuple[LogState, ...]

    @property
    def is_compacted(self) -> bool:
        """Whether the broker removes older values of a key."""
        return "compact" in self.cleanup


@dataclass(frozen=True, slots=True)
class LostRange:
    """Records that may have been in the range and that the topic no longer has."""

    partition: int
    earliest: int
    from_ms: int
    to_ms: int | None  # None: nothing is left in this partition of the topic


def seal_ranges(
    state: TopicState, starts: Mapping[int, int], ends: Mapping[int, int | None]
) -> tuple[OffsetRange, ...]:
    """Offsets for one partition of an input; ``starts`` and ``ends`` are the broker's answers by partition.

    A record of the producer's clock may be later than those that follow it, so a time gives no upper bound on such a
    topic: its range ends where the log ends. An answer of -1 means that there is no such record yet.
    """
    made = []
    for log in state.logs:
        end = ends.get(log.partition) if state.clock == BROKER else None
        last = log.end if end is None or end < 0 else min(end, log.end)
        start = starts.get(log.partition, -1)
        first = last if start < 0 else min(max(start, log.earliest), last)
        made.append(OffsetRange(log.partition, first, last))
    return tuple(made)


def merge_ranges(ranges: Iterable[Sequence[OffsetRange]]) -> tuple[OffsetRange, ...]:
    """The smallest range of each topic partition that contains all of these; empty ones are left out."""
    found: dict[int, OffsetRange] = {}
    for one in (one for each in ranges for one in each if one.size > 0):
        known = found.get(one.partition, one)
        found[one.partition] = OffsetRange(one.partition, min(known.start, one.start), max(known.end, one.end))
    return tuple(found[number] for number in sorted(found))


def fingerprint_ranges(topic_id: str, ranges: Sequence[OffsetRange]) -> str:
    """Changes when other offsets, or those of another topic, would be read."""
    return digest_of([topic_id, [[one.partition, one.start, one.end] for one in ranges]])


def find_lost_ranges(state: TopicState, from_ms: int, now_ms: int) -> tuple[LostRange, ...]:
    """Topic partitions that no longer have every record from a time on.

    A topic partition that starts at offset 0 has lost nothing. One whose first record is older than the range has all
    of it. An emptied one has lost something unless only time removes records and the range is younger than that.
    """
    lost = []
    for log in state.logs:
        if log.earliest == 0 or (log.first_ms is not None and log.first_ms < from_ms):
            continue
        by_time_alone = state.retention_ms >= 0 and state.retention_bytes < 0
        if log.first_ms is None and by_time_alone and from_ms > now_ms - state.retention_ms:
            continue
        lost.append(LostRange(log.partition, log.earliest, from_ms, log.first_ms))
    return tuple(lost)


def find_changes(pin: TopicPin, ranges: Sequence[OffsetRange], state: TopicState | None) -> tuple[str, ...]:
    """Why a sealed range cannot be read any more; empty if it can."""
    topic = pin.declared.topic
    if state is None:
        return (f"topic {topic} is gone",)
    if state.topic_id != pin.topic_id:
        return (f"topic {topic} was deleted and created again: its id was {pin.topic_id} and is {state.topic_id}",)
    if len(state.logs) < pin.partitions:
        return (f"topic {topic} has {len(state.logs)} partitions; {pin.partitions} were planned",)
    if state.is_compacted and not pin.declared.compacted:
        return (f"topic {topic} is compacted now (cleanup.policy {state.cleanup}), so older values of a key go",)
    logs = {log.partition: log for log in state.logs}
    found = []
    for one in ranges:
        log = logs.get(one.partition)
        if log is None:
            found.append(f"topic {topic} has no partition {one.partition}")
        elif one.size and log.earliest > one.start:
            gone = min(log.earliest, one.end) - one.start
            found.append(
                f"retention removed {gone:,} of {one.size:,} offsets of partition {one.partition}: "
                f"[{one.start}, {min(log.earliest, one.end)}); it begins at {log.earliest} now"
            )
        elif one.size and log.end < one.end:
            found.append(f"partition {one.partition} ends at offset {log.end}; {one.end} was planned: records are lost")
    return tuple(found)


def describe_ranges(ranges: Sequence[OffsetRange], most: int = 4) -> str:
    """Ranges in words.

    >>> describe_ranges((OffsetRange(0, 5, 9), OffsetRange(1, 0, 3)))
    '0 [5, 9), 1 [0, 3)'
    """
    shown = ", ".join(f"{one.partition} [{one.start}, {one.end})" for one in ranges[:most])
    return f"{shown} and {len(ranges) - most} more" if len(ranges) > most else shown
