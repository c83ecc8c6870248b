"""What a consumer reads about a correction: a title, a few sentences, numbers before and after. Pure.

A message is written from what the ledger has on record, so every attempt to send it writes the same one. It has no
value of a classified column: metrics over such columns are named without values, since a sum over one row is its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from errata.model.consumer.declaration import UNUSUAL
from errata.model.diff import Movement
from errata.model.partition import Grain, format_ranges
from errata.text.numbers import format_duration, format_moment, format_value, plural

VERSION = 1
"""Version of the JSON form; a field may be added, none changes its meaning within a version."""
_SHOWN_RANGES = 6
_SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class HoldNotice:
    """The hold that a consumer is asked for."""

    until: str  # it ends then at the latest
    acknowledge: str = ""  # the command with which its owner acknowledges; empty: nobody has to
    on_timeout: str = "go"


@dataclass(frozen=True, slots=True)
class Difference:
    """What a consumer shows for a partition, and what it should show."""

    partition: str
    shown: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class RecoveryNotice:
    """Whether a consumer shows what the table has."""

    seconds: float | None = None  # since the publication or the rollback
    problem: str = ""  # why it does not
    differences: tuple[Difference, ...] = ()
    more: int = 0  # further partitions that differ
    retry: str = ""  # the command that tries again
    is_read_back: bool = False  # what this consumer shows was compared with the table


@dataclass(frozen=True, slots=True)
class Metric:
    """A declared metric before and after. Without a total if partitions do not add up; masked: values are not shown."""

    name: str
    before: str | None = None
    after: str | None = None
    percent: str | None = None
    has_total: bool = False
    partitions: tuple[Movement, ...] = ()  # those that moved most
    more: int = 0  # further partitions
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Occasion:
    """Something that happened to a run."""

    event: str  # one of EVENTS
    at: str
    run_id: str
    product: str
    table: str
    grain: Grain
    partitions: tuple[str, ...]
    reason: str
    requested_by: str
    approved_by: tuple[str, ...] = ()
    by: str = ""  # who published, rolled back, approved; empty: nobody in person
    digest: str = ""  # of the sealed plan
    snapshot_id: str | None = None
    wave: tuple[int, int] | None = None  # number, and how many there are
    metrics: tuple[Metric, ...] = ()
    undo_until: str = ""
    hold: HoldNotice | None = None
    recovery: RecoveryNotice | None = None
    unusual: tuple[str, ...] = ()  # what a watch found
    rollback: str = ""  # the command that rolls the publication back; empty: it is not suggested


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one consumer. ``id`` is the same for every attempt; ``sequence`` grows for each consumer."""

    id: str
    sequence: int
    consumer: str
    title: str
    sentences: tuple[str, ...]
    occasion: Occasion
    commands: Mapping[str, str] = field(default_factory=dict)  # what it is for → the command

    @property
    def text(self) -> str:
        """The sentences in one paragraph."""
        return " ".join(self.sentences)


def write_message(occasion: Occasion, consumer: str, id_: str, sequence: int, on: Sequence[str] = ()) -> Message:
    """The message about an occasion; ``on`` are the events that the consumer gets messages about."""
    title, *sentences = _WRITERS[occasion.event](occasion, consumer, on)
    commands = {"look": f"errata show {occasion.run_id}"}
    if occasion.hold is not None and occasion.hold.acknowledge:
        commands["acknowledge"] = occasion.hold.acknowledge
    if occasion.recovery is not None and occasion.recovery.retry:
        commands["retry"] = occasion.recovery.retry
    if occasion.rollback:
        commands["roll back"] = occasion.rollback
    kept = tuple(sentence for sentence in sentences if sentence)
    return Message(id_, sequence, consumer, title, kept, occasion, commands)


def count_partitions(occasion: Occasion) -> str:
    """How many partitions, in the words of their grain: ``45 days``."""
    return plural(len(occasion.partitions), "partition" if occasion.grain is Grain.VALUE else occasion.grain.value)


def _describe_scope(occasion: Occasion) -> str:
    ranges = format_ranges(occasion.grain, occasion.partitions, _SHOWN_RANGES)
    return f"{count_partitions(occasion)} of {occasion.product} ({ranges})"


def _end_title(occasion: Occasion) -> str:
    wave = f", wave {occasion.wave[0]} of {occasion.wave[1]}" if occasion.wave else ""
    return f"{occasion.product}, {count_partitions(occasion)}{wave}"


def _agree(occasion: Occasion, one: str, several: str) -> str:
    return one if len(occasion.partitions) == 1 else several


def _quote_reason(occasion: Occasion) -> str:
    reason = occasion.reason.rstrip()
    return f"Reason: {reason}{'' if reason.endswith(('.', '!', '?')) else '.'}"


def _write_planned(occasion: Occasion, consumer: str, on: Sequence[str]) -> list[str]:
    follows = " You get a message when it is published." if "published" in on else ""
    return [
        f"Correction planned: {_end_title(occasion)}",
        f"{occasion.requested_by or 'Someone'} plans to correct {_describe_scope(occasion)}.",
        _quote_reason(occasion),
        f"Nothing that {consumer} reads has changed; the plan waits for approval.{follows}",
    ]


