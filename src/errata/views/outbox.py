"""What is owed after decisions and commits, and what paying it came to. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from errata.canonical import LEFT_OUT


@dataclass(frozen=True, slots=True)
class OutboxItemView:
    """One item: what is owed to whom, because of which run, and how far its payment has come."""

    id: str
    kind: str  # corrections | topic | view | alarm | tell | copy | ready | recover | watermark | watch | checkpoint
    consumer: str  # empty: the product itself
    run_id: str
    state: str  # owed | paid | failed | waived
    attempts: int
    last_error: str | None
    event: str
    key: str
    table: str
    partitions: tuple[str, ...]
    owed_at: str
    age_seconds: int  # since it is owed
    next_at: str | None  # not tried or looked at again before; None: at any time, or never
    ended_at: str | None
    waived_by: str | None = None
    waived_why: str | None = None
    waived_ready: bool = False
    waits: str | None = None  # for what, if that is no failed attempt
    code: str | None = field(default=None, metadata=LEFT_OUT)  # of the last error, where it has one


@dataclass(frozen=True, slots=True)
class OutboxView:
    """Items of a run or of all, oldest first."""

    items: tuple[OutboxItemView, ...]
    run_id: str | None = None
    all: bool = False  # with those that are paid or waived
    next: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutboxDecisionView:
    """Items that a person lets be tried again, or gave up."""

    action: str  # retry | waive
    items: tuple[OutboxItemView, ...]
    already: bool = False
    next: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeliverView:
    """What was paid, and what is still owed or failed."""

    ok: bool  # nothing is owed any more; a watch may continue
    paid: int
    items: tuple[OutboxItemView, ...]
    warnings: tuple[str, ...]
    seconds: float
    next: tuple[str, ...] = ()
