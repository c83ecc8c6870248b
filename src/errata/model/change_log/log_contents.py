"""What messages of a change log hold besides the changes: snapshots, ends of transactions, holes, shapes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    """How many there are, and one of them."""

    count: int = 0
    first: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    """One read of the whole table by the connector: where it is in the log, and which of its ends are in the range."""

    at: int
    rows: int
    has_first: bool
    has_last: bool
    kind: str = "initial"  # initial | incremental
    last_at: int = 0  # of an incremental one: where its last row is
    time_us: int = 0
    known_until: int = 0  # the last commit at or before it that was sent

    @property
    def is_whole(self) -> bool:
        """Whether every row of the table at that position is in the range; a single row is marked as the last."""
        return self.kind == "initial" and self.has_last and (self.has_first or self.rows == 1)

    @property
    def lacks(self) -> str:
        """Which end is not in the range."""
        return " and ".join(name for name, held in (("first", self.has_first), ("last", self.has_last)) if not held)


@dataclass(frozen=True, slots=True)
class LogReset:
    """Where the table was emptied, or read again as a whole."""

    at: int
    lsn: int
    time_us: int
    kind: str  # truncate | snapshot


@dataclass(frozen=True, slots=True)
class LogPartition:
    """Messages of one partition of a topic: where they begin, and what the first change is."""

    name: str
    first_offset: int
    missing: int  # offsets without a message between the first and the last
    changes: int  # of the table that is read
    head_at: int | None = None  # where the first change counts from; None: its transaction has no end
    head_is_row: bool = False  # the first change is a row of a snapshot


@dataclass(frozen=True, slots=True)
class EndFacts:
    """Ends of transactions that are in the range."""

    partitions: int = 1  # of the transaction topic
    count: int = 0
    first: int | None = None
    last: int | None = None
    fall: tuple[int, int] | None = None  # a commit position, and a lower one that came after it
    is_from_start: bool = True  # the transaction topic is there from its first message on
    missing: int = 0


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a range of change messages holds besides the changes: enough to choose a position and to refuse one."""

    ends: EndFacts
    snapshots: Sequence[SnapshotMark] = ()
    truncates: Sequence[LogReset] = ()
    partitions: Sequence[LogPartition] = ()
    sources: Sequence[str] = ()  # databases and tables that the messages name
    fresh: Sequence[int] = ()  # commits that a connector without a stored position sent before any other
    unreadable: Sample = field(default_factory=Sample)
    keyless: Sample = field(default_factory=Sample)
    first_after: int | None = None  # first commit later than the asked instant
    newest_us: int = 0  # time of the newest change


@dataclass(frozen=True, slots=True)
class LogSpan:
    """The part of the log that is read: after ``base``, up to and including ``position``."""

    base: int
    position: int
    resets: tuple[LogReset, ...] = ()  # in it, after the base


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """What the chosen part of the log holds."""

    open: Sample = field(default_factory=Sample)  # transactions without an end
    open_names: tuple[str, ...] = ()
    short: Sample = field(default_factory=Sample)  # transactions with fewer changes than their END counts
    shapes: tuple[tuple[str, ...], ...] = ()  # sets of columns that rows have
    unavailable: tuple[str, ...] = ()  # columns whose value is not in some messages
    blind: Sample = field(default_factory=Sample)  # changes without the partition of the row before
    stale_before: Mapping[int, int] = field(default_factory=dict)  # by fresh start: the change known before it
    changes: int = 0
