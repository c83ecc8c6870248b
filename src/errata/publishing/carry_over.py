"""Carry over rows of other partitions that share a file with the scope. Pure, except for the one call that writes.

Where partitions share files, removing a file would also remove rows of other partitions. Those rows are carried over:
Spark writes them into new files, and the same commit that removes the shared files adds the new ones. Carried-over rows
belong to one state of the shared files; when that state changes, they are written again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from errata.model.manifest import TargetPin
from errata.model.refs import STEP_DAYS, rest_branch
from errata.model.table import DataFile
from errata.ports.publish import CarriedOver, PublishTable

REWRITE = "rewrite"

SharedFileState = frozenset[tuple[str, tuple[str, ...]]]
"""Shared files, each with the delete files that apply to it; together they determine the rows."""


@dataclass(frozen=True, slots=True)
class CarryState:
    """Carried-over rows, and the state of the shared files they were read from."""

    of: SharedFileState = frozenset()
    made: CarriedOver | None = None
    times: int = 0
    branch: str = ""

    def is_current(self, files: Iterable[DataFile]) -> bool:
        """Whether the carried-over rows are still the right ones when these files are removed."""
        return self.of == _read_shared_state(files)

    def taken(self, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
        """The given files that hold rows of the scope; a shared file without such rows stays in the table."""
        held = frozenset(self.made.taken if self.made else ())
        return tuple(file for file in files if file.partition is not None or file.path in held)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Files to add with the rows of other partitions."""
        return self.made.files if self.made else ()

    @property
    def source(self) -> str:
        """The snapshot that lists :attr:`files`; empty if there are none."""
        return self.made.snapshot_id if self.made and self.made.files else ""

    @property
    def refs(self) -> dict[str, int]:
        """The branch that the commit relies on, with the days it must live."""
        return {self.branch: STEP_DAYS} if self.source else {}


NOTHING_CARRIED = CarryState()


def shares_files(target: TargetPin) -> bool:
    """Whether, by the plan, files of the scope may hold rows of other partitions."""
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
    """Write the rows of other partitions that the shared files hold, on a new branch each time."""
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
