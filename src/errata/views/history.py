"""History of a partition, and which run was current at a time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.canonical import LEFT_OUT
from errata.views.approval import BreakGlassView
from errata.views.copies import PartitionCopy
from errata.views.status import RunLine, SetBackView


@dataclass(frozen=True, slots=True)
class HistoryView:
    """One event in the history of a partition."""

    action: str
    at: str
    run_id: str | None
    reason: str | None
    requested_by: str | None
    approved_by: str | None
    published_at: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    snapshot_id: str | None = None
    manifest_digest: str | None = None
    published_by: str | None = None
    application: str | None = None
    checks_passed: int | None = None
    released_by: str | None = None
    break_glass: BreakGlassView | None = None
    single_user: bool = False
    restored: str | None = None  # the snapshot whose rows were restored, or what they were restored from
    rebased: str | None = None  # the snapshot on which it was computed again after a live write
    rolled_back_by: str | None = None
    added_rows: int | None = None  # of a live write after the first publication, like the next two
    removed_rows: int | None = None
    deleted_rows: int | None = None  # rows of delete files


@dataclass(frozen=True, slots=True)
class RowHistoryView:
    """History of one of several rows."""

    key: Mapping[str, str | None]  # all of its key columns
    history: tuple[HistoryView, ...]


@dataclass(frozen=True, slots=True)
class WhyView:
    """Who changed this number, when, why, from what to what."""

    table: str
    partition: str
    key: Mapping[str, str]  # as given
    history: tuple[HistoryView, ...]  # of the partition, or of the only matching row
    note: str = ""
    rows: tuple[RowHistoryView, ...] = ()  # per row, if several match
    set_back: SetBackView | None = None  # main does not have the data of the current run
    copies: tuple[PartitionCopy, ...] = field(default=(), metadata=LEFT_OUT)  # whether they got what is accepted


@dataclass(frozen=True, slots=True)
class CommitView:
    """One commit on main that touched a partition."""

    snapshot_id: str
    at: str
    operation: str  # append | overwrite | delete | replace
    writer: str  # errata | compaction | job
    application: str
    added_rows: int
    removed_rows: int
    deleted_rows: int  # rows of delete files
    before: str | None  # main right before it, for a restore; None: it has expired
    run_id: str | None = None
    publication_id: str | None = None
    kind: str | None = None  # publish | rollback, for a commit of Errata
    accepted: bool = False  # the current data of the partition


@dataclass(frozen=True, slots=True)
class CommitsView:
    """Who wrote to a partition, newest first."""

    table: str
    product: str
    partition: str
    commits: tuple[CommitView, ...]
    complete: bool  # nothing older is missing
    next: str = ""


@dataclass(frozen=True, slots=True)
class AcceptedSpan:
    """Partitions that one publication or rollback made current; ``run_id`` None: data from before any run."""

    product: str
    table: str
    grain: str
    partitions: tuple[str, ...]
    run_id: str | None
    action: str  # published | rolled_back
    at: str
    person: str
    publication_id: str


@dataclass(frozen=True, slots=True)
class RunsView:
    """Matching runs; or, with ``accepted_at``, the runs that were current at that time."""

    runs: tuple[RunLine, ...] = ()
    accepted_at: str | None = None
    accepted: tuple[AcceptedSpan, ...] = ()
