"""What commands answer: frozen values whose field names are the ``--json`` promise. Pure.

The command line renders one view as text or as JSON; Python callers get the view itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AcceptedSpan",
    "ApprovalView",
    "AuditView",
    "BreakGlassView",
    "ChunkView",
    "CleanupView",
    "CommitView",
    "CommitsView",
    "CostView",
    "DarkView",
    "DeadlineView",
    "DecisionView",
    "ErasedView",
    "EstimateView",
    "FreezeView",
    "FrozenView",
    "GroupView",
    "GroupsView",
    "HeadView",
    "HeadsView",
    "HistoryView",
    "InputView",
    "KeyView",
    "PartitionView",
    "PlanView",
    "PublishView",
    "QuarantineReason",
    "QuarantineView",
    "QuorumView",
    "ReleaseView",
    "ReleasedView",
    "RollbackView",
    "RunCounts",
    "RunLine",
    "RunView",
    "RunsView",
    "SetAsideRow",
    "StateView",
    "StatusView",
    "ValidateView",
    "VerdictView",
    "WhyView",
]


@dataclass(frozen=True, slots=True)
class InputView:
    """One input as it will be read."""

    name: str
    table: str | None
    files: str | None
    snapshot_id: str | None
    file_count: int
    rows: int
    bytes: int
    partitions: tuple[str, ...]
    reference: str | None = None
    own: bool = False  # the product's own earlier output
    eras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # schema era → partitions in it
    row_rules: tuple[str, ...] = ()  # what takes rows out, with its action
    version: str | None = None  # the tag that named the snapshot


@dataclass(frozen=True, slots=True)
class ChunkView:
    """One chunk of the plan."""

    chunk_id: str
    partitions: tuple[str, ...]
    bytes: int
    rows: int
    wave: int = 1  # 0: the canary


@dataclass(frozen=True, slots=True)
class VerdictView:
    """What one guardrail says."""

    rule: str
    level: str
    message: str
    override: str | None = None


@dataclass(frozen=True, slots=True)
class EstimateView:
    """What the run will probably cost."""

    rows: int
    bytes: int
    seconds: int
    usd: str
    seconds_low: int
    seconds_high: int
    basis: str


@dataclass(frozen=True, slots=True)
class DeadlineView:
    """How many cores, until when, for how much.

    ``seconds``, ``core_hours`` and ``usd`` are upper ends, with the configured cores when they suffice, else with those
    needed; ``cores_needed`` None: no number of cores meets it.
    """

    by: str
    available_seconds: int
    cores_configured: int
    cores_needed: int | None
    seconds_configured: int
    seconds: int
    core_hours: str
    usd: str
    meets: bool
    measured: bool
    basis: str


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """One person's decision."""

    person: str
    decision: str
    digest: str
    at: str
    note: str = ""
    break_glass: str | None = None  # why no second person was waited for


@dataclass(frozen=True, slots=True)
class QuorumView:
    """What the approvals of a run amount to now."""

    needed: int
    given: int
    met: bool
    people: tuple[str, ...]
    told: str
    lacks_owner: str | None = None  # the team that has to agree and has not
    may: tuple[str, ...] = ()  # who could give what is missing
    void: Mapping[str, str] = field(default_factory=dict)  # person → why that approval does not count


@dataclass(frozen=True, slots=True)
class BreakGlassView:
    """Someone decided alone."""

    person: str
    why: str
    at: str
    deed: str  # approve | publish
    alarm: str  # rung | failed: … | not rung yet | none


