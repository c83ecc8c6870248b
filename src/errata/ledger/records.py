"""What the ledger hands out: frozen copies of its rows. Pure.

Times are ISO instants of the database's clock; leases are milliseconds since 1970 of the same clock. Snapshot ids are
text, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from errata.model.run import AttemptState, ChunkState, PublicationState, RunState


class CandidateState(StrEnum):
    """Where a candidate stands."""

    INTENDED = "intended"
    MADE = "made"
    ABANDONED = "abandoned"


class PartitionState(StrEnum):
    """What became of one partition of a run."""

    UNPUBLISHED = "unpublished"
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The life of one manifest, as it stands."""

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


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """One person's decision over one digest."""

    run_id: str
    person: str
    decision: str  # approved | declined
    digest: str
    note: str
    at: str
    audit_seq: int
    break_glass: str = ""  # why no second person was waited for


@dataclass(frozen=True, slots=True)
class Owner:
    """A worker process; ``started`` tells it from a later process with the same number."""

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
    tries: int  # since the last retry; an interrupted one does not count
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
    origin: str | None = None  # the chunks whose partitions it took over


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One try at a chunk."""

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

    @property
    def attempt_id(self) -> str:
        """``<run>/<chunk>/<fence>/<started>``, as the staged snapshot carries it; unique in time."""
        return f"{self.run_id}/{self.chunk_id}/{self.fence}/{self.started_at}"


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """The chunks of a run by state; ``recomputed`` needed more than one attempt; ``rows`` were adopted."""

    total: int = 0
    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    quarantined: int = 0
    recomputed: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class RunPace:
    """How a run has been going: what limits over all its workers are judged by. Times by the database's clock."""

    now_ms: int
    running: int
    adopted: int
    last_ended_ms: int | None
    recent: tuple[tuple[int, int, int], ...]  # (started ms, rows, input bytes) of the newest attempts, oldest first
    adopted_last_hour: tuple[int, ...]  # when, oldest first


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """The n-th candidate of a run; ``digest`` names the adopted set it is made of."""

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
class MeasurementRecord:
    """One number of a scan; ``value`` is text so that no digit is lost. ``exact`` is false for floating point."""

    scope: str
    partition: str | None
    name: str
    value: str | None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """The judgement of one candidate's measurements."""

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
    """A person took responsibility for a warning; ``findings`` is the digest of what it was about."""

    run_id: str
    check: str
    why: str
    person: str
    at: str
    findings: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One decision that a candidate, as it was judged, goes to readers; ``subject`` is what ``digest`` is over."""

    release_id: int
    run_id: str
    candidate_n: int
    digest: str
    subject: Mapping[str, Any]
    kind: str  # release | publish: release and deed in one | automatic: the gate found nothing
    person: str
    note: str
    break_glass: str
    at: str
    audit_seq: int


@dataclass(frozen=True, slots=True)
class PublicationRecord:
    """One publication or rollback: its intent and, once looked up, its outcome."""

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
    details: tuple[str, ...] = field(default=())  # part digests of every try, oldest first

    @property
    def detail(self) -> str:
        """The digest of the latest detail."""
        return self.details[-1]


@dataclass(frozen=True, slots=True)
class AcceptanceRecord:
    """Which run is the truth in a partition from here on; ``run_id`` None is what was there before Errata.

    ``pub_id`` caused this row; ``origin_pub_id`` is the publication that brought the content in (its undo set is what
    a rollback restores).
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
    """After a rollback, expiry by others may delete files that are live again."""

    pub_id: str
    table: str
    snapshot_id: str
    opened_at: str
    closed_at: str | None


@dataclass(frozen=True, slots=True)
class ErasedRecord:
    """A person who was forgotten."""

    pseudonym: str
    entries: int  # audit entries under the pseudonym, which stay
    older_entries: int  # entries from before there were pseudonyms, which go on naming the person
    already: bool
    remains: str = ""  # what could not be taken out of the database's files yet
    accounts: tuple[str, ...] = ()  # of the operating system, through which nobody else acted: names of their own


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """The outcome of walking the chain.

    ``first_bad`` is the first entry that is wrong or missing, or whose numbers are not the stored ones; None when all
    is well, or when a row is wrong that no entry speaks of.
    """

    ok: bool
    entries: int
    first_bad: int | None
    reason: str | None
    head: str


@dataclass(frozen=True, slots=True)
class FreezeRecord:
    """Partitions that a run holds live jobs off; ``granted_at`` None: some that began before still write."""

    run_id: str
    table: str
    partitions: tuple[str, ...]
    person: str
    opened_at: str
    granted_at: str | None
    lease_until: int
    most_until: int
    ended_at: str | None
    is_open: bool  # when it was read

    @property
    def until(self) -> str:
        """When it lapses unless a command of the run goes on."""
        return _to_instant(self.lease_until)

    @property
    def at_most(self) -> str:
        """When it ends whatever happens."""
        return _to_instant(self.most_until)


@dataclass(frozen=True, slots=True)
class LiveWriteRecord:
    """A live job that may write; no partitions: any of the table's."""

    token: str
    table: str
    partitions: tuple[str, ...]
    owner: Owner
    started_at: str
    lease_until: int


def _to_instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def map_partitions_to_chunks(chunks: Iterable[ChunkRecord]) -> dict[str, str]:
    """The chunk that each partition belongs to: of those in their order, the last that names it."""
    return {name: chunk.chunk_id for chunk in chunks for name in chunk.partitions}
