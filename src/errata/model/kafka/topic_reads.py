"""What a partition reads of a topic then and now: whether records came since that may belong to it. Pure.

Records of a topic never change, so only others make a difference. What retention removed was read when it was there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from errata.model.kafka.declaration import KafkaTopic
from errata.model.kafka.topic_range import BROKER, OffsetRange, OffsetsPart, TopicPin, TopicState
from errata.text.numbers import format_duration, plural


@dataclass(frozen=True, slots=True)
class TopicReads:
    """Offsets of a topic by partition of the input, at one time."""

    topic_id: str
    clock: str
    lateness_seconds: int
    offsets: OffsetsPart
    earliest: Mapping[int, int] = field(default_factory=dict)  # by topic partition: the first offset that is there

    @classmethod
    def of_pin(cls, pin: TopicPin, offsets: OffsetsPart) -> Self:
        """What a plan sealed."""
        return cls(pin.topic_id, pin.clock, pin.declared.lateness_seconds, offsets)

    @classmethod
    def of_state(cls, state: TopicState, declared: KafkaTopic, offsets: OffsetsPart | None) -> Self:
        """What would be sealed now."""
        earliest = {log.partition: log.earliest for log in state.logs}
        return cls(state.topic_id, state.clock, declared.lateness_seconds, offsets or {}, earliest)

    def list_ranges(self, partition: str) -> dict[int, OffsetRange]:
        """What one partition of the input reads, by topic partition."""
        return {one.partition: one for one in self.offsets.get(partition, ()) if one.size > 0}


def has_other_records(then: TopicReads, now: TopicReads, partition: str) -> bool:
    """Whether a partition reads other records now than then, apart from those that retention removed."""
    if then.topic_id != now.topic_id:
        return True
    was, reads = then.list_ranges(partition), now.list_ranges(partition)
    return any(_is_other(was.get(number), reads.get(number), now.earliest.get(number, 0)) for number in {*was, *reads})


def _is_other(then: OffsetRange | None, now: OffsetRange | None, earliest: int) -> bool:
    if then is None:
        return True
    is_cut = earliest > then.start
    if now is None:
        return not is_cut
    return now.end != then.end or now.start < then.start or (now.start > then.start and not is_cut)


def describe_other_records(then: TopicReads, now: TopicReads, partition: str) -> str:
    """The difference in words that follow the name of the partition."""
    if then.topic_id != now.topic_id:
        return "changed: the topic was deleted and created again"
    more = count_new_records(then, now, partition)
    if not more:
        return "is read from other offsets now"
    if now.clock == BROKER:
        where = "in its time" + (f" or within {_format_lateness(now)} of it" if now.lateness_seconds else "")
    else:
        where = "of any time, because producers set the times"
    came = f"{plural(more, 'record')} came since {where}"
    return f"may have changed: {came}, and only a run reads which partition they belong to"


def count_new_records(then: TopicReads, now: TopicReads, partition: str) -> int:
    """Records that a partition would read now and did not read then."""
    was, reads = then.list_ranges(partition), now.list_ranges(partition)
    return sum(_count_more(was.get(number), one) for number, one in reads.items())


def _count_more(then: OffsetRange | None, now: OffsetRange) -> int:
    if then is None:
        return now.size
    return max(0, now.end - max(then.end, now.start)) + max(0, min(then.start, now.end) - now.start)


def describe_margin(now: TopicReads) -> str:
    """What is known of a partition that has no record of its own time."""
    late = _format_lateness(now)
    if now.clock == BROKER:
        return f"has no record of that time, but some within its lateness of {late}, which may belong to it"
    since = f"{late} before it" if now.lateness_seconds else "its start"
    return f"has no record of that time, but others since {since}, and producers set the times of records"


def _format_lateness(reads: TopicReads) -> str:
    return format_duration(reads.lateness_seconds)
