"""Ports for publishing: one version of the table at a time, and a log of intents.

``TableVersion`` is the heart of it. Everything about one try — the check, the difference, the commit — comes from one
metadata version; its commit is a compare-and-swap on that version, without retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from errata.canonical import digest_of
from errata.model.manifest import NewColumn, TargetPin
from errata.model.table import DataFile, History, NewDelete, TableColumn, TableSchema


@dataclass(frozen=True, slots=True)
class PublicationCommit:
    """One try: remove exactly these paths, add exactly those, and leave the tags that prove it."""

    publication_id: str
    run_id: str
    manifest_digest: str
    partitions: tuple[str, ...]
    remove: tuple[str, ...]
    add: tuple[str, ...]
    add_from: tuple[str, ...]  # the snapshots whose scans list the files to add
    keep_refs: Mapping[str, int]  # refs relied on → how many more days they must live
    pre_days: int  # how long the tag on main-before must live
    properties: Mapping[str, str]
    add_table: str = ""  # the table those snapshots are of, when it is not the target
    add_columns: tuple[NewColumn, ...] = ()  # columns the target gains in the same commit
    carried: tuple[str, ...] = ()  # paths with what the removed files held of other partitions
    carried_from: str = ""  # the snapshot of the target that lists them


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """Rows that shared files with a scope, in files of their own."""

    snapshot_id: str
    files: tuple[DataFile, ...]
    taken: tuple[str, ...]  # the shared files that do hold rows of the scope


class Outcome(StrEnum):
    """What the table says about a publication."""

    LANDED = "landed"
    FENCED = "fenced"
    ABSENT = "absent"


SCOPE_PROPERTY = "errata.scope"
"""The property of a publication's snapshot that says which partitions it is about."""


def scope_digest(partitions: Sequence[str]) -> str:
    """What that property says of these partitions."""
    return digest_of(sorted(partitions))


@dataclass(frozen=True, slots=True)
class PublicationLookup:
    """The answer to "what became of it?"; ``snapshot_id`` when it landed."""

    outcome: Outcome
    snapshot_id: str | None = None


class TableVersion(Protocol):
    """One metadata version of the target."""

    @property
    def snapshot_id(self) -> str:
        """Main's head."""

    @property
    def table_uuid(self) -> str:
        """The table's own id; another one means that it was dropped and made anew."""

    @property
    def schema(self) -> TableSchema:
        """The current schema."""

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        """Columns of a schema that the table has had, by default of the one that main's head is read with; none when
        the table no longer has it."""

    @property
    def spec_id(self) -> int:
        """The current partition spec."""

    @property
    def column(self) -> str | None:
        """What the target's partition column is called by now; None: it was dropped."""

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files live at main's head that hold rows of these partitions, wholly or in part."""

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """Commits on main after the base, newest first, with what each did to these partitions; for no partitions,
        the commits alone."""

    def new_deletes(
        self, base_snapshot_id: str | None, partitions: Sequence[str], marks: Sequence[str] = ()
    ) -> tuple[NewDelete, ...]:
        """Delete files that commits after the base brought to these partitions; rewrites of deletes are none.

        Where the commits do not reach back to the base: those of main's head with a later sequence number than the
        base, than the earliest of ``marks`` where the base has expired, or all where nothing is left to compare with.
        """

    def commit(self, publication: PublicationCommit) -> str:
        """The one compare-and-swap; answers the new snapshot id. Whatever it raises, the outcome is unknown."""


