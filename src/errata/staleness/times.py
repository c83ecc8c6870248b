"""What commit times alone tell about a partition that nobody recorded anything about. Pure.

The job that wrote a partition read its inputs some time before it committed, at most ``live.longest_run`` before. So
the partition is current only if no input state that it reads became current after that. *Became current* is what the
log of main says, not the time of a snapshot: a rollback or a fast-forward makes an old snapshot current. Everything
else is unknown, which counts as stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from errata.model.partition import WHOLE
from errata.model.table import Commit, History, Touch
from errata.ports.tables import MainEntry
from errata.text.numbers import format_moment

_PUBLICATION = "errata.publication"
_COMPACTION = "replace"


@dataclass(frozen=True, slots=True)
class Written:
    """When the oldest live file of a partition was committed; None if that is not known."""

    at_ms: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an input by a commit; ``partitions`` None: it may concern any."""

    at_ms: int
    partitions: frozenset[str] | None
    by: str


@dataclass(frozen=True, slots=True)
class InputTimes:
    """When the partitions of an input became what they are."""

    changes: tuple[Change, ...] = ()  # newest first
    known_since_ms: int | None = None  # None: from its beginning on
    unknown: str = ""  # why its times tell nothing at all
    newest_ms: Mapping[str, int] = field(default_factory=dict)  # of files: the newest one of each partition
    is_files: bool = False


@dataclass(frozen=True, slots=True)
class TimeReason:
    """Why times do not show that a partition is current."""

    input: str | None
    what: str
    partitions: tuple[str, ...] = ()  # of the input


def find_time_reasons(
    written: Written, longest_run_ms: int | None, reads: Mapping[str, Sequence[str]], times: Mapping[str, InputTimes]
) -> list[TimeReason]:
    """Everything that keeps times from showing that a partition is current; empty if it is."""
    if written.at_ms is None:
        return [TimeReason(None, written.why)]
    if longest_run_ms is None:
        why = "nobody recorded its inputs, and live.longest_run is not declared, so times tell nothing"
        return [TimeReason(None, why)]
    limit = written.at_ms - longest_run_ms
    unknown = InputTimes(unknown="its times are not known")
    found = [_find_reason(name, times.get(name, unknown), names, written.at_ms, limit) for name, names in reads.items()]
    return [reason for reason in found if reason is not None]


def _find_reason(
    name: str, times: InputTimes, names: Sequence[str], written_ms: int, limit_ms: int
) -> TimeReason | None:
    if times.unknown:
        return TimeReason(name, times.unknown)
    if times.is_files:
        return _find_file_reason(name, times, names, written_ms, limit_ms)
    wanted = set(names)
    for change in times.changes:
        if change.at_ms < limit_ms:
            break
        if change.partitions is None or WHOLE in wanted or change.partitions & wanted:
            hit = tuple(sorted(change.partitions & wanted)) if change.partitions is not None else ()
            return TimeReason(name, f"{_describe_time(change.at_ms, written_ms)}: {change.by}", hit)
    if times.known_since_ms is not None and times.known_since_ms > limit_ms:
        return TimeReason(name, f"its history is known since {_format(times.known_since_ms)} UTC only")
    return None


def _find_file_reason(
    name: str, times: InputTimes, names: Sequence[str], written_ms: int, limit_ms: int
) -> TimeReason | None:
    absent = tuple(one for one in names if one not in times.newest_ms)
    if absent:
        return TimeReason(name, "has no files, and nothing tells since when", absent)
    late = tuple(one for one in names if times.newest_ms[one] >= limit_ms)
    if late:
        return TimeReason(name, _describe_time(max(times.newest_ms[one] for one in late), written_ms), late)
    return None


def _describe_time(at_ms: int, written_ms: int) -> str:
    if at_ms >= written_ms:
        return f"changed at {_format(at_ms)} UTC, after this was written"
    return f"changed at {_format(at_ms)} UTC, and the job that wrote this may have read it before"


