"""Throttle of a run: limits over all its workers, and health signals of the live pipeline. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Throttle:
    """Limits of one run over all its workers; None: no limit. They affect no result, so no manifest holds them."""

    chunks: int | None = None  # in flight at the same time
    cores: int | None = None  # per Spark application
    rows_per_minute: int | None = None
    bytes_per_minute: int | None = None  # of input
    commits_per_hour: int | None = None
    wave: int | None = None  # after this many chunks …
    pause_seconds: int = 0  # … no new chunk starts for this long
    hours: tuple[str, ...] = ()  # "22:00-06:00": chunks start only within these spans
    zone: str = "UTC"  # of the hours
    pool: str = "errata"  # scheduler pool if the caller provides the session


@dataclass(frozen=True, slots=True)
class Signal:
    """A number that measures the health of the live pipeline; higher is worse."""

    name: str
    kind: str  # sql | http | command
    source: tuple[str, ...] = dataclasses.field(repr=False)  # the query, the address, or the command with its arguments
    on: str = "ledger"  # sql: ledger | lake
    field: str | None = None  # http: the key of the JSON answer that holds the number
    slow_above: str | None = None  # decimal text: above it, one chunk at a time
    pause_above: str | None = None  # decimal text: above it, no new chunk
    resume_below: str | None = None  # decimal text; default: any value no longer above the limit
    every_seconds: int = 30
    timeout_seconds: int = 10
    unreadable: str = "pause"  # pause | ignore
