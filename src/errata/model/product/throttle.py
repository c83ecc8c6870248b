"""Throttle of a run: limits over all its workers, and health signals of the live pipeline. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from errata.model.file_keys import NOT_A_KEY, AtLeast, Key, OneOf
from errata.model.file_values import Bytes, Count, DecimalText, Length, Line, Slug, Span


@dataclass(frozen=True, slots=True)
class Throttle:
    """Limits on the speed of a run, over all its workers. They change no result."""

    # not in a manifest, because no result depends on it
    chunks: Annotated[Count | None, Key("Chunks in progress at the same time.")] = None
    cores: Annotated[Count | None, Key("Cores of each Spark application.")] = None
    rows_per_minute: Annotated[Count | None, Key("Rows of input per minute.")] = None
    bytes_per_minute: Annotated[Bytes | None, Key("Bytes of input per minute.")] = None
    commits_per_hour: Count | None = None
    burst: Annotated[Count | None, Key(path="burst.chunks", needed=True)] = None
    pause_seconds: Annotated[Length, Key(path="burst.pause", needed=True)] = 0
    hours: Annotated[
        tuple[Span, ...], AtLeast(1), Key("Chunks start only within these spans; a span may cross midnight.")
    ] = ()
    zone: Annotated[Line, Key("Time zone of the hours, such as Europe/Berlin.")] = "UTC"
    pool: Annotated[Slug, Key("Fair-scheduler pool in a shared session.")] = "errata"


@dataclass(frozen=True, slots=True)
class Signal:
    """A number about the health of the live pipeline; higher is worse. One of sql, http and command."""

    name: Slug
    kind: Annotated[str, NOT_A_KEY]  # sql | http | command
    # the query, the address, or the command with its arguments
    source: Annotated[tuple[str, ...], NOT_A_KEY] = dataclasses.field(repr=False)
    on: Annotated[str, OneOf("ledger", "lake"), Key("Where sql runs.")] = "ledger"
    field: Annotated[Line | None, Key("http: JSON key of the number.")] = None
    slow_above: Annotated[DecimalText | None, Key("Above this, one chunk at a time.")] = None
    pause_above: Annotated[DecimalText | None, Key("Above this, no new chunk starts.")] = None
    resume_below: Annotated[DecimalText | None, Key("Below this, a paused run continues.")] = None
    every_seconds: Annotated[Length, Key(path="every", default="30s")] = 30
    timeout_seconds: Annotated[Length, Key(path="timeout", default="10s")] = 10
    unreadable: Annotated[str, OneOf("pause", "ignore")] = "pause"
