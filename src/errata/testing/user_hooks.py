"""The hooks of a project for tests: an alarm and channels that record, signals and erased subjects that a test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from errata.errors import EngineError
from errata.model.consumer.declaration import Channel
from errata.model.consumer.message import Message
from errata.model.product.throttle import Signal
from errata.testing.clusters.memory_cluster import MemoryCluster
from errata.testing.consumers import MemoryConsumers, MemoryWatermarks
from errata.testing.copies import MemoryCopies
from errata.testing.erasure import ErasedInMemory, FakeSuppressions
from errata.testing.topics.memory_topics import MemoryTopics


@dataclass
class Alarm:
    """An alarm that records what it was sent; ``broken`` is the error of one that does not work."""

    is_there: bool = True
    broken: str = ""
    sent: list[Mapping[str, Any]] = field(default_factory=list)

    def send_alarm(self, told: Mapping[str, Any]) -> None:
        """See the port."""
        if self.broken:
            raise EngineError(self.broken)
        self.sent.append(told)


@dataclass
class Signals:
    """Health signals with the values that a test gives them, by name; others are 0."""

    values: dict[str, Decimal] = field(default_factory=dict)

    def read(self, signal: Signal) -> Decimal:
        """See the port."""
        return self.values.get(signal.name, Decimal(0))


@dataclass
class MemoryChannels:
    """Messages by channel, in the order in which they came; a channel in ``down`` takes none."""

    sent: dict[str, list[Message]] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)

    def send(self, channel: Channel, message: Message, at: datetime) -> Mapping[str, Any]:
        """See the port."""
        if channel.name in self.down:
            raise EngineError(f"channel {channel.name}: it is down")
        self.sent.setdefault(channel.name, []).append(message)
        return {"at": at.isoformat()}

    def list_once(self, channel: str) -> list[Message]:
        """What a receiver sees that keeps ids, and drops messages with a lower sequence than it has seen."""
        newest: dict[str, int] = {}
        found = []
        for one in self.sent.get(channel, []):
            if one.sequence > newest.get(one.consumer, -1):
                newest[one.consumer] = one.sequence
                found.append(one)
        return found


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a test may look at and set while commands run on tables in memory.

    Erased subjects and the partitions that hold their rows are set by ``suppressions.suppress``; ``erased`` is the list
    of them, to which ``errata erase`` adds as well. ``channels`` keep the messages that were sent. ``consumers`` and
    ``watermarks`` are what readers of the products show and keep, ``copies`` the
    warehouses, ``topics`` what runs sent to topics, ``cluster`` every cluster that workers are started on.
    """

    alarm: Alarm = field(default_factory=Alarm)
    signals: Signals = field(default_factory=Signals)
    suppressions: FakeSuppressions = field(default_factory=FakeSuppressions)
    erased: ErasedInMemory = field(default_factory=ErasedInMemory)
    channels: MemoryChannels = field(default_factory=MemoryChannels)
    consumers: MemoryConsumers = field(default_factory=MemoryConsumers)
    watermarks: MemoryWatermarks = field(default_factory=MemoryWatermarks)
    copies: MemoryCopies = field(default_factory=MemoryCopies)
    topics: MemoryTopics = field(default_factory=MemoryTopics)
    cluster: MemoryCluster = field(default_factory=MemoryCluster)

    def __post_init__(self) -> None:
        """Subjects that a test suppresses are on the list, too."""
        self.suppressions.erased = self.erased