@dataclass(frozen=True, slots=True)
class ReleasedView:
    """The newest release of a run."""

    digest: str
    person: str
    at: str
    kind: str  # release | publish | automatic
    note: str
    valid: bool
    void: str | None = None  # why it no longer counts
    break_glass: str | None = None


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan, new or from the ledger."""

    run_id: str
    manifest_digest: str
    state: str
    already: bool
    product: str
    table: str
    kind: str
    reason: str
    requested_by: str
    order: str
    grain: str
    partitions: tuple[str, ...]
    chunks: tuple[ChunkView, ...]
    inputs: tuple[InputView, ...]
    verdicts: tuple[VerdictView, ...]
    estimate: EstimateView
    refs: tuple[str, ...]
    code: Mapping[str, Any]
    gate: Mapping[str, int]
    consumers: tuple[str, ...]
    untouched_partitions: int
    new_partitions: tuple[str, ...]
    overrides: Mapping[str, str]
    supersedes: str | None
    single_user: bool
    approvals: tuple[ApprovalView, ...] = ()
    pins: tuple[Mapping[str, Any], ...] = ()
    approvers: tuple[str, ...] = ()
    planned_at: str = ""
    prove_determinism: int = 0
    throttle: Mapping[str, Any] = field(default_factory=dict)  # limits in force now, those that are set
    deadline: DeadlineView | None = None
    new_columns: Mapping[str, str] = field(default_factory=dict)  # which readers see with the publication
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None  # the newest
    release_digest: str | None = None  # what a release would name; None before there is a passed verdict
    release: ReleasedView | None = None
    manual: bool = True
    restored: Mapping[str, Any] | None = None  # the snapshot whose rows are put back; no transform runs
    publish: Mapping[str, Any] = field(default_factory=dict)  # the mode, and what it needs to know
    rewrite: Mapping[str, Any] | None = None  # why publication writes data files, and of how much

    @property
    def id(self) -> str:
        """The run id."""
        return self.run_id

    @property
    def digest(self) -> str:
        """The manifest digest, which an approval names."""
        return self.manifest_digest


@dataclass(frozen=True, slots=True)
class DecisionView:
    """An approval or a refusal, with what was signed."""

    run_id: str
    state: str
    already: bool
    manifest_digest: str
    approvals: tuple[ApprovalView, ...]
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseView:
    """A release, or what one would be over."""

    run_id: str
    state: str
    already: bool
    release_digest: str
    manifest_digest: str
    candidate: str
    candidate_digest: str
    snapshot_id: str
    partitions: tuple[str, ...]
    checks: Mapping[str, int]  # findings of the verdict by level
    accepted: tuple[Mapping[str, str], ...]  # check, why, person
    release: ReleasedView | None = None
    grain: str = "day"
    product: str = ""
    requested_by: str = ""
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class StateView:
    """A run after a control command."""

    run_id: str
    state: str
    already: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The chunks of a run by state."""

    total: int
    done: int
    running: int
    failed: int
    quarantined: int
    pending: int


@dataclass(frozen=True, slots=True)
class RunView:
    """What a worker leaves behind."""

    run_id: str
    state: str
    already: bool
    chunks: RunCounts
    recomputed: int
    rows: int
    seconds: float
    log: str
    failures: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ValidateView:
    """The verdict on a candidate."""

    run_id: str
    state: str
    already: bool
    passed: bool
    snapshot_id: str
    candidate: str
    checks: tuple[Mapping[str, Any], ...]
    measured: int
    conflicts: tuple[str, ...] = ()
    thresholds: tuple[Mapping[str, Any], ...] = ()  # changed since the plan: person, why, changes
    release_digest: str | None = None  # what a release names; None while it does not pass
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class GroupView:
    """Partitions that become visible together."""

    n: int
    partitions: tuple[str, ...]
    state: str  # waiting | published | part_published | rolled_back | superseded
    publications: tuple[str, ...] = ()
    published_at: str | None = None  # the newest of them


@dataclass(frozen=True, slots=True)
class GroupsView:
    """How far a run that is published in groups has come; ``next`` None: nothing is left."""

    size: int
    hold: str
    order: str  # newest | oldest
    groups: tuple[GroupView, ...]
    next: int | None = None
    not_before: str | None = None  # None: as far as the hold goes, now
    seconds_left: int = 0
    stopped: str = ""  # why no group goes until someone resumes


@dataclass(frozen=True, slots=True)
class DarkView:
    """A candidate that can be read by name before anyone else sees it; ``comparison`` is old and new side by side."""

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
    before: str | None = None  # the name of what stood before; None: nothing did
    warnings: tuple[str, ...] = ()
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class PublishView:
    """A publication that landed."""

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
    landed_on: str | None = None  # the table beside the target that the snapshot is of
    groups: GroupsView | None = None


@dataclass(frozen=True, slots=True)
class RollbackView:
    """A rollback that landed."""

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
    landed_on: str | None = None  # the table beside the target that the snapshot is of


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Where one partition of a run stands."""

    partition: str
    state: str


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run in the list of all runs."""

    run_id: str
    product: str
    state: str
    partitions: int
    first: str
    last: str
    requested_by: str
    reason: str
    planned_at: str
    chunks: RunCounts


@dataclass(frozen=True, slots=True)
class CostView:
    """What a run took so far, beside what was expected (by the canary, once it has run)."""

    seconds: int  # in which some chunk was in hand
    core_seconds: int
    usd: str
    estimated_seconds: tuple[int, int]
    estimated_usd: str
    basis: str
    worker_count: int
    attempt_count: int
    commit_count: int
    input_bytes: int
    shuffle_bytes: int
    output_bytes: int
    output_file_count: int