def _format(at_ms: int) -> str:
    return format_moment(datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds"))


def build_times(log: Sequence[MainEntry], history: History, since: str | None) -> InputTimes:
    """Times of a table, from the log of main and its commits back to the snapshot ``since``, or to the first."""
    became = find_current_times(log, history.line)
    commits = [(became.get(one.snapshot_id, one.at_ms), one) for one in history.commits]
    changes = [
        Change(at, None if one.touches_everything else frozenset(one.touched), describe_commit(one))
        for at, one in commits
        if not is_compaction(one)
    ]
    set_back = find_set_back(log, history.line)
    if set_back is not None:
        changes.append(Change(set_back, None, "a change of main to another line of snapshots, such as a rollback"))
    is_whole = history.complete and since is None
    known = None if is_whole or not history.line else became.get(history.line[-1])
    return InputTimes(tuple(sorted(changes, key=lambda one: (-one.at_ms, one.partitions is not None))), known)


def build_log_times(log: Sequence[MainEntry]) -> InputTimes:
    """Times of a table that is read whole: whenever main was set, everything may have changed."""
    return InputTimes(tuple(Change(one.at_ms, None, f"snapshot {one.snapshot_id}") for one in reversed(log)))


def find_current_times(log: Sequence[MainEntry], line: Sequence[str]) -> dict[str, int]:
    """When each snapshot of main's line became part of main; ``line`` is from the head back.

    A snapshot that the log does not have was committed to a branch: it came with the next one that the log has.
    """
    logged = {entry.snapshot_id: entry.at_ms for entry in log}  # the last time of each
    found: dict[str, int] = {}
    later: int | None = None
    for snapshot in line:
        later = logged.get(snapshot, later)
        if later is not None:
            found[snapshot] = later
    return found


def find_set_back(log: Sequence[MainEntry], line: Sequence[str]) -> int | None:
    """When main last came to its present line from a snapshot outside it, or from a newer one; None if never."""
    age = {snapshot: n for n, snapshot in enumerate(line)}
    found: int | None = None
    before: int | None = None
    is_outside = False
    oldest_seen = False
    for entry in log:
        position = age.get(entry.snapshot_id)
        if position is None:
            # what is older than the line was simply not looked at; the log is in order
            is_outside = is_outside or oldest_seen
            continue
        if is_outside or (before is not None and position > before):
            found = entry.at_ms
        before, is_outside, oldest_seen = position, False, True
    return found


def is_compaction(commit: Commit) -> bool:
    """Whether a commit rewrote files and kept every row, in all partitions that it touched."""
    return (
        commit.operation == _COMPACTION
        and not commit.touches_everything
        and all(_is_balanced(touch) for touch in commit.touched.values())
    )


def _is_balanced(touch: Touch) -> bool:
    return touch.added_rows == touch.removed_rows and not touch.added_deletes


def describe_commit(commit: Commit) -> str:
    """A commit in words: what, by whom, and its snapshot."""
    return f"{commit.operation} by {commit.application} (snapshot {commit.snapshot_id})"


def find_written(writers: Sequence[str], commits: Mapping[str, Commit]) -> Written | None:
    """When the oldest live file was committed; None if only the history of the partition can tell."""
    if not writers:
        return Written(None, "it has no files, and nobody recorded that")
    known = [commits[one] for one in writers if one in commits]
    if len(known) < len(writers):
        return Written(None, "the commits that wrote it have expired, and nobody recorded its inputs")
    if any(_PUBLICATION in one.summary for one in known):
        return Written(None, "its files come from a rollback or a restore, and their inputs are not on record")
    if any(one.operation == _COMPACTION for one in known):
        return None
    return Written(min(one.at_ms for one in known))


def find_origin(partition: str, history: History) -> Written:
    """When the oldest rows of a compacted partition were committed, from the commits that touched it."""
    unknown = Written(None, "its files were compacted, and its history does not tell when its rows were written")
    if not history.complete:
        return unknown
    rows, origins = 0, list[int]()
    for commit in reversed(history.commits):
        touch = commit.touched.get(partition)
        if commit.touches_everything or _PUBLICATION in commit.summary:
            return unknown
        if touch is None or is_compaction(commit):
            continue
        is_replaced = touch.removed_rows >= rows
        origins = [commit.at_ms] if is_replaced else [*origins, commit.at_ms]
        rows += touch.added_rows - touch.removed_rows
    return Written(min(origins)) if origins else unknown
