"""Whether consumers of a run show what was published. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecoveryLine:
    """What one consumer shows."""

    consumer: str
    state: str  # pending | recovered | failed | waived
    due: str | None = None  # until when it has to show what was published
    seconds_left: int | None = None  # negative: it is late by so much; None: no limit, or recovered
    is_late: bool = False  # it was late, or is
    error: str | None = None  # of the last attempt
    waived_by: str | None = None
    waived_why: str | None = None
    waits: str | None = None  # for what, if that is no failed attempt
