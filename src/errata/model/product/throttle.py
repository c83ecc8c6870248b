"""How fast a run may go and what it watches: limits over all its workers, and signals of the live pipeline. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Throttle:
    """Limits of one run, over all its workers; None: no limit. They change no result, so no manifest holds them."""

    chunks: int | None = None  # in flight at the same time
    cores: int | None = None  # of each Spark application
    rows_per_minute: int | None = None
    bytes_per_minute: int | None = None  # of input
    commits_per_hour: int | None = None
    wave: int | None = None  # after so many chunks …
    pause_seconds: int = 0  # … nothing new starts for so long
    hours: tuple[str, ...] = ()  # "22:00-06:00": chunks start within these spans only
    zone: str = "UTC"  # of the hours
    pool: str = "errata"  # scheduler pool when the session is the caller's


@dataclass(frozen=True, slots=True)
class Signal:
    """A number that says how the live pipeline is doing; higher is worse."""

    name: str
    kind: str  # sql | http | command
    source: tuple[str, ...] = dataclasses.field(repr=False)  # the query, the address, or the command with its arguments
    on: str = "ledger"  # sql: ledger | lake
    field: str | None = None  # http: the key of the JSON answer that holds the number
    slow_above: str | None = None  # decimal text: above it one chunk at a time
    pause_above: str | None = None  # decimal text: above it no new chunk
    resume_below: str | None = None  # decimal text; else whatever is no longer above
    every_seconds: int = 30
    timeout_seconds: int = 10
    unreadable: str = "pause"  # pause | ignore