class PublishTable(Protocol):
    """The target as publications see it."""

    def version(self, target: TargetPin) -> TableVersion:
        """The newest metadata version, read once."""

    def files_of(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """The data files of any snapshot (a candidate, an undo branch's head). Raises ``RunExpired`` when gone."""

    def find_outcome(self, target: TargetPin, publication_id: str) -> PublicationLookup:
        """What became of a publication: by its tag, then by ancestry. Reads only."""

    def fence(self, target: TargetPin, publication_id: str) -> None:
        """Put the publication's own tag on the guard, so that a late commit can no longer land. Idempotent."""

    def write_undo(
        self,
        target: TargetPin,
        publication_id: str,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        days: int,
    ) -> str:
        """A guard-rooted branch that holds exactly these files; replaces an earlier one of the same publication.
        Answers the branch's snapshot id."""

    def ensure_guard(self, target: TargetPin) -> tuple[str, bool]:
        """The guard's snapshot id, and whether it had to be made (again)."""

    def rewrite(self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str]) -> str:
        """Write the rows of these partitions, as that snapshot reads, into new files on a guard-rooted branch;
        answers the snapshot that lists them. Raises ``EngineError`` when the files do not hold exactly those rows."""

    def carry_over(
        self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> CarriedOver:
        """Of these files, as that snapshot reads them: find those that hold rows of the partitions, and write their
        other rows into new files on a guard-rooted branch. Raises ``EngineError`` when the new files do not hold
        exactly those rows. With ``rewrite`` the only act of publishing or undoing that writes data files."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """What stands on a branch of a table beside the target."""

    rows: int
    files: int


class SideTable(Protocol):
    """A table beside the target: rows stand on a branch that nobody reads until one commit shows them."""

    def open_branch(self, table: str, publication_id: str) -> str:
        """A fresh, empty branch; another one for each call, so that two writers never share one."""

    def staged(self, table: str, branch: str) -> StagedRows:
        """What was written to it."""

    def list_run_commits(self, table: str, run_id: str) -> tuple[Mapping[str, str], ...]:
        """The summaries of this run's commits on the table's main, oldest first, each with its ``snapshot_id``."""

    def landed(self, table: str, publication_id: str) -> str | None:
        """The snapshot that shows this publication's rows, if there is one. Reads only."""

    def land(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        """One append of the branch's files to main, with the publication's tag; answers the snapshot. Rows that have
        landed before stay as they are: whoever comes second gets the first one's snapshot. Raises ``EngineError``
        behind a fence."""

    def head(self, table: str) -> str:
        """Main's snapshot."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every correction says of its origin."""

    run_id: str
    publication_id: str
    reason: str
    at: str  # ISO instant


@dataclass(frozen=True, slots=True)
class EarlierCorrections:
    """Corrections that hold already, of a target that was left alone."""

    partitions: tuple[str, ...]
    publications: tuple[str, ...]  # that may have told them, oldest first


class SideTableWriter(Protocol):
    """Spark, as far as tables beside a target need it. Rows go to a branch; nothing is seen until they land."""

    def create(self, statements: Sequence[str]) -> None:
        """Make the tables that are missing. Idempotent."""

    def corrections(
        self,
        place: tuple[str, str],
        target: TargetPin,
        before: tuple[str, str | None],
        after: tuple[str, str],
        partitions: Sequence[str],
        columns: Sequence[str],
        stamp: Stamp,
        told: EarlierCorrections | None = None,
    ) -> None:
        """A row for each key that differs; ``place`` is table and branch, the sides are tables at snapshots. Where
        corrections hold already, what they left of a key is its old side."""

    def reversals(
        self, place: tuple[str, str], key: Sequence[str], publications: Mapping[str, Sequence[str]], stamp: Stamp
    ) -> None:
        """The corrections of these publications in these partitions, the other way round."""

    def versions(
        self, place: tuple[str, str], target: TargetPin, snapshot_id: str, numbers: Mapping[str, int], run_id: str
    ) -> None:
        """The rows of these partitions as a snapshot of the staging table has them, each under its number."""

    def newest_versions(self, table: str, target: TargetPin, partitions: Sequence[str]) -> Mapping[str, int]:
        """The highest version number that the table has of each of these partitions; none where it has no rows."""

    def show(self, view: str, query: str) -> None:
        """Make the view, or let it show this from now on: one catalog commit. Idempotent."""

    def drop_view(self, view: str) -> None:
        """Remove the view if it is there."""


class ContentPort(Protocol):
    """Contents compared when file lists cannot settle whether rows changed."""

    def content(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Sequence[str]
    ) -> Mapping[str, str]:
        """Per partition one digest of row count and checksum of these columns. Raises ``RunExpired`` when gone."""

    def filled(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> Mapping[str, tuple[str, ...]]:
        """Partition → those of these columns that hold anything but their default there; only partitions that have
        such columns. Raises ``RunExpired`` when gone."""


class IntentLog(Protocol):
    """The ledger, as far as one replacement needs it; every call is one transaction with its audit entry."""

    def open_intent(self, detail: Mapping[str, object]) -> str:
        """Open the intent and take the scope locks; answers the publication id. Raises ``ScopeLocked``."""

    def is_recorded(self, publication_id: str) -> bool:
        """Whether the ledger has this publication. One that was put back from a copy lacks those made since."""

    def restore(self, publication_id: str, snapshot_id: str, detail: Mapping[str, object]) -> None:
        """Record a publication that the table has and the ledger lacks, under its own id."""

    def update(self, publication_id: str, detail: Mapping[str, object]) -> None:
        """What the next try will do, when that has changed; also renews the lease on the locks."""

    def last_look(self) -> object:
        """Right before each try to commit; raises when what was judged may not be shown any more."""

    def record_committed(self, publication_id: str, snapshot_id: str) -> None:
        """It landed: outcome, acceptance and the release of the locks."""

    def record_abandoned(self, publication_id: str, reason: str) -> None:
        """It did not land and no longer can: outcome and the release of the locks."""
