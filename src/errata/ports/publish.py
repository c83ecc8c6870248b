"""Ports for publishing: one version of the table at a time, and a log of intents.

``TableVersion`` is the central port. Everything about one try (the check, the difference, the commit) comes from one
metadata version, and its commit is a compare-and-swap on that version, without retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from errata.canonical import digest_of
from errata.model.refs import STEP_DAYS

if TYPE_CHECKING:
    from errata.model.manifest import NewColumn, TargetPin
    from errata.model.product.erasure import ErasurePin
from errata.model.table import DataFile, History, NewDelete, TableColumn, TableSchema


@dataclass(frozen=True, slots=True)
class PublicationCommit:
    """One try: remove exactly these paths, add exactly those, and create the tags that prove it."""

    publication_id: str
    run_id: str
    manifest_digest: str
    partitions: tuple[str, ...]
    remove: tuple[str, ...]
    add: tuple[str, ...]
    add_from: tuple[str, ...]  # snapshots whose scans list the files to add
    keep_refs: Mapping[str, int]  # refs the commit relies on → days they must still live
    pre_days: int  # days that the tag on main before the commit must live
    properties: Mapping[str, str]
    add_table: str = ""  # table of the snapshots in ``add_from``, if it is not the target
    add_columns: tuple[NewColumn, ...] = ()  # columns the target gains in the same commit
    carried: tuple[str, ...] = ()  # paths with the rows that the removed files held of other partitions
    carried_from: str = ""  # the snapshot of the target that lists ``carried``
    pub_days: int = STEP_DAYS  # days that the tag on main after the commit must live


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """Rows of other partitions that shared files with the scope, rewritten into their own files."""

    snapshot_id: str
    files: tuple[DataFile, ...]
    taken: tuple[str, ...]  # the shared files that really hold rows of the scope


class Outcome(StrEnum):
    """Outcome of a publication, as read from the table."""

    LANDED = "landed"
    FENCED = "fenced"
    ABSENT = "absent"


SCOPE_PROPERTY = "errata.scope"
"""Snapshot property that identifies the partitions of a publication."""


def scope_digest(partitions: Sequence[str]) -> str:
    """Value of ``SCOPE_PROPERTY`` for these partitions."""
    return digest_of(sorted(partitions))


@dataclass(frozen=True, slots=True)
class PublicationLookup:
    """Outcome of a publication, with its ``snapshot_id`` if it landed."""

    outcome: Outcome
    snapshot_id: str | None = None


class TableVersion(Protocol):
    """One metadata version of the target."""

    @property
    def snapshot_id(self) -> str:
        """Main's head."""

    @property
    def table_uuid(self) -> str:
        """The table's uuid; a different one means that the table was dropped and created again."""

    @property
    def schema(self) -> TableSchema:
        """The current schema."""

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        """Columns of a past or present schema, by default of the one that main's head is read with.

        Empty when the table no longer has that schema.
        """

    @property
    def spec_id(self) -> int:
        """The current partition spec."""

    @property
    def column(self) -> str | None:
        """Current name of the target's partition column; None if it was dropped."""

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files live at main's head that hold rows of these partitions, wholly or in part."""

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """Commits on main after the base, newest first, with what each did to these partitions.

        Without partitions, only the commits.
        """

    def new_deletes(
        self, base_snapshot_id: str | None, partitions: Sequence[str], marks: Sequence[str] = ()
    ) -> tuple[NewDelete, ...]:
        """Delete files that commits after the base brought to these partitions; rewritten delete files do not count.

        Where the commits do not reach back to the base, these are the delete files of main's head with a later sequence
        number than the base; where the base has expired, than the earliest of ``marks``; and all of them where there is
        nothing left to compare with.
        """

    def commit(self, publication: PublicationCommit) -> str:
        """Commit in one compare-and-swap and return the new snapshot id. Whatever it raises, the outcome is unknown."""


