"""A plan with its guardrail results. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.canonical import LEFT_OUT
from errata.model.recording.declaration import name_recording
from errata.views.approval import ApprovalView, BreakGlassView, QuorumView, ReleasedView
from errata.views.impact import ImpactView


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """A snapshot of an input, and the partitions of the run that read it."""

    snapshot_id: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogView:
    """The part of a change log that the run reads. Positions are text, because not every JSON reader keeps 64 bits."""

    reading: str  # state | changes | history
    position: str  # up to and including this commit
    base: str  # from this snapshot, or this position of an earlier run, on
    transactions: str  # the input with the ends of transactions
    since: Mapping[str, str] = field(default_factory=dict)  # by partition: changes after it
    left_out: int = 0  # transactions without an END
    left_out_names: tuple[str, ...] = ()  # the first of them


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
    row_rules: tuple[str, ...] = ()  # rules that remove rows, with their action
    version: str | None = None  # the tag that named the snapshot
    grain: str = ""  # of the input's partitions; empty if it is read whole
    # where partitions read different snapshots: each snapshot with its partitions
    snapshots: tuple[SnapshotView, ...] = field(default=(), metadata=LEFT_OUT)
    recording: str | None = field(default=None, metadata=LEFT_OUT)  # the source whose recorded files are read
    kafka: str | None = field(default=None, metadata=LEFT_OUT)  # kafka://cluster/topic
    # of a topic: sealed offsets [from, to) that the run reads, by topic partition
    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict, metadata=LEFT_OUT)
    log: LogView | None = field(default=None, metadata=LEFT_OUT)  # of an input by change data capture
    transactions_of: str | None = field(default=None, metadata=LEFT_OUT)  # the input whose transactions end here

    @property
    def location(self) -> str:
        """Table, file pattern, topic or recording; empty for the product's own output."""
        return self.table or self.files or self.kafka or name_recording(self.recording)


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
    """Result of one guardrail."""

    rule: str
    level: str
    message: str
    override: str | None = None


@dataclass(frozen=True, slots=True)
class RuleChangeView:
    """A rule of the gate that differs from that of an earlier run; None: the run has no such rule."""

    rule: str
    was: str | None
    now: str | None
    run_id: str  # the earlier run

    def text(self) -> str:
        """One sentence for people."""
        if self.was is None:
            told = f"new, {self.now}"
        elif self.now is None:
            told = f"removed, was {self.was}"
        else:
            told = f"{self.was} → {self.now}"
        return f"{self.rule}: {told} (since {self.run_id})"


@dataclass(frozen=True, slots=True)
class EstimateView:
    """Estimated cost of the run."""

    rows: int
    bytes: int
    seconds: int
    usd: str
    seconds_low: int
    seconds_high: int
    basis: str


@dataclass(frozen=True, slots=True)
class DeadlineView:
    """Whether and how a deadline can be met.

    ``seconds``, ``core_hours`` and ``usd`` are upper bounds, for the configured cores if they suffice, otherwise for
    the cores needed; ``cores_needed`` None: no number of cores meets it, and ``basis`` names the limit.
    """

    by: str
    available_seconds: int  # within the allowed hours
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
class StageView:
    """One stage of a run: the command that does it, and what it reads and writes."""

    name: str
    command: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


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
    throttle: Mapping[str, Any] = field(default_factory=dict)  # limits that are set now
    deadline: DeadlineView | None = None
    new_columns: Mapping[str, str] = field(default_factory=dict)  # visible with the publication
    quorum: QuorumView | None = None
    break_glass: BreakGlassView | None = None  # the newest
    release_digest: str | None = None  # digest for a release; None before the gate has passed
    release: ReleasedView | None = None
    manual: bool = True
    restored: Mapping[str, Any] | None = None  # the snapshot whose rows are restored; no transform runs
    publish: Mapping[str, Any] = field(default_factory=dict)  # the mode and its settings
    rewrite: Mapping[str, Any] | None = None  # why publication writes data files, and how many
    rules_changed: tuple[RuleChangeView, ...] = ()  # against the superseded run
    # by name: the class of each sink of the transform, and what the run does with it
    sinks: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)
    # by kind: the cluster on which workers may be started, with what is sealed of it
    clusters: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)
    # tables in warehouses that follow, according to the current project files; with what decides about them
    copies: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    # of a repair of copies, what is replaced in each: copy, partitions, copy_rows (now), lake_rows (accepted)
    repairs: tuple[Mapping[str, Any], ...] = field(default=(), metadata=LEFT_OUT)
    touches: ImpactView | None = None  # what reads the corrected partitions, according to the current project files

    @property
    def id(self) -> str:
        """The run id."""
        return self.run_id

    @property
    def digest(self) -> str:
        """The manifest digest, which an approval names."""
        return self.manifest_digest

    def _repr_html_(self) -> str:
        from errata.views.notebook import render_plan

        return render_plan(self)


@dataclass(frozen=True, slots=True)
class ExplainedPlanView(PlanView):
    """A plan with the stages of its run, in order."""

    stages: tuple[StageView, ...] = ()
