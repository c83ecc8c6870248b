"""Rows that only share a file with the scope: what is written anew for them, and of which state of the table. Pure,
but for the one call that writes.

Where partitions are not sets of files, taking a file out would take rows of other partitions with it. Those rows are
carried over: Spark writes them into files of their own, and the one commit that takes the shared files out puts these
in. What was carried over is of one state of the shared files; when that has changed, it is written again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from errata.model.manifest import TargetPin
from errata.model.refs import rest_branch
from errata.model.table import DataFile
from errata.ports.publish import CarriedOver, PublishTable

ROWS_DAYS = 7
"""How long branches with rows that were written anew must live after the commit that adds them."""

REWRITE = "rewrite"

SharedFileState = frozenset[tuple[str, tuple[str, ...]]]
"""Shared files, each with the delete files that apply to it: what rows they hold follows from these."""


@dataclass(frozen=True, slots=True)
class CarryState:
    """What was written anew, and from what."""

    of: SharedFileState = frozenset()
    made: CarriedOver | None = None
    times: int = 0
    branch: str = ""

    def is_current(self, files: Iterable[DataFile]) -> bool:
        """Whether it is still what must be carried over when these files are to be taken out."""
        return self.of == _read_shared_state(files)

    def taken(self, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
        """Those of the files that hold rows of the scope: a shared file that holds none stays where it is."""
        held = frozenset(self.made.taken if self.made else ())
        return tuple(file for file in files if file.partition is not None or file.path in held)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files to put in for what shared files held of other partitions."""
        return self.made.files if self.made else ()

    @property
    def source(self) -> str:
        """The snapshot that lists them."""
        return self.made.snapshot_id if self.made and self.made.files else ""

    @property
    def refs(self) -> dict[str, int]:
        """The branch that a commit relies on, and how many days it must live."""
        return {self.branch: ROWS_DAYS} if self.source else {}


NOTHING_CARRIED = CarryState()


def shares_files(target: TargetPin) -> bool:
    """Whether the plan says that files of the scope may hold rows of other partitions."""
    return target.mode == REWRITE


def carry_over(
    before: CarryState,
    target: TargetPin,
    publication_id: str,
    snapshot_id: str,
    partitions: tuple[str, ...],
    files: Iterable[DataFile],
    table: PublishTable,
) -> CarryState:
    """Write the rows of other partitions that the shared files hold; each time on a branch of its own."""
    shared = tuple(file for file in files if file.partition is None)
    times = before.times + 1
    if not shared:
        return CarryState(times=times)
    branch = rest_branch(publication_id, times)
    made = table.carry_over(target, branch, snapshot_id, partitions, tuple(sorted(file.path for file in shared)))
    return CarryState(_read_shared_state(shared), made, times, branch)


def _read_shared_state(files: Iterable[DataFile]) -> SharedFileState:
    return frozenset(
        (file.path, tuple(sorted(delete.path for delete in file.deletes))) for file in files if file.partition is None
    )