class PublishTable(Protocol):
    """The target table as publications use it."""

    def version(self, target: TargetPin) -> TableVersion:
        """The newest metadata version, read once."""

    def files_of(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files of any snapshot (a candidate, an undo branch's head). Raises ``RunExpired`` if it has expired."""

    def find_outcome(self, target: TargetPin, publication_id: str) -> PublicationLookup:
        """Look a publication up by its tag, then by a snapshot that carries its id. Reads only."""

    def fence(self, target: TargetPin, publication_id: str) -> None:
        """Create the publication's own tag on the guard, so that a late commit can no longer land. Idempotent."""

    def write_undo(
        self,
        target: TargetPin,
        publication_id: str,
        from_snapshot: str,
        partitions: Sequence[str],
        paths: Sequence[str],
        days: int,
    ) -> str:
        """Write a guard-rooted branch that holds exactly these files, and return its snapshot id.

        Replaces an earlier undo branch of the same publication.
        """

    def ensure_guard(self, target: TargetPin) -> tuple[str, bool]:
        """Create the guard unless it exists; returns its snapshot id and whether it was created."""

    def rewrite(
        self,
        target: TargetPin,
        branch: str,
        from_snapshot: str,
        partitions: Sequence[str],
        without: ErasurePin | None = None,
    ) -> str:
        """Write the rows of these partitions, as of ``from_snapshot``, into new files on a guard-rooted branch.

        Rows of subjects on the list ``without`` are left out. Returns the snapshot that lists the files. Raises
        ``EngineError`` unless they hold exactly those rows.
        """

    def carry_over(
        self, target: TargetPin, branch: str, from_snapshot: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> CarriedOver:
        """Find which of these files hold rows of the partitions, and write their other rows into new files.

        Files are read as of ``from_snapshot``; the new files are on a guard-rooted branch. Raises ``EngineError``
        unless the new files hold exactly those rows. This and :meth:`rewrite` are the only steps of publishing or
        rolling back that write data files.
        """


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows and files on a branch of a side table."""

    rows: int
    files: int


class SideTable(Protocol):
    """A side table: rows are written to a branch that has no readers until one commit adds them to main."""

    def open_branch(self, table: str, publication_id: str) -> str:
        """Create an empty branch; each call creates another, so that two writers never share a branch."""

    def staged(self, table: str, branch: str) -> StagedRows:
        """Rows and files written to the branch so far."""

    def list_run_commits(self, table: str, run_id: str) -> tuple[Mapping[str, str], ...]:
        """Summaries of this run's commits on the table's main, oldest first, each with its ``snapshot_id``."""

    def landed(self, table: str, publication_id: str) -> str | None:
        """The snapshot that added this publication's rows to main, if any. Reads only."""

    def land(self, table: str, publication_id: str, branch: str, properties: Mapping[str, str]) -> str:
        """Append the branch's files to main in one commit with the publication's tag, and return the snapshot.

        Rows that have already landed are not added again: a second call returns the snapshot of the first. Raises
        ``EngineError`` if the publication is fenced.
        """

    def head(self, table: str) -> str:
        """Snapshot id of main's head."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Origin recorded in every correction row."""

    run_id: str
    publication_id: str
    reason: str
    at: str  # ISO instant


@dataclass(frozen=True, slots=True)
class EarlierCorrections:
    """Corrections already published for a target whose own rows were left unchanged."""

    partitions: tuple[str, ...]
    publications: tuple[str, ...]  # that may have written them, oldest first


class SideTableWriter(Protocol):
    """Writes rows of side tables with Spark. Rows go to a branch and are not visible until they land."""

    def create(self, statements: Sequence[str]) -> None:
        """Create the tables that are missing. Idempotent."""

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
        """Write a row for each key that differs between ``before`` and ``after``, each a table at a snapshot.

        ``place`` is table and branch. Where earlier corrections exist, their latest value of a key is its old side.
        """

    def reversals(
        self, place: tuple[str, str], key: Sequence[str], publications: Mapping[str, Sequence[str]], stamp: Stamp
    ) -> None:
        """Write the reverse of the corrections of these publications in these partitions."""

    def versions(
        self, place: tuple[str, str], target: TargetPin, snapshot_id: str, numbers: Mapping[str, int], run_id: str
    ) -> None:
        """Write the rows of these partitions as of a snapshot of the staging table, each with its version number."""

    def newest_versions(self, table: str, target: TargetPin, partitions: Sequence[str]) -> Mapping[str, int]:
        """Highest version number in the table for each of these partitions; partitions without rows are left out."""

    def show(self, view: str, query: str) -> None:
        """Create or replace the view in one catalog commit. Idempotent."""

    def drop_view(self, view: str) -> None:
        """Drop the view if it exists."""


class ContentPort(Protocol):
    """Reads content for comparison when file lists cannot show whether rows changed."""

    def content(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Sequence[str]
    ) -> Mapping[str, str]:
        """One digest per partition of its row count and the checksum of these columns.

        Raises ``RunExpired`` if the snapshot has expired.
        """

    def filled(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> Mapping[str, tuple[str, ...]]:
        """Partition → the columns, of those given with their default, that hold any other value there.

        Partitions without such a column are left out. Raises ``RunExpired`` if the snapshot has expired.
        """


class IntentLog(Protocol):
    """The ledger as one replacement uses it; every call that writes is one transaction with its audit entry."""

    def open_intent(self, detail: Mapping[str, object]) -> str:
        """Open the intent, take the scope locks and return the publication id. Raises ``ScopeLocked``."""

    def is_recorded(self, publication_id: str) -> bool:
        """Whether the ledger has this publication. A ledger restored from a backup lacks later publications."""

    def restore(self, publication_id: str, snapshot_id: str, detail: Mapping[str, object]) -> None:
        """Record a publication that is on the table but not in the ledger, under its own id."""

    def update(self, publication_id: str, detail: Mapping[str, object]) -> None:
        """Record what the next try will do, if that has changed, and renew the lease on the locks."""

    def last_look(self) -> object:
        """Final check, right before each try to commit; raises when the validated output may no longer be published."""

    def record_committed(self, publication_id: str, snapshot_id: str) -> None:
        """Record that the publication landed: its outcome, the accepted partitions, the release of the locks."""

    def record_abandoned(self, publication_id: str, reason: str) -> None:
        """Record that the publication did not land and no longer can: its outcome and the release of the locks."""
