"""The table that a contract is checked on, with the ports that work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.model.refs import run_branch
from errata.ports.compute import StagingTable
from errata.ports.copies import LakeReader
from errata.ports.measure import Measurer
from errata.ports.publish import ContentPort, PublicationCommit, PublishTable
from errata.ports.tables import HistoryReader, InputReader, OutsideReader, RowReader, TagKeeper, TargetReader
from errata.testing.copies.lake_rows import MemoryLakeReader
from errata.testing.history import MemoryHistory
from errata.testing.lake import Lake
from errata.testing.measure import MemoryContent, MemoryMeasurer
from errata.testing.publishing import MemoryPublishing
from errata.testing.readers import MemoryOutside, MemoryReaders
from errata.testing.refs import MemoryTags
from errata.testing.rows import MemoryRows
from errata.testing.staging import ATTEMPT, MemoryStaging, append_rows
from errata.testing.table import MemoryTable

Sale = tuple[str, str, str]
"""A row: day, account and amount, as text."""

COLUMNS = {"day": "date", "account": "string", "amount": "decimal(12, 2)"}
FIRST, SECOND, THIRD = "2026-01-01", "2026-01-02", "2026-01-03"
DAYS = (FIRST, SECOND, THIRD)
HISTORY: tuple[Sale, ...] = ((FIRST, "a", "1.00"), (FIRST, "b", "2.00"), (SECOND, "a", "4.00"))
"""What the table holds when a check begins, written by one append."""
NOT_A_SNAPSHOT = "4611686018427387904"
RUN = "bf-20260301-sales-0a1b2c3d"


class Subject(Protocol):
    """One table of :data:`COLUMNS`, partitioned by ``day``, that holds :data:`HISTORY`; and everybody who uses it."""

    @property
    def table(self) -> str:
        """Its name."""

    @property
    def publishing(self) -> PublishTable: ...

    @property
    def staging(self) -> StagingTable: ...

    @property
    def pins(self) -> TagKeeper: ...

    @property
    def targets(self) -> TargetReader: ...

    @property
    def inputs(self) -> InputReader: ...

    @property
    def history(self) -> HistoryReader: ...

    @property
    def outside(self) -> OutsideReader: ...

    @property
    def rows(self) -> RowReader: ...

    @property
    def lake_rows(self) -> LakeReader: ...

    @property
    def measurer(self) -> Measurer: ...

    @property
    def content(self) -> ContentPort: ...

    def append(self, *sales: Sale) -> None:
        """Append rows to main, as a live job does."""

    def delete(self, day: str, account: str) -> None:
        """Hide a row by a delete file, as a merge-on-read job does."""

    def compact(self) -> None:
        """Rewrite all data files; the rows stay."""

    def expire(self) -> None:
        """Expire every snapshot that no ref keeps."""

    def expire_and_clear_parents(self) -> None:
        """The same as PyIceberg does it: what is left forgets the parents that are gone."""

    def stage(self, run_id: str, attempt: str, sales: Sequence[Sale]) -> None:
        """Append rows to a run's branch with the property ``errata.attempt``."""

    def read(self, snapshot_id: str) -> list[Sale]:
        """The rows of a snapshot, sorted."""


@dataclass
class MemorySubject:
    """A table in memory."""

    table: str = "lake.fin.contract"
    lake: Lake = field(default_factory=Lake)

    def __post_init__(self) -> None:
        self.held: MemoryTable = self.lake.create(self.table, COLUMNS, partition=("day", "identity"))
        self.publishing = MemoryPublishing(self.lake)
        self.staging = MemoryStaging(self.lake)
        self.pins = MemoryTags(self.lake)
        self.targets = MemoryReaders(self.lake)
        self.inputs = self.targets
        self.history = MemoryHistory(self.lake)
        self.outside = MemoryOutside(self.lake)
        self.rows = MemoryRows(self.lake)
        self.lake_rows = MemoryLakeReader(self.lake)
        parts: Mapping[str, bytes] = {}
        self.measurer = MemoryMeasurer(self.lake, parts.__getitem__)
        self.content = MemoryContent(self.measurer)
        self.append(*HISTORY)

    def append(self, *sales: Sale) -> None:
        """See the protocol."""
        self.held.append([dict(zip(COLUMNS, sale, strict=True)) for sale in sales])

    def delete(self, day: str, account: str) -> None:
        """See the protocol."""
        self.held.delete(day, account=account)

    def compact(self) -> None:
        """See the protocol."""
        self.held.compact()

    def expire(self) -> None:
        """See the protocol."""
        self.held.expire(older_than_ms=self.lake.now_ms() + 1000)

    def expire_and_clear_parents(self) -> None:
        """See the protocol."""
        self.held.expire(older_than_ms=self.lake.now_ms() + 1000, clear_parents=True)

    def stage(self, run_id: str, attempt: str, sales: Sequence[Sale]) -> None:
        """See the protocol."""
        schema = self.held.metadata.schema
        rows = [schema.store(dict(zip(COLUMNS, sale, strict=True))) for sale in sales]
        append_rows(self.held, run_branch(run_id), rows, (ATTEMPT, attempt), {"errata.run": run_id})

    def read(self, snapshot_id: str) -> list[Sale]:
        """See the protocol."""
        rows = self.held.rows(snapshot_id)
        return sorted((str(row["day"]), row["account"], str(row["amount"])) for row in rows)


_conforms: type[Subject] = MemorySubject


def pin_target(subject: Subject) -> TargetPin:
    """The table as a plan made now would pin it."""
    state = subject.targets.read_target(subject.table, "day", Grain.DAY, DAYS)
    return TargetPin(
        table=subject.table,
        table_uuid=state.table_uuid,
        base_snapshot_id=state.base_snapshot_id,
        schema_id=state.schema_id,
        spec_id=state.spec_id,
        column="day",
        column_type="date",
        transform="identity",
        grain=Grain.DAY,
        columns={column.name: column.type for column in state.columns},
        key=("day", "account"),
        expected_part="",
        fingerprints=state.fingerprints,
        total_partitions=len(state.partitions),
    )


def read_head(subject: Subject) -> list[Sale]:
    """The rows of main."""
    return subject.read(subject.pins.refs(subject.table)["main"])


def stage_candidate(subject: Subject, pin: TargetPin, sales: Sequence[Sale], days: Sequence[str]) -> PublicationCommit:
    """Stage these rows as a candidate, and return the publication that replaces the days by them."""
    subject.staging.prepare(pin, RUN, 7)
    subject.stage(RUN, f"{RUN}/c1/1", sales)
    staged = subject.staging.find_attempt(pin, f"{RUN}/c1/1")
    assert staged is not None
    paths = tuple(file.path for file in staged.files)
    candidate = subject.staging.make_candidate(pin, RUN, f"errata_{RUN}_c1_abcd", days, paths, 7)
    version = subject.publishing.version(pin)
    publication = f"{RUN}-p1-abcdef"
    return PublicationCommit(
        publication_id=publication,
        run_id=RUN,
        manifest_digest="0" * 64,
        partitions=tuple(days),
        remove=tuple(file.path for file in version.live(days)),
        add=paths,
        add_from=(candidate.snapshot_id,),
        keep_refs={candidate.branch: 7},
        pre_days=30,
        properties={"errata.publication": publication, "errata.run": RUN},
    )
