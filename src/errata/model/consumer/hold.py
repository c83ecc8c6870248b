"""Holds: the time that a consumer gets before a publication, and what a publication may do while there is one. Pure.

A hold is a lease on the ledger's clock. It ends with the settlement of the publication, whatever the outcome, when the
run is given up, or after ``at_most``; a process that dies leaves nothing that lasts longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from errata.errors import ConsumerStopped, PublishHeld, StateRefused
from errata.model.consumer.declaration import Consumer, Hold

READERS = ""
"""Consumer of the hold under which the ready table says that partitions are not ready; Errata acknowledges it itself,
once the table says so."""
READERS_TERMS = Hold("stop", at_most_seconds=900, acknowledge=True)
WHOLE_RUN = 0
"""Number of the wave of a hold that lasts from the first wave of a run to its last."""
_LEAST_GRACE_MS = 900_000


class HoldState(StrEnum):
    """States of a hold as recorded; one whose time is over counts as expired, recorded or not."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    EXPIRED = "expired"
    ENDED = "ended"


H = HoldState
HOLD_MOVES: dict[HoldState, frozenset[HoldState]] = {
    H.OPEN: frozenset({H.ACKNOWLEDGED, H.EXPIRED, H.ENDED}),
    H.ACKNOWLEDGED: frozenset({H.EXPIRED, H.ENDED}),
    H.EXPIRED: frozenset({H.ENDED}),
    H.ENDED: frozenset(),
}
STANDING = frozenset({H.OPEN, H.ACKNOWLEDGED})
"""Recorded states of a hold that lasts until its time is over."""


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """One hold: of one consumer, for one wave or for a whole run. Times in milliseconds are those of the ledger."""

    hold_id: str
    run_id: str
    wave: int  # 0: the whole run
    consumer: str
    table: str
    partitions: tuple[str, ...]
    snapshot_id: str | None  # main when the hold was opened: what to read meanwhile
    acknowledge: bool
    on_timeout: str  # go | stop
    opened_at: str
    notice_until: int
    until: int
    state: HoldState
    acknowledged_by: str | None
    acknowledged_at: str | None
    skipped_by: str | None  # the person who did not want to wait
    ended_at: str | None
    audit_seq: int

    @property
    def opened_ms(self) -> int:
        """When it was opened, in milliseconds."""
        return int(datetime.fromisoformat(self.opened_at).timestamp() * 1000)

    @property
    def is_unheard(self) -> bool:
        """Whether the publication waits for an acknowledgement that nobody has given."""
        return self.acknowledge and self.state is H.OPEN and self.skipped_by is None

    def is_active(self, now_ms: int) -> bool:
        """Whether the consumer is held now."""
        return self.state in STANDING and now_ms < self.until


class Outlook(StrEnum):
    """What a publication does about a hold."""

    GO = "go"
    NOTICE = "notice"  # wait: the notice that the consumer got is not over
    ACKNOWLEDGEMENT = "acknowledgement"  # wait for the consumer's owner
    STOP = "stop"  # nobody acknowledged in time, and the consumer's terms say to stop then
    OVER = "over"  # the hold counts no longer: a publication needs a new one


WAITS = frozenset({Outlook.NOTICE, Outlook.ACKNOWLEDGEMENT})


def judge_hold(hold: HoldRecord, now_ms: int) -> Outlook:
    """What a publication does about this hold now.

    A hold that timed out with ``go`` lets a publication through for as long again as it lasted, and at least for a
    quarter of an hour: what comes later was not announced by it.
    """
    if hold.state is H.ENDED:
        return Outlook.OVER
    if hold.state is H.EXPIRED or now_ms >= hold.until:
        return _judge_expired(hold, now_ms)
    if hold.skipped_by is not None:
        return Outlook.GO
    if now_ms < hold.notice_until:
        return Outlook.NOTICE
    return Outlook.ACKNOWLEDGEMENT if hold.acknowledge and hold.state is H.OPEN else Outlook.GO


def _judge_expired(hold: HoldRecord, now_ms: int) -> Outlook:
    if hold.on_timeout == "go":
        grace = max(_LEAST_GRACE_MS, hold.until - hold.opened_ms)
        return Outlook.GO if hold.until <= now_ms < hold.until + grace else Outlook.OVER
    # reported once, when it is found; the next publication opens a new hold
    return Outlook.STOP if hold.is_unheard else Outlook.OVER


