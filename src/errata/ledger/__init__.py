"""The ledger: the one durable truth about runs, chunks, attempts, decisions, publications and who did what.

It decides nothing about data. It keeps what the other steps decided, refuses what the state machine does not allow
(again in the database, by triggers), and writes every change together with its audit entry. It touches its own
database only; what became of a commit on a live table is found out by the publisher and told to the ledger.

::

    records      frozen values handed out        schema, rules, triggers     tables and what they enforce
    database     transactions, the clock         sqlite, postgres            what differs, behind dialect
    migrate      versions of the schema          audit                       the hash chain
    runs         manifests and states            decisions                   approvals, accepted warnings
    chunks       claims, fences, results         fates                       retries, splits, quarantine
    facts        found out once per run          progress                    counts, pace
    candidates   measurements, verdicts          publications, acceptance    intents, outcomes, truth per partition
    measured     the digest of the numbers       filesystem                  where the file may lie
    parts        content by digest               tables                      hazards, guards
    releases     what people let out             holds                       the wait between two groups
    rebases      partitions that live won        freezes, thawing            live jobs that are held off, or write
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from errata.ledger.acceptance import Acceptances
from errata.ledger.audit import entry_hash
from errata.ledger.candidates import Candidates
from errata.ledger.chunks import Chunks
from errata.ledger.database import Database
from errata.ledger.decisions import Decisions
from errata.ledger.facts import Facts
from errata.ledger.fates import Fates
from errata.ledger.freezes import Freezes
from errata.ledger.migrate import bring_up, missing_triggers
from errata.ledger.owners import owner_is_dead, this_owner
from errata.ledger.parts import Parts
from errata.ledger.people import People
from errata.ledger.progress import Progress
from errata.ledger.publications import Publications
from errata.ledger.rebases import REBASE, Rebases
from errata.ledger.records import (
    AcceptanceRecord,
    ApprovalRecord,
    AttemptRecord,
    AuditCheck,
    CandidateRecord,
    CandidateState,
    ChunkRecord,
    Counts,
    ErasedRecord,
    FreezeRecord,
    HazardRecord,
    LiveWriteRecord,
    Measurement,
    Owner,
    Pace,
    PartitionState,
    PublicationRecord,
    ReleaseRecord,
    RunRecord,
    VerdictRecord,
    WarningAcceptance,
)
from errata.ledger.releases import Releases
from errata.ledger.runs import Runs
from errata.ledger.subjects import Wrapping
from errata.ledger.tables import Tables

__all__ = [
    "REBASE",
    "AcceptanceRecord",
    "ApprovalRecord",
    "AttemptRecord",
    "AuditCheck",
    "CandidateRecord",
    "CandidateState",
    "ChunkRecord",
    "Counts",
    "ErasedRecord",
    "FreezeRecord",
    "HazardRecord",
    "Ledger",
    "LiveWriteRecord",
    "Measurement",
    "Owner",
    "Pace",
    "PartitionState",
    "PublicationRecord",
    "ReleaseRecord",
    "RunRecord",
    "VerdictRecord",
    "WarningAcceptance",
    "entry_hash",
    "owner_is_dead",
    "this_owner",
]


class Ledger(
    Runs,
    Parts,
    Decisions,
    Releases,
    Facts,
    Chunks,
    Fates,
    Progress,
    Candidates,
    Publications,
    Acceptances,
    Tables,
    Freezes,
    Rebases,
    People,
):
    """One open ledger. Safe to share between threads; a child process opens its own."""

    def __init__(self, database: Database, ledger_id: str) -> None:
        super().__init__(database)
        self.ledger_id = ledger_id

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = True,
        redact: Callable[[str], str] = str,
        wrapping: Wrapping | None = None,
    ) -> Self:
        """Open the ledger at a SQLAlchemy URL; creates it, and brings it to the newest schema, as needed.

        ``redact`` takes secrets out of every text that is kept. ``wrapping`` gives the key that wraps those of people.
        """
        database = Database(url, create=create, redact=redact, wrapping=wrapping)
        try:
            return cls(database, bring_up(database, create=create))
        except BaseException:
            database.close()
            raise

    def now(self) -> str:
        """The database's time as an ISO instant."""
        return self._read(self._database.clock)[0]

    def now_ms(self) -> int:
        """The database's time in milliseconds since 1970, as leases are kept."""
        return self._read(self._database.clock)[1]

    def missing_triggers(self) -> tuple[str, ...]:
        """Rules that the database no longer enforces; empty when all is well."""
        return self._read(lambda conn: missing_triggers(conn, self._database.dialect))

    def owns_tables(self) -> bool:
        """Whether this user could lift the rules: whoever writes a file, or owns the tables."""
        return self._read(self._database.dialect.is_owner)

    def database(self) -> str:
        """Which database this is, and where; for people."""
        return f"{self._read(self._database.dialect.version)} at {self._database.place}"

    def close(self) -> None:
        """Give back every connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
