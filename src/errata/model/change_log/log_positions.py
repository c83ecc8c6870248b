"""Positions in the log of a database, as Debezium names them, and which of them can be answered exactly. Pure.

A change has the position of its own log record. A transaction becomes visible when it commits, so that a state of the
table is cut by the position of the commit, which only the END message of Debezium's transaction topic has. The order of
log records, of transaction ids and of Kafka offsets are each wrong: a transaction may write early and commit late,
ids are given at the first write, and a connector that starts again delivers again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from errata.model.change_log.declaration import NEWEST, STATE, ChangeCapture
from errata.model.change_log.log_contents import LogFacts, LogReset, LogSpan, SnapshotMark, SpanFacts
from errata.model.partition import EPOCH

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_SHOWN = 3


def parse_position(text: str) -> int | datetime | None:
    """A position of the log or an instant; None for ``newest``. Raises ``ValueError``.

    >>> parse_position("0/1970FA8"), parse_position("26677160"), parse_position("newest")
    (26677160, 26677160, None)
    """
    if text == NEWEST:
        return None
    if found := _LSN.fullmatch(text):
        return (int(found[1], 16) << 32) + int(found[2], 16)
    if text.isdecimal():
        return int(text)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text} is no position and no instant") from error
    if instant.tzinfo is None:
        raise ValueError(f"{text} is an instant without its zone")
    return instant


def format_position(position: int) -> str:
    """A position in both ways in which people write it.

    >>> format_position(26677160)
    '26677160 (0/1970FA8)'
    """
    return f"{position} ({position >> 32:X}/{position & 0xFFFFFFFF:X})"


def to_micros(instant: datetime) -> int:
    """Microseconds since 1970."""
    return (instant - EPOCH) // timedelta(microseconds=1)


def choose_span(declared: ChangeCapture, facts: LogFacts, since: Iterable[int] | None = None) -> LogSpan | None:
    """The part of the log to read; None if there is none, which :func:`find_refusals` explains.

    A state begins with the newest whole snapshot, changes and history with the oldest. ``since`` has the positions of
    accepted runs, if every partition has one: their tables are the state to begin with.
    """
    position = choose_position(declared, facts)
    if position is None:
        return None
    wholes = sorted(mark.at for mark in facts.snapshots if mark.is_whole and mark.at <= position)
    known = list(since or ())
    if known:
        base = min(known)
    elif wholes:
        base = wholes[-1] if declared.reading == STATE else wholes[0]
    elif declared.starts_empty:
        base = 0
    else:
        return None
    reads = [LogReset(mark.at, mark.at, mark.time_us, "snapshot") for mark in facts.snapshots if mark.is_whole]
    resets = [one for one in (*facts.truncates, *reads) if base < one.at <= position]
    return LogSpan(base, position, tuple(sorted(resets, key=lambda one: (one.at, one.lsn))))


def choose_position(declared: ChangeCapture, facts: LogFacts) -> int | None:
    """The position that is asked for; None if the range does not tell it."""
    asked = parse_position(declared.at)
    if isinstance(asked, int):
        return asked
    wholes = [mark.at for mark in facts.snapshots if mark.is_whole]
    if asked is None:
        return max((*wholes, *([facts.ends.last] if facts.ends.last is not None else ())), default=None)
    return None if facts.first_after is None else facts.first_after - 1


def find_refusals(declared: ChangeCapture, facts: LogFacts, since: Iterable[int] | None = None) -> tuple[str, ...]:
    """Why the position cannot be answered exactly from these messages; empty if it can."""
    found = list(_find_flaws(facts))
    position = choose_position(declared, facts)
    if position is None:
        asked = declared.at
        if asked == NEWEST:
            return (*found, "there is no whole snapshot and no end of a transaction in the range")
        return (*found, f"no later commit than {asked} is in the range, so more may follow before it")
    span = choose_span(declared, facts, since)
    found += _find_position_flaws(facts, position)
    if span is None:
        shown = format_position(position)
        found.append(f"no whole snapshot is in the range at or before position {shown}; expected one to begin with")
        found += [_describe_unfinished(mark) for mark in facts.snapshots if mark.at <= position and not mark.is_whole]
        return tuple(found)
    found += _find_incomplete_snapshots(facts, span)
    found += _find_holes(facts, span)
    return tuple(found)


def _find_flaws(facts: LogFacts) -> Iterator[str]:
    """What is wrong whatever the position."""
    if facts.ends.partitions != 1:
        yield (
            f"the transaction topic has {facts.ends.partitions} partitions, so that an END may be missing while a "
            "later one is there; expected 1"
        )
    if len(facts.sources) > 1:
        named = ", ".join(sorted(facts.sources)[:_SHOWN])
        yield f"the messages come from several tables or databases: {named}; expected one, or cdc.source_table"
    if facts.ends.fall is not None:
        before, after = facts.ends.fall
        yield (
            f"commit positions go back from {format_position(before)} to {format_position(after)}, as after a restore "
            "or a failover; positions before and after it cannot be compared"
        )
    for what, sample in (("are no change messages", facts.unreadable), ("lack the key", facts.keyless)):
        if sample.count:
            yield f"{sample.count:,} messages {what}, such as {sample.first}"


def _find_position_flaws(facts: LogFacts, position: int) -> Iterator[str]:
    shown = format_position(position)
    is_snapshot = any(mark.is_whole and mark.at == position for mark in facts.snapshots)
    if not is_snapshot and (facts.ends.last is None or facts.ends.last < position):
        newest = "none" if facts.ends.last is None else format_position(facts.ends.last)
        yield f"position {shown} is after the last commit in the range, {newest}; more may follow before it"
    later = [mark for mark in facts.snapshots if mark.kind == "initial" and mark.at > position]
    nearest = min(later, key=lambda mark: mark.at, default=None)
    is_begun = any(mark.at <= position for mark in facts.snapshots)
    if nearest is not None and is_begun and nearest.known_until < position:
        yield (
            f"position {shown} is inside the snapshot at {format_position(nearest.at)}: what was committed after "
            f"{format_position(nearest.known_until)} and before it was never sent"
        )


def _describe_unfinished(mark: SnapshotMark) -> str:
    where = format_position(mark.at)
    if mark.kind != "initial":
        return f"the snapshot at {where} is {mark.kind} and has some keys only; a whole one is needed"
    return f"the snapshot at {where} lacks its {mark.lacks} row, so that rows may be missing from it"


def _find_incomplete_snapshots(facts: LogFacts, span: LogSpan) -> Iterator[str]:
    """Snapshots that would reset only some keys."""
    for mark in facts.snapshots:
        if mark.is_whole or mark.at > span.position or max(mark.at, mark.last_at) <= span.base:
            continue
        yield _describe_unfinished(mark)


def _find_holes(facts: LogFacts, span: LogSpan) -> Iterator[str]:
    """Where messages between the beginning and the position may be missing."""
    base = format_position(span.base)
    for one in facts.partitions:
        if one.missing:
            yield f"{one.missing:,} offsets of {one.name} have no message; expected every one"
        is_before = one.head_at is not None and (
            one.head_at < span.base or (one.head_at == span.base and not one.head_is_row)
        )
        if one.first_offset > 0 and one.changes and not is_before:
            yield (
                f"{one.name} begins at offset {one.first_offset}, and nothing shows that only messages from before "
                f"position {base} are gone"
            )
    if facts.ends.missing:
        yield f"{facts.ends.missing:,} offsets of the transaction topic have no message; expected every one"
    if not facts.ends.is_from_start and (facts.ends.first is None or facts.ends.first > span.base):
        yield f"the transaction topic begins after position {base}, so that ENDs may be missing"


def find_span_refusals(facts: LogFacts, held: SpanFacts, key: Sequence[str]) -> tuple[str, ...]:
    """Why the chosen part of the log cannot be read exactly; empty if it can."""
    found = []
    if held.short.count:
        found.append(
            f"{held.short.count:,} transactions have fewer changes in the range than their END counts, such as "
            f"{held.short.first}"
        )
    if held.unavailable:
        found.append(
            f"some messages lack the value of {', '.join(held.unavailable)}, which was stored out of line and not "
            "changed; ALTER TABLE … REPLICA IDENTITY FULL, then a new snapshot, gives every value"
        )
    if held.blind.count:
        found.append(
            f"{held.blind.count:,} changes do not tell in which partition the row was before, such as "
            f"{held.blind.first}; REPLICA IDENTITY FULL tells it, or partition by a column of the key "
            f"({', '.join(key)}) or by cdc_time"
        )
    for start, before in held.stale_before.items():
        begun = max((mark.at for mark in facts.snapshots if mark.at < start), default=0)
        if begun < before:
            found.append(
                f"the connector started again before the commit at {format_position(start)}, without a snapshot that "
                f"shows what it missed after {format_position(before)}; one of an empty table leaves no message"
            )
    return tuple(found)


def find_since_refusals(span: LogSpan, since: Mapping[str, int]) -> tuple[str, ...]:
    """Why changes since accepted runs are not enough: the table was emptied, or read again, in between."""
    found = []
    newest = max(since.values(), default=0)
    if newest > span.position:
        found.append(
            f"position {format_position(span.position)} is before {format_position(newest)}, which an accepted run read"
        )
    oldest = min(since.values(), default=span.position)
    for one in span.resets:
        if one.at > oldest:
            did = "emptied" if one.kind == "truncate" else "read again as a whole"
            found.append(
                f"the table was {did} at {format_position(one.at)}, after {format_position(oldest)}, which an accepted "
                "run read; changes alone do not tell which rows are gone"
            )
    return tuple(found)
