"""What the publisher needs: one version of the table at a time, and a log of intents.

``TableVersion`` is the heart of it. Everything about one try — the check, the difference, the commit — comes from one
metadata version; its commit is a compare-and-swap on that version, without retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from errata.model.columns import TableSchema
from errata.model.manifest import NewColumn, TargetPin
from errata.model.table import DataFile, History

__all__ = ["ContentPort", "IntentLog", "Landed", "Outcome", "PublicationCommit", "PublishTable", "TableVersion"]


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


class Outcome(StrEnum):
    """What the table says about a publication."""

    LANDED = "landed"
    FENCED = "fenced"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Landed:
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

    @property
    def spec_id(self) -> int:
        """The current partition spec."""

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files live at main's head that hold rows of these partitions, wholly or in part."""

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """Commits on main after the base, newest first, with what each did to these partitions; for no partitions,
        the commits alone."""

    def commit(self, publication: PublicationCommit) -> str:
        """The one compare-and-swap; answers the new snapshot id. Whatever it raises, the outcome is unknown."""


class PublishTable(Protocol):
    """The target as publications see it."""

    def version(self, target: TargetPin) -> TableVersion:
        """The newest metadata version, read once."""

    def files_of(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """The data files of any snapshot (a candidate, an undo branch's head). Raises ``RunExpired`` when gone."""

    def look(self, target: TargetPin, publication_id: str) -> Landed:
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
        answers the snapshot that lists them. The only act of publishing or undoing that writes data files."""


class ContentPort(Protocol):
    """Contents compared when file lists cannot settle whether rows changed."""

    def content(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Sequence[str]
    ) -> Mapping[str, str]:
        """Per partition one digest of row count and checksum of these columns. Raises ``RunExpired`` when gone."""


class IntentLog(Protocol):
    """The ledger, as far as one replacement needs it; every call is one transaction with its audit entry."""

    def intend(self, detail: Mapping[str, object]) -> str:
        """Open the intent and take the scope locks; answers the publication id. Raises ``ScopeLocked``."""

    def update(self, publication_id: str, detail: Mapping[str, object]) -> None:
        """What the next try will do, when that has changed; also renews the lease on the locks."""

    def committed(self, publication_id: str, snapshot_id: str) -> None:
        """It landed: outcome, acceptance and the release of the locks."""

    def abandoned(self, publication_id: str, reason: str) -> None:
        """It did not land and no longer can: outcome and the release of the locks."""