def find_hold(holds: Iterable[HoldRecord], consumer: str, partitions: Collection[str], table: str) -> HoldRecord | None:
    """The newest hold of the consumer that covers these partitions; ``holds`` are those of one run, oldest first."""
    wanted, mine = set(partitions), [one for one in holds if (one.consumer, one.table) == (consumer, table)]
    return next((one for one in reversed(mine) if wanted <= set(one.partitions)), None)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A hold that a publication needs."""

    consumer: str
    terms: Hold
    partitions: tuple[str, ...]
    snapshot_id: str | None = None  # main of the table, before anything is changed
    table: str = ""  # empty: the run's own


def list_held(consumers: Iterable[Consumer]) -> tuple[tuple[str, Hold], ...]:
    """Those of the consumers that are held before a publication, by name, with their terms."""
    return tuple(sorted((one.name, one.hold) for one in consumers if one.hold is not None))


Outlooks = Sequence[tuple[str, HoldRecord | None, Outlook]]
"""Consumers with their holds, and what a publication does about each."""
_WHY: dict[Outlook, Callable[[HoldRecord], str]] = {
    Outlook.GO: lambda _: "may be published to",
    Outlook.NOTICE: lambda one: (
        f"has notice until {_format(one.notice_until)}"
        + (f", and has not acknowledged its hold, which lasts until {_format(one.until)}" if one.is_unheard else "")
    ),
    Outlook.ACKNOWLEDGEMENT: lambda one: f"has not acknowledged its hold, which lasts until {_format(one.until)}",
    Outlook.STOP: lambda one: f"did not acknowledge its hold by {_format(one.until)}, and its on_timeout is stop",
    Outlook.OVER: lambda one: f"is no longer held (its hold was opened {_format(one.opened_ms)})",
}


def build_held_error(run_id: str, outlooks: Outlooks, now_ms: int) -> PublishHeld | ConsumerStopped:
    """Error for a publication that consumers make wait, or stop; names each of them and the next command."""
    found = [(name, one, outlook) for name, one, outlook in outlooks if outlook is not Outlook.GO]
    told = [f"{_name(name)} {_WHY[outlook](one) if one else 'was not held'}" for name, one, outlook in found]
    waits = [one for _, one, outlook in found if one and outlook in WAITS]
    ends = [one.until if one.is_unheard else one.notice_until for one in waits]
    again = f"errata publish {run_id}"
    if len(waits) == len(found):
        unheard = [one for one in waits if one.is_unheard]
        owners = [f"errata ack {run_id} {one.consumer}" for one in unheard]
        # with stop, a publication after that time is refused
        will_stop = any(one.on_timeout == "stop" for one in unheard)
        later = [] if will_stop else [f"after {_format(max(ends))}: {again}"]
        hint = "\nor ".join([*owners, f"{again} --wait", *later])
    else:
        hint = f"{again} holds them again"
    until = to_instant(max(ends)) if ends else None
    is_stopped = any(outlook is Outlook.STOP for _, _, outlook in found)
    return (ConsumerStopped if is_stopped else PublishHeld)(
        f"publish of {run_id} was refused; {'; '.join(told)}",
        state="main is unchanged",
        hint=hint,
        run_id=run_id,
        until=until.isoformat(timespec="seconds") if until else None,
        seconds_left=max(0, -(-(max(ends) - now_ms) // 1000)) if ends else 0,
        consumers=[name for name, _, _ in found],
        holds=[one.hold_id for _, one, _ in found if one],
    )


def build_taken_error(run_id: str, taken: HoldRecord, now_ms: int) -> PublishHeld:
    """Error for a run whose consumer another run holds."""
    return PublishHeld(
        f"publish of {run_id} was refused; {taken.consumer} is held by {taken.run_id}, until it is published and at "
        f"most until {_format(taken.until)}",
        state="main is unchanged",
        hint=f"errata status {taken.run_id}\nor when it is done: errata publish {run_id}",
        run_id=run_id,
        until=to_instant(taken.until).isoformat(timespec="seconds"),
        seconds_left=max(0, -(-(taken.until - now_ms) // 1000)),
        consumers=[taken.consumer],
        holds=[taken.hold_id],
        holder=taken.run_id,
    )


def build_over_error(hold: HoldRecord) -> StateRefused:
    """Error for the acknowledgement of a hold that is over: it counts for no later one."""
    how = "ended" if hold.state is H.ENDED else "expired"
    return StateRefused(
        f"the acknowledgement of {hold.hold_id} was refused; the hold of {hold.consumer} has {how}, and an "
        "acknowledgement counts for one hold only",
        state="nothing was changed",
        hint=f"errata status {hold.run_id}",
        run_id=hold.run_id,
        hold=hold.hold_id,
    )


def to_instant(at_ms: int) -> datetime:
    """A time of the ledger."""
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _name(consumer: str) -> str:
    return "the ready table" if consumer == READERS else consumer


def _format(at_ms: int) -> str:
    return f"{to_instant(at_ms):%Y-%m-%d %H:%M:%S} UTC"
