"""Places that can still show an erased subject, and until when. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from errata.model.refs import PREFIX

HOLDS, UNKNOWN = "holds", "unknown"
"""Rows of the subject were found there; nobody can look there, so that nothing is known."""
MAIN = "main"
SNOWFLAKE_TIME_TRAVEL_DAYS, SNOWFLAKE_FAIL_SAFE_DAYS = 90, 7
"""The longest that Snowflake keeps what was deleted, for its users and for itself."""
_DAY_MS = 86_400_000
_SNAPSHOT_AGE_MS = 5 * _DAY_MS
"""How old Iceberg lets snapshots become, unless the table says otherwise."""
SNAPSHOT_AGE_PROPERTY = "history.expire.max-snapshot-age-ms"


@dataclass(frozen=True, slots=True)
class Place:
    """One place, and how it ends."""

    kind: str  # live table, branch, tag, undo set, staged output, candidate, old snapshots, quarantine, …
    name: str
    state: str  # holds | unknown
    until: str | None  # the day on which it ends by itself; None: it does not
    ends: str  # what ends it

    @property
    def label(self) -> str:
        """How people name it, such as in ``--leave``."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class HeldState:
    """A state of a table that holds rows of a subject: a branch, a tag, or an old snapshot without either."""

    ref: str | None
    at_ms: int  # when its snapshot was made
    keep_ms: int | None  # for how long the ref, or the snapshot, is kept; None: for ever


def describe_state(table: str, held: HeldState) -> Place:
    """A state of a table as a place.

    >>> describe_state("lake.t", HeldState("errata_bf-20260214-daily-7f3a21c0-p1-3fa9c2_undo", 0, 86_400_000)).kind
    'undo set'
    """
    until = format_day(held.at_ms + held.keep_ms) if held.keep_ms is not None else None
    if held.ref == MAIN:
        return Place("live table", table, HOLDS, None, "its owner deletes the rows, and plans without them")
    if held.ref is None:
        return Place("old snapshots", table, HOLDS, until, "expire_snapshots of Spark, once they are that old")
    kind, ends = _name_ref(held.ref)
    return Place(kind, f"{table}@{held.ref}", HOLDS, until, ends)


def _name_ref(ref: str) -> tuple[str, str]:
    if not ref.startswith(PREFIX):
        return "branch or tag", "who made it drops it"
    cleans = "errata cleanup, then expire_snapshots"
    if ref.endswith("_undo"):
        return "undo set", cleans
    if re.search(r"_c\d+_[0-9a-f]+$", ref):
        return "candidate", cleans
    if re.search(r"-[0-9a-f]{8}$", ref):
        return "staged output", cleans
    return "tag", cleans


def find_snapshot_age(properties: dict[str, str]) -> int:
    """For how long a table keeps snapshots that no branch and no tag has, in milliseconds."""
    text = properties.get(SNAPSHOT_AGE_PROPERTY, "")
    return int(text) if text.isdigit() else _SNAPSHOT_AGE_MS


def describe_deleted_copies(name: str, deleted: datetime) -> Place:
    """What Snowflake can show of rows that were deleted at a time."""
    days = SNOWFLAKE_TIME_TRAVEL_DAYS + SNOWFLAKE_FAIL_SAFE_DAYS
    until = (deleted + timedelta(days=days)).date().isoformat()
    ends = f"Snowflake: at most {SNOWFLAKE_TIME_TRAVEL_DAYS} days of time travel and {SNOWFLAKE_FAIL_SAFE_DAYS} of "
    return Place("time travel", name, UNKNOWN, until, f"{ends}fail-safe after the last delivery")


def format_day(at_ms: int) -> str:
    """The day of a moment, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()


def is_over(place: Place, today: str) -> bool:
    """Whether a place that nobody can look at has ended by itself."""
    return place.state == UNKNOWN and place.until is not None and place.until < today
