"""Publications, rollbacks, waves, previews and freezes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from errata.canonical import LEFT_OUT
from errata.views.approval import BreakGlassView, ReleasedView
from errata.views.copies import CopyLine


@dataclass(frozen=True, slots=True)
class WaveView:
    """Partitions that are judged and become visible together; a run without waves is one."""

    n: int
    partitions: tuple[str, ...]
    state: str  # computing | staged | rejected | needs_acceptance | validated | publishing | part_published | …
    judged_at: str | None = None
    visible_at: str | None = None  # the newest of its publications
    publications: tuple[str, ...] = ()
    computed_at: str | None = None  # when its last chunk was done
    # until that is so, at the pace of the chunks so far
    seconds_to_compute: int | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class WaveTurnView:
    """Whose turn it is in a run with several waves; ``next`` None: nothing is left to publish."""

    of: int
    size: str
    pause: str
    order: str  # newest | oldest
    release: str  # each | first | none
    next: int | None = None
    not_before: str | None = None  # None: the pause does not block it
    seconds_left: int = 0
    stopped: str = ""  # why no wave is published until someone resumes


@dataclass(frozen=True, slots=True)
class DarkView:
    """A candidate that can be read by name before its publication; ``comparison`` shows old and new rows."""

    run_id: str
    state: str
    already: bool
    table: str
    name: str
    snapshot_id: str
    keep_until: str
    rejected: bool
    reads: Mapping[str, str]  # reader → the exact statement
    comparison: str | None = None  # a query; None: the product has no key
    view: str | None = None  # the name of the view that is this query
    before: str | None = None  # the name of the previous data; None: there was none
    warnings: tuple[str, ...] = ()
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class PublishView:
    """A committed publication."""

    run_id: str
    state: str
    already: bool
    publication_id: str
    snapshot_id: str
    partitions: tuple[str, ...]
    data_files_written: int
    removed_files: int
    added_files: int
    compacted: tuple[str, ...]
    live_commits: int
    seconds: float
    undo_until: str
    grain: str = "day"
    warnings: tuple[str, ...] = ()
    release: ReleasedView | None = None
    break_glass: BreakGlassView | None = None
    single_user: bool = False
    landed_on: str | None = None  # the side table of the snapshot
    waves: tuple[WaveView, ...] = ()
    turn: WaveTurnView | None = None  # None: the run is one wave
    copies: tuple[CopyLine, ...] = field(default=(), metadata=LEFT_OUT)  # in warehouses, one line each
    owed: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)  # rows and events that are not sent yet, and why


@dataclass(frozen=True, slots=True)
class HazardView:
    """Files restored by a rollback, which only the guard protects from expiry by other tools."""

    publication_id: str  # of the rollback
    table: str
    partitions: tuple[str, ...]
    since: str
    rewrite: str  # Spark SQL statement that ends the hazard


@dataclass(frozen=True, slots=True)
class RollbackView:
    """A committed rollback, now or earlier."""

    run_id: str
    state: str
    already: bool
    publication_id: str
    snapshot_id: str
    partitions: tuple[str, ...]
    data_files_written: int
    seconds: float
    grain: str = "day"
    product: str = ""
    single_user: bool = False
    landed_on: str | None = None  # the side table of the snapshot
    hazard: HazardView | None = None  # restored files that only the guard protects
    warnings: tuple[str, ...] = ()
    later: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # run → partitions it has published since
    stale: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)  # what was computed from it and is still published
    copies: tuple[CopyLine, ...] = field(default=(), metadata=LEFT_OUT)  # in warehouses, one line each


@dataclass(frozen=True, slots=True)
class FreezeView:
    """Partitions that a run has frozen."""

    run_id: str
    product: str
    partitions: tuple[str, ...]
    reason: str
    requested_by: str
    started_by: str
    since: str
    until: str  # unless a command of the run renews it
    at_most: str  # latest end


@dataclass(frozen=True, slots=True)
class FrozenView:
    """Whether a live job may write."""

    table: str
    grain: str
    partitions: tuple[str, ...]  # as given; empty: all of the table
    frozen: bool
    by: tuple[FreezeView, ...] = ()
