"""The ledger: the durable record of runs, chunks, attempts, decisions and publications, and of who did what.

The ledger decides nothing about data. It refuses what the state machine does not allow (triggers in the database refuse
it as well) and writes every change together with its audit entry.

::

    records    frozen values that the ledger returns
    outbox     what is owed after a decision or a commit, and its payment
    readiness  holds of consumers, and what decides whether partitions are ready
    recordings files that were imported or recorded
    figures    what metrics are made of
    store      runs, chunks, approvals, candidates, releases, publications, … one module each
    audit      the hash chain, the check of rows against it, excerpts for evidence
    privacy    pseudonyms of people and text that can be erased
    schema     tables, trigger rules as data, triggers as SQL
    db         transactions and the clock, SQLite and PostgreSQL, migrations
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from errata.errors import NotFound
from errata.ledger.audit.chain import entry_hash
from errata.ledger.audit.log import AuditLog
from errata.ledger.cluster.submissions import Submissions
from errata.ledger.db.database import Database
from errata.ledger.db.migrate import find_missing_triggers
from errata.ledger.figures.figures import Figures
from errata.ledger.figures.readings import Readings
from errata.ledger.outbox.following import FollowRule, write_following
from errata.ledger.outbox.payments import Outbox
from errata.ledger.privacy.people import People
from errata.ledger.privacy.pseudonyms import WrappingKeyLoader
from errata.ledger.readiness.holds import Holds
from errata.ledger.readiness.partition_claims import PartitionClaims
from errata.ledger.recordings.recorded_files import RecordedFiles
from errata.ledger.records import (
    AcceptanceRecord,
    AttemptRecord,
    CampaignRecord,
    CandidateRecord,
    CandidateState,
    ChunkCounts,
    ChunkRecord,
    ErasedRecord,
    FreezeRecord,
    HazardRecord,
    LiveWriteRecord,
    MemberRecord,
    OutboxItem,
    Owner,
    PartitionState,
    PublicationRecord,
    ReleaseRecord,
    RunPace,
    RunRecord,
    StandingDecision,
    StandingRecord,
    StandingUse,
    StepRecord,
    VerdictRecord,
    WarningAcceptance,
    WaveRecord,
)
from errata.ledger.store.approvals import Decisions
from errata.ledger.store.campaign_members import CampaignMembers
from errata.ledger.store.campaigns import Campaigns
from errata.ledger.store.candidates import Candidates
from errata.ledger.store.chunk_outcomes import ChunkRetries
from errata.ledger.store.chunks import Chunks
from errata.ledger.store.facts import RunFacts
from errata.ledger.store.freezes import LiveWrites
from errata.ledger.store.guards import TableGuards
from errata.ledger.store.partition_history import PartitionHistory
from errata.ledger.store.parts import Parts
from errata.ledger.store.progress import RunProgress
from errata.ledger.store.publications import Publications
from errata.ledger.store.rebases import REBASE, Erasures, Rebases
from errata.ledger.store.releases import Releases
from errata.ledger.store.runs import Runs
from errata.ledger.store.standing import StandingApprovals
from errata.ledger.store.wave_states import Waves
from errata.ledger.store.workers import current_owner, is_owner_dead
from errata.model.approval import ApprovalRecord
from errata.model.consumer.hold import HoldRecord

__all__ = [
    "REBASE",
    "AcceptanceRecord",
    "ApprovalRecord",
    "AttemptRecord",
    "CampaignRecord",
    "CandidateRecord",
    "CandidateState",
    "ChunkCounts",
    "ChunkRecord",
    "ErasedRecord",
    "FreezeRecord",
    "HazardRecord",
    "HoldRecord",
    "Ledger",
    "LiveWriteRecord",
    "MemberRecord",
    "OutboxItem",
    "Owner",
    "PartitionState",
    "PublicationRecord",
    "ReleaseRecord",
    "RunPace",
    "RunRecord",
    "StandingDecision",
    "StandingRecord",
    "StandingUse",
    "StepRecord",
    "VerdictRecord",
    "WarningAcceptance",
    "WaveRecord",
    "current_owner",
    "entry_hash",
    "is_owner_dead",
]

T = TypeVar("T")


class Ledger:
    """One open ledger. Safe to share between threads; a child process opens its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.audit = AuditLog(database)
        self.runs = Runs(database)
        self.parts = Parts(database)
        self.approvals = Decisions(database)
        self.releases = Releases(database)
        self.standing = StandingApprovals(database)
        self.facts = RunFacts(database)
        self.submissions = Submissions(database)
        self.chunks = Chunks(database)
        self.outcomes = ChunkRetries(database)
        self.progress = RunProgress(database)
        self.candidates = Candidates(database)
        self.publications = Publications(database)
        self.partitions = PartitionHistory(database)
        self.outbox = Outbox(database)
        self.guards = TableGuards(database)
        self.freezes = LiveWrites(database)
        self.holds = Holds(database)
        self.readiness = PartitionClaims(database)
        self.rebases = Rebases(database)
        self.erasures = Erasures(database)
        self.campaigns = Campaigns(database)
        self.members = CampaignMembers(database)
        self.waves = Waves(database)
        self.people = People(database)
        self.recordings = RecordedFiles(database)
        self.readings = Readings(database)
        self.figures = Figures(database)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = True,
        redact: Callable[[str], str] = str,
        wrapping: WrappingKeyLoader | None = None,
    ) -> Self:
        """Open the ledger at a SQLAlchemy URL; create it or migrate it to the newest schema as needed.

        ``redact`` removes secrets from every stored text. ``wrapping`` loads the key that encrypts people's keys.
        """
        database = Database(url, redact=redact, wrapping=wrapping)
        try:
            database.open(create=create)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @classmethod
    def attach(cls, url: str, *, redact: Callable[[str], str] = str, wrapping: WrappingKeyLoader | None = None) -> Self:
        """The ledger at a URL; if there is none, every use of it but :meth:`create` raises ``NotFound``."""
        try:
            return cls.open(url, create=False, redact=redact, wrapping=wrapping)
        except NotFound:
            return cls(Database(url, redact=redact, wrapping=wrapping))

    def follow(self, rule: FollowRule) -> None:
        """From now on, owe what the rule says about audit entries, in the transactions that append them."""
        self._database.follow = lambda tx: write_following(tx, rule)

    def exists(self) -> bool:
        """Whether there is a ledger."""
        try:
            self._database.open()
        except NotFound:
            return False
        return True

    def create(self) -> None:
        """Create the ledger if there is none; only commands that record something do so."""
        self._database.open(create=True)

    @contextmanager
    def or_empty(self) -> Iterator[Ledger]:
        """This ledger, or an empty temporary one if there is none, for those who only read."""
        if self.exists():
            yield self
            return
        with TemporaryDirectory() as place, Ledger.open(f"sqlite:///{place}/ledger.db") as empty:
            yield empty

    @property
    def ledger_id(self) -> str:
        """Id of the ledger, which every plan contains."""
        return self._database.open()

    def read_together(self, work: Callable[[], T]) -> T:
        """Run ``work``, which only reads, on one consistent view of the ledger instead of one for each read."""
        return self._database.read_together(work)

    def now(self) -> str:
        """The database's time as an ISO instant."""
        return self._database.read(self._database.clock)[0]

    def now_ms(self) -> int:
        """The database's time in milliseconds since 1970, the unit of leases."""
        return self._database.read(self._database.clock)[1]

    def missing_triggers(self) -> tuple[str, ...]:
        """Triggers that are missing or altered; empty when the database enforces all rules."""
        return self._database.read(lambda conn: find_missing_triggers(conn, self._database.dialect))

    def owns_tables(self) -> bool:
        """Whether this database user could drop the triggers: always with SQLite, the tables' owner with PostgreSQL."""
        return self._database.read(self._database.dialect.is_owner)

    def database(self) -> str:
        """Name, version and location of the database, for messages."""
        return f"{self._database.read(self._database.dialect.version)} at {self.place}"

    @property
    def place(self) -> str:
        """Location of the database, for messages; without user and password."""
        return self._database.place

    def scalar(self, query: str) -> Any:
        """The first value of a read-only query, for health signals."""
        return self._database.read(lambda conn: _read_scalar(conn, query))

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_scalar(conn: Connection, query: str) -> Any:
    # PostgreSQL read transactions are read only; SQLite needs the pragma
    is_sqlite = conn.dialect.name == "sqlite"
    if is_sqlite:
        conn.exec_driver_sql("PRAGMA query_only = ON")
    try:
        return conn.exec_driver_sql(query).scalar()
    finally:
        if is_sqlite:
            conn.exec_driver_sql("PRAGMA query_only = OFF")
