"""Throttle: whether a run may start its next chunk now, and if not, why and until when. Pure.

Limits apply to all workers of a run together, so they are checked against the ledger's records and clock. Rates are
averages: a chunk may start once enough time has passed for the rows and bytes of the chunks before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from errata.ledger import RunPace
from errata.model.product.throttle import Throttle

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ThrottleWait:
    """No new chunk before ``until_ms``; None: until a running chunk ends or the reason goes away."""

    reason: str
    until_ms: int | None = None


def check_throttle(throttle: Throttle, pace: RunPace) -> ThrottleWait | None:
    """The limit that lasts longest; None when a chunk may start."""
    found = [held for held in _check_limits(throttle, pace) if held is not None]
    return max(found, key=lambda held: held.until_ms or 0, default=None)


def _check_limits(throttle: Throttle, pace: RunPace) -> Iterable[ThrottleWait | None]:
    yield _check_in_flight(throttle, pace)
    yield _check_rate(pace, throttle.rows_per_minute, 1, "rows")
    yield _check_rate(pace, throttle.bytes_per_minute, 2, "bytes")
    yield _check_commits(throttle, pace)
    yield _check_burst(throttle, pace)
    yield _check_hours(throttle, pace)


def _check_in_flight(throttle: Throttle, pace: RunPace) -> ThrottleWait | None:
    if throttle.chunks is not None and pace.running >= throttle.chunks:
        return ThrottleWait(f"{pace.running} of {throttle.chunks} chunks in flight")
    return None


def _check_rate(pace: RunPace, per_minute: int | None, column: int, unit: str) -> ThrottleWait | None:
    if not per_minute:
        return None
    paid = 0.0
    for entry in pace.recent:
        paid = max(paid, entry[0]) + entry[column] * 60_000 / per_minute
    return ThrottleWait(f"at most {per_minute:,} {unit} per minute", int(paid)) if paid > pace.now_ms else None


def _check_commits(throttle: Throttle, pace: RunPace) -> ThrottleWait | None:
    most, ends = throttle.commits_per_hour, pace.adopted_last_hour
    if not most or len(ends) + pace.running < most:
        return None
    # running chunks will commit too; this many commits of the last hour must become older than an hour first
    over = len(ends) + pace.running - most
    return ThrottleWait(f"at most {most} commits per hour", ends[over] + _HOUR_MS if over < len(ends) else None)


def _check_burst(throttle: Throttle, pace: RunPace) -> ThrottleWait | None:
    if not throttle.burst:
        return None
    of_burst = pace.adopted % throttle.burst
    if of_burst == 0 and pace.adopted and not pace.running and pace.last_ended_ms is not None:
        until = pace.last_ended_ms + throttle.pause_seconds * 1000
        return ThrottleWait(f"pause after {throttle.burst} chunks", until) if until > pace.now_ms else None
    if of_burst + pace.running >= throttle.burst:
        return ThrottleWait(f"the burst of {throttle.burst} chunks is in progress")
    return None


def _check_hours(throttle: Throttle, pace: RunPace) -> ThrottleWait | None:
    if not throttle.hours:
        return None
    now = datetime.fromtimestamp(pace.now_ms / 1000, UTC).astimezone(ZoneInfo(throttle.zone))
    if any(_is_within(span, now) for span in throttle.hours):
        return None
    starts = [_find_next_start(span.partition("-")[0], now) for span in throttle.hours]
    told = ", ".join(throttle.hours)
    return ThrottleWait(f"chunks start at {told} {throttle.zone} only", int(min(starts).timestamp() * 1000))


def _parse_minute(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


def _is_within(span: str, now: datetime) -> bool:
    start, _, end = span.partition("-")
    first, last, minute = _parse_minute(start), _parse_minute(end), now.hour * 60 + now.minute
    return first <= minute < last if first < last else minute >= first or minute < last


def _find_next_start(start: str, now: datetime) -> datetime:
    minute = _parse_minute(start)
    at = now.replace(hour=minute // 60 % 24, minute=minute % 60, second=0, microsecond=0)
    return at if at > now else at + timedelta(days=1)