def _write_approved(occasion: Occasion, consumer: str, on: Sequence[str]) -> list[str]:
    follows = " You get a message when it is published." if "published" in on else ""
    return [
        f"Correction approved: {_end_title(occasion)}",
        f"{occasion.by or 'Someone'} approved the correction of {_describe_scope(occasion)}.",
        _quote_reason(occasion),
        f"It is computed and checked next; what {consumer} reads has not changed.{follows}",
    ]


def _write_holding(occasion: Occasion, consumer: str, on: Sequence[str]) -> list[str]:
    hold = occasion.hold or HoldNotice("")
    until = f"{format_moment(hold.until)} UTC"
    waits = (
        f"The publication waits until {consumer} acknowledges; without that it "
        + ("continues" if hold.on_timeout == "go" else "stops")
        + f" at {until}."
    )
    ends = " A message follows when it is done." if "published" in on else ""
    return [
        f"Please hold: {_end_title(occasion)}",
        f"{_describe_scope(occasion)} {_agree(occasion, 'is', 'are')} about to be replaced.",
        f"Do not read {_agree(occasion, 'it', 'them')} before the publication is done; the hold ends at {until}.{ends}",
        waits if hold.acknowledge else "",
        _quote_reason(occasion),
    ]


def _write_published(occasion: Occasion, consumer: str, _: Sequence[str]) -> list[str]:
    when = f"at {format_moment(occasion.at)} UTC"
    undo = (
        f"The correction can be rolled back until {format_moment(occasion.undo_until)} UTC."
        if occasion.undo_until
        else ""
    )
    return [
        f"Corrected: {_end_title(occasion)}",
        f"{_describe_scope(occasion)} {_agree(occasion, 'was', 'were')} replaced {when}.",
        _quote_reason(occasion),
        f"What {consumer} read of {_agree(occasion, 'it', 'them')} before is out of date: read again.",
        undo,
    ]


def _write_rolled_back(occasion: Occasion, consumer: str, _: Sequence[str]) -> list[str]:
    when = f"at {format_moment(occasion.at)} UTC"
    return [
        f"Rolled back: {_end_title(occasion)}",
        f"{occasion.by or 'Someone'} rolled back the correction of {_describe_scope(occasion)} {when}.",
        _quote_reason(occasion),
        f"{_agree(occasion, 'It has', 'They have')} the earlier rows again; {consumer} has to read again.",
    ]


def _write_recovered(occasion: Occasion, consumer: str, _: Sequence[str]) -> list[str]:
    recovery = occasion.recovery or RecoveryNotice()
    after = "" if recovery.seconds is None else f" {format_duration(recovery.seconds)} after it"
    return [
        f"Recovered: {_end_title(occasion)}",
        f"What follows from the change of {_describe_scope(occasion)} was done{after}.",
        "Each consumer got what it needs, and what is read back equals the table.",
        f"{consumer} shows nothing else than the table has." if recovery.is_read_back else "",
    ]


def _write_failed(occasion: Occasion, consumer: str, _: Sequence[str]) -> list[str]:
    recovery = occasion.recovery or RecoveryNotice()
    listed = [
        f"{one.partition}: shows {_format_shown(one.shown)}, expected {_format_shown(one.expected)}"
        for one in recovery.differences[:_SHOWN_DIFFERENCES]
    ]
    rest = len(recovery.differences) - len(listed) + recovery.more
    shown = "; ".join(listed) + (f"; and {rest:,} more" if rest > 0 else "")
    doubt = "does not show" if recovery.differences else "is not known to show"
    return [
        f"Not recovered: {consumer} {doubt} {_end_title(occasion)}",
        f"{consumer} {doubt} what the table has for {_describe_scope(occasion)}.",
        f"What went wrong: {recovery.problem}." if recovery.problem else "",
        f"{shown}." if shown else "",
    ]


def _format_shown(value: str | None) -> str:
    return "nothing" if value is None else format_value(value)


def _write_unusual(occasion: Occasion, consumer: str, _: Sequence[str]) -> list[str]:
    return [
        f"Unusual after a correction: {_end_title(occasion)}",
        f"After the correction of {_describe_scope(occasion)}, {consumer} found a number that does not fit.",
        *(f"{found}." for found in occasion.unusual[:_SHOWN_DIFFERENCES]),
        "Nothing was rolled back. Either the correction is wrong, or what live jobs wrote since.",
        _quote_reason(occasion),
    ]


_WRITERS: Mapping[str, Callable[[Occasion, str, Sequence[str]], list[str]]] = {
    "planned": _write_planned,
    "approved": _write_approved,
    "holding": _write_holding,
    "published": _write_published,
    "rolled_back": _write_rolled_back,
    "recovered": _write_recovered,
    "failed": _write_failed,
    UNUSUAL: _write_unusual,
}