@dataclass(frozen=True, slots=True)
class StatusView:
    """All runs, or one run whole."""

    runs: tuple[RunLine, ...] = ()
    run_id: str | None = None
    product: str | None = None
    state: str | None = None
    grain: str = "day"
    order: str = "newest"
    chunks: RunCounts | None = None
    recomputed: int = 0
    rows: int = 0
    partitions: tuple[PartitionView, ...] = ()
    attempts: tuple[Mapping[str, Any], ...] = ()
    failures: tuple[Mapping[str, Any], ...] = ()
    approvals: tuple[ApprovalView, ...] = ()
    publications: tuple[Mapping[str, Any], ...] = ()
    next: str = ""
    warnings: tuple[str, ...] = ()
    cost: CostView | None = None
    canary: Mapping[str, Any] | None = None
    determinism: Mapping[str, Any] | None = None
    held: str = ""  # why nothing new starts, as a worker said last
    input_rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # what became of them, where rows go out
    accepted: tuple[Mapping[str, str], ...] = ()  # warnings that a person took responsibility for: check, why, person
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None  # the newest
    release_digest: str | None = None
    release: ReleasedView | None = None
    single_user: bool = False
    groups: GroupsView | None = None
    dark: Mapping[str, Any] | None = None  # the name under which the candidate is readable, since when, by whom
    freeze: FreezeView | None = None  # live jobs are held off now
    rebases: tuple[Mapping[str, Any], ...] = ()  # partitions that live wrote and that were pinned again, oldest first


@dataclass(frozen=True, slots=True)
class FreezeView:
    """Partitions that a run holds live jobs off."""

    run_id: str
    product: str
    partitions: tuple[str, ...]
    reason: str
    requested_by: str
    started_by: str
    since: str
    until: str  # unless a command of the run goes on
    at_most: str  # whatever happens


@dataclass(frozen=True, slots=True)
class FrozenView:
    """Whether a live job may write."""

    table: str
    grain: str
    partitions: tuple[str, ...]  # asked for; none: any of the table's
    frozen: bool
    by: tuple[FreezeView, ...] = ()


@dataclass(frozen=True, slots=True)
class QuarantineReason:
    """Why rows of an input were set aside, and how many, where."""

    input: str
    kind: str  # cast | rule | transform
    reason: str
    rows: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetAsideRow:
    """One row that was set aside, as the source has it; classified columns are masked."""

    input: str
    partition: str
    kind: str
    reason: str
    chunk_id: str
    origin: str  # the file, table@snapshot, or the transform
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QuarantineView:
    """What a run set aside: the rows of adopted attempts."""

    run_id: str
    product: str
    state: str
    grain: str
    table: str | None  # None: there is none, or it was cleaned up
    inputs: Mapping[str, Mapping[str, int]]  # by input: rows in, used, quarantined, suppressed, set aside
    reasons: tuple[QuarantineReason, ...]
    rows: tuple[SetAsideRow, ...]
    masked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryView:
    """One thing that happened to a partition."""

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
    restored: str | None = None  # the snapshot whose rows a restore put back
    rebased: str | None = None  # the snapshot on which it was computed again, because live wrote it meanwhile


@dataclass(frozen=True, slots=True)
class WhyView:
    """Who changed this number, when, why, from what to what."""

    table: str
    partition: str
    key: Mapping[str, str]
    history: tuple[HistoryView, ...]
    note: str = ""


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
    before: str | None  # main right before it, which a restore may name; None: it is not there any more
    run_id: str | None = None
    publication_id: str | None = None
    accepted: bool = False  # what Errata holds for the truth of the partition


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
    """Partitions that were the truth by the same deed; ``run_id`` None: what was there before any run."""

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
    """Runs that fit a question; or, with ``accepted_at``, which run was the truth at that time."""

    runs: tuple[RunLine, ...] = ()
    accepted_at: str | None = None
    accepted: tuple[AcceptedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class HeadsView:
    """What the chain was held against: signed heads that were kept outside the ledger."""

    checked: int
    newest: int | None  # the last entry that one of them covers
    behind: int  # entries after it
    signatures: str  # checked | not checked
    signed_by: tuple[str, ...]
    lag_seconds: int  # how long the oldest publication without a head has been standing
    late: bool


@dataclass(frozen=True, slots=True)
class AuditView:
    """What became of the chain."""

    ok: bool
    entries: int
    first_bad: int | None
    reason: str | None
    head: str
    heads: HeadsView | None = None


@dataclass(frozen=True, slots=True)
class HeadView:
    """A signed head; ``envelope`` is what a file of it holds."""

    seq: int
    hash: str
    at: str
    ledger: str
    project: str
    key_id: str
    files: tuple[str, ...]
    already: bool
    envelope: str


@dataclass(frozen=True, slots=True)
class ErasedView:
    """A person who was forgotten, and what goes on naming them."""

    pseudonym: str
    entries: int  # audit entries under the pseudonym, which stay and verify
    already: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyView:
    """A new key pair."""

    key_id: str
    private: str
    public: str


@dataclass(frozen=True, slots=True)
class CleanupView:
    """What was, or would be, removed."""

    removed: tuple[Mapping[str, str], ...]
    kept: tuple[Mapping[str, str], ...] = field(default_factory=tuple)
    dry_run: bool = False
