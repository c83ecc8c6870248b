"""Whether a run may start its next chunk now, and if not, why and until when. Pure.

Limits hold over all workers of a run: they are judged by what the ledger has seen of it, on the ledger's clock. Rates
are averages: each chunk that started pays for its rows and bytes, and the next one starts when the bill is paid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from errata.ledger import Pace
from errata.model.product.throttle import Throttle

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Hold:
    """No new chunk until then; ``until_ms`` None: until one in flight ends."""

    reason: str
    until_ms: int | None = None


def hold(throttle: Throttle, pace: Pace) -> Hold | None:
    """The limit that holds longest, or None: go."""
    found = [held for held in _holds(throttle, pace) if held is not None]
    return max(found, key=lambda held: held.until_ms or 0, default=None)


def _holds(throttle: Throttle, pace: Pace) -> Iterable[Hold | None]:
    yield _in_flight(throttle, pace)
    yield _rate(pace, throttle.rows_per_minute, 1, "rows")
    yield _rate(pace, throttle.bytes_per_minute, 2, "bytes")
    yield _commits(throttle, pace)
    yield _wave(throttle, pace)
    yield _hours(throttle, pace)


def _in_flight(throttle: Throttle, pace: Pace) -> Hold | None:
    if throttle.chunks is not None and pace.running >= throttle.chunks:
        return Hold(f"{pace.running} of {throttle.chunks} chunks in flight")
    return None


def _rate(pace: Pace, per_minute: int | None, column: int, unit: str) -> Hold | None:
    if not per_minute:
        return None
    paid = 0.0
    for entry in pace.recent:
        paid = max(paid, entry[0]) + entry[column] * 60_000 / per_minute
    return Hold(f"at most {per_minute:,} {unit} per minute", int(paid)) if paid > pace.now_ms else None


def _commits(throttle: Throttle, pace: Pace) -> Hold | None:
    most, ends = throttle.commits_per_hour, pace.adopted_last_hour
    if not most or len(ends) + pace.running < most:
        return None
    # chunks in flight commit as well; so many of the last hour must be older than an hour
    over = len(ends) + pace.running - most
    return Hold(f"at most {most} commits per hour", ends[over] + _HOUR_MS if over < len(ends) else None)


def _wave(throttle: Throttle, pace: Pace) -> Hold | None:
    if not throttle.wave:
        return None
    of_wave = pace.adopted % throttle.wave
    if of_wave == 0 and pace.adopted and not pace.running and pace.last_ended_ms is not None:
        until = pace.last_ended_ms + throttle.pause_seconds * 1000
        return Hold(f"pause after {throttle.wave} chunks", until) if until > pace.now_ms else None
    if of_wave + pace.running >= throttle.wave:
        return Hold(f"the wave of {throttle.wave} chunks is under way")
    return None


def _hours(throttle: Throttle, pace: Pace) -> Hold | None:
    if not throttle.hours:
        return None
    now = datetime.fromtimestamp(pace.now_ms / 1000, UTC).astimezone(ZoneInfo(throttle.zone))
    if any(_within(span, now) for span in throttle.hours):
        return None
    starts = [_next(span.partition("-")[0], now) for span in throttle.hours]
    told = ", ".join(throttle.hours)
    return Hold(f"chunks start at {told} {throttle.zone} only", int(min(starts).timestamp() * 1000))


def _minute(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


def _within(span: str, now: datetime) -> bool:
    start, _, end = span.partition("-")
    first, last, minute = _minute(start), _minute(end), now.hour * 60 + now.minute
    return first <= minute < last if first < last else minute >= first or minute < last


def _next(start: str, now: datetime) -> datetime:
    minute = _minute(start)
    at = now.replace(hour=minute // 60 % 24, minute=minute % 60, second=0, microsecond=0)
    return at if at > now else at + timedelta(days=1)
