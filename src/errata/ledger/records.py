"""Records that the ledger returns: frozen copies of its rows. Pure.

Times are ISO instants of the database's clock; leases are milliseconds since 1970 of the same clock. Snapshot ids are
text, as everywhere in Errata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from errata.canonical import LEFT_OUT
from errata.model.consumer.outbox import WAITS, Effect, ItemState
from errata.model.run import AttemptState, ChunkState, PublicationState, RunCounts, RunState
from errata.model.waves import WaveState


class CandidateState(StrEnum):
    """State of a candidate."""

    INTENDED = "intended"
    MADE = "made"
    ABANDONED = "abandoned"


class PartitionState(StrEnum):
    """Publication state of one partition of a run."""

    UNPUBLISHED = "unpublished"
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run: a sealed manifest and its current state."""

    run_id: str
    manifest_digest: str
    product: str
    table: str
    partitions: tuple[str, ...]
    state: RunState
    planned_by: str
    reason: str
    planned_at: str
    updated_at: str
    audit_seq: int
    supersedes: str | None = None
    kind: str | None = None
    wave: int | None = None  # partitions and state are those of this wave; None: of the whole run


@dataclass(frozen=True, slots=True)
class Owner:
    """A worker process; ``started`` distinguishes it from a later process with the same pid."""

    name: str
    host: str
    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A chunk: what was planned (``rows``, ``bytes``) and, once done, what its adopted attempt wrote."""

    run_id: str
    chunk_id: str
    position: int
    partitions: tuple[str, ...]
    rows: int
    bytes: int
    state: ChunkState
    fence: int
    tries: int  # since the last retry; interrupted attempts do not count
    snapshot_id: str | None
    output_rows: int | None
    output_files: int | None
    output_bytes: int | None
    seconds: float | None
    error_code: str | None
    error: str | None
    wave: int = 1
    losses: int = 0
    not_before: int = 0
    origin: str | None = None  # the chunks it replaced, or the rebase that added it; None if planned


@dataclass(frozen=True, slots=True)
class WaveRecord:
    """A wave of a run: partitions that are judged and published together."""

    n: int
    partitions: tuple[str, ...]
    state: WaveState
    candidate_n: int | None = None  # the candidate of the newest verdict
    judged: RunState | None = None  # what that verdict leads to
    judged_at: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt at a chunk."""

    run_id: str
    chunk_id: str
    fence: int
    owner: Owner
    state: AttemptState
    started_at: str
    heartbeat_at: str
    lease_until: int
    ended_at: str | None
    snapshot_id: str | None
    rows: int | None
    files: int | None
    bytes: int | None
    seconds: float | None
    error_code: str | None
    error: str | None
    partitions: tuple[str, ...] = ()
    cost: Mapping[str, Any] = field(default_factory=dict)
    # of the list of erased subjects that it read
    erasure_snapshot_id: str | None = field(default=None, metadata=LEFT_OUT)

    @property
    def attempt_id(self) -> str:
        """``<run>/<chunk>/<fence>/<started>``, as the staged snapshot carries it; unique in time."""
        return f"{self.run_id}/{self.chunk_id}/{self.fence}/{self.started_at}"


@dataclass(frozen=True, slots=True)
class ChunkCounts(RunCounts):
    """Chunks of a run by state; ``recomputed`` counts those that needed another attempt, ``rows`` the adopted rows."""

    recomputed: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class RunPace:
    """Recent pace of a run over all its workers, for run-wide limits. Times are the database's."""

    now_ms: int
    running: int
    adopted: int
    last_ended_ms: int | None
    recent: tuple[tuple[int, int, int], ...]  # (started ms, input rows, input bytes), newest attempts, oldest first
    adopted_last_hour: tuple[int, ...]  # times in ms, oldest first


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """The n-th candidate of a run; ``digest`` identifies the adopted chunks it is assembled from."""

    run_id: str
    n: int
    branch: str
    digest: str
    state: CandidateState
    base_snapshot_id: str | None
    snapshot_id: str | None
    detail: Mapping[str, Any]
    at: str


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """The gate's verdict on one candidate's measurements."""

    run_id: str
    candidate_n: int
    passed: bool
    checks: tuple[Mapping[str, Any], ...]
    thresholds_digest: str
    person: str
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class WarningAcceptance:
    """A warning that a person accepted; ``findings`` is the digest of the findings they accepted."""

    run_id: str
    check: str
    why: str
    person: str
    at: str
    findings: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """Permission to publish a validated candidate; ``digest`` is the digest of ``subject``."""

    release_id: int
    run_id: str
    candidate_n: int
    digest: str
    subject: Mapping[str, Any]
    kind: str  # release | publish (publishing counts as the release) | automatic (the gate passed without findings)
    person: str
    note: str
    break_glass: str
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class StandingDecision:
    """One person's decision on a standing approval."""

    digest: str
    person: str
    decision: str  # approved | revoked
    note: str
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class StandingUse:
    """A run that a standing approval covered when it was sealed."""

    run_id: str
    digest: str
    product: str
    partitions: int
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class StandingRecord:
    """A standing approval: its subject, whose digest people decide on, their decisions, and its uses; oldest first."""

    digest: str
    product: str
    subject: Mapping[str, Any]
    at: str
    decisions: tuple[StandingDecision, ...]
    uses: tuple[StandingUse, ...]


@dataclass(frozen=True, slots=True)
class PublicationRecord:
    """One publication or rollback: its intent and, once settled, its outcome."""

    pub_id: str
    run_id: str
    n: int
    kind: str  # publish | rollback
    state: PublicationState
    table: str
    partitions: tuple[str, ...]
    person: str
    reason: str
    base_snapshot_id: str | None
    undo_branch: str
    release: Mapping[str, Any]
    owner: Owner | None
    previous_run_state: RunState
    result_snapshot_id: str | None
    data_files_written: int | None
    intended_at: str
    settled_at: str | None
    lease_until: int
    details: tuple[str, ...] = field(default=())  # part digests of the intent, one per commit attempt, oldest first

    @property
    def detail(self) -> str:
        """Part digest of the latest detail."""
        return self.details[-1]


@dataclass(frozen=True, slots=True)
class AcceptanceRecord:
    """Which run the content of a partition comes from as of this row; ``run_id`` None means from before Errata.

    ``pub_id`` is the publication or rollback that wrote this row; ``origin_pub_id`` is the publication that committed
    the content (a rollback restores its undo set).
    """

    seq: int
    table: str
    partition: str
    run_id: str | None
    pub_id: str
    origin_pub_id: str | None
    action: str  # published | rolled_back
    at: str
    stands_on: int | None = None


@dataclass(frozen=True, slots=True)
class HazardRecord:
    """A rollback whose restored files snapshot expiry by other jobs may still delete."""

    pub_id: str
    table: str
    snapshot_id: str
    opened_at: str
    closed_at: str | None


@dataclass(frozen=True, slots=True)
class ErasedRecord:
    """Result of erasing a person."""

    pseudonym: str
    entries: int  # audit entries under the pseudonym; they stay
    already: bool
    remains: str = ""  # what is still to be removed from the database's files
    accounts: tuple[str, ...] = ()  # OS accounts that only this person used; erased separately


@dataclass(frozen=True, slots=True)
class FreezeRecord:
    """Partitions of a wave that keeps live jobs out; ``granted_at`` is None while earlier live jobs may still write."""

    run_id: str
    wave: int
    table: str
    partitions: tuple[str, ...]
    person: str
    opened_at: str
    granted_at: str | None
    lease_until: int
    most_until: int
    ended_at: str | None
    is_open: bool  # at the time of reading

    @property
    def until(self) -> str:
        """When the freeze lapses unless the run renews it."""
        return _to_instant(self.lease_until)

    @property
    def at_most(self) -> str:
        """When the freeze ends at the latest."""
        return _to_instant(self.most_until)


@dataclass(frozen=True, slots=True)
class LiveWriteRecord:
    """Lease of a live job that may write; without partitions it covers the whole table."""

    token: str
    table: str
    partitions: tuple[str, ...]
    owner: Owner
    started_at: str
    lease_until: int


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """One campaign: a sealed manifest, and whether it may still continue."""

    campaign_id: str
    digest: str
    product: str
    planned_by: str
    reason: str
    planned_at: str
    valid_until: int
    state: str  # open | declined | cancelled
    supersedes: str | None
    audit_seq: int
    is_expired: bool = False  # at the time of reading

    @property
    def until(self) -> str:
        """When members can no longer start and their partitions are no longer reserved."""
        return _to_instant(self.valid_until)


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """The run of a campaign's member, which was approved with the campaign."""

    run_id: str
    campaign_id: str
    product: str
    campaign_digest: str
    digest: str
    derived: str  # digest of what its manifest was derived from
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One attempt at a model of dbt in a campaign; ``detail`` is the digest of its results."""

    campaign_id: str
    step: str
    outcome: str  # built | failed
    detail: str
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """What is owed after a decision or a commit, and how far its payment has come."""

    item_id: int
    key: str
    queue: str
    effect: Effect
    event: str
    consumer: str
    run_id: str
    pub_id: str | None
    table: str
    partitions: tuple[str, ...]  # empty: the whole table
    payload: Mapping[str, Any]
    state: ItemState
    seq: int | None  # grows with every item that becomes owed
    attempts: int  # with the one in progress
    not_before: int
    last_error: str | None
    owner: Owner | None
    fence: int
    lease_until: int
    progress: Mapping[str, Any]
    result: Mapping[str, Any]
    at: str
    owed_at: str | None
    ended_at: str | None
    waived_by: str | None
    waived_why: str | None
    waived_ready: bool
    audit_seq: int

    @property
    def is_open(self) -> bool:
        """Whether it is still to be paid."""
        return self.state in (ItemState.OWED, ItemState.FAILED)

    @property
    def waits(self) -> str:
        """What it waits for, if that is no failed attempt; empty otherwise."""
        return str(self.progress.get(WAITS, "")) if self.state is ItemState.OWED and not self.last_error else ""


def _to_instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def map_partitions_to_chunks(chunks: Iterable[ChunkRecord]) -> dict[str, str]:
    """The chunk each partition belongs to: the last one, in the given order, that names it."""
    return {name: chunk.chunk_id for chunk in chunks for name in chunk.partitions}


def covers(detail: Mapping[str, Any], partitions: Collection[str]) -> bool:
    """Whether a candidate with this detail has all of these partitions."""
    rows = detail.get("rows")
    return rows is None or rows.keys() >= set(partitions)
