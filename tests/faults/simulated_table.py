"""The table of the simulation: one of :mod:`errata.testing`, each of whose requests is done wholly or not at all.

Every commit on main is kept in ``landed``, also those an expiry has taken from readers, and what the refs held when one
of ours landed in ``stood``, so that a checker can look at all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from errata.model.manifest import TargetPin
from errata.model.partition import Grain
from errata.model.refs import GUARD, undo_branch
from errata.model.table import DataFile
from errata.ports.publish import PublicationCommit, PublicationLookup
from errata.testing import CommitFailed, Lake, MemoryTable
from errata.testing import metadata as stored
from errata.testing.measure import MemoryContent, MemoryMeasurer
from errata.testing.publishing import MemoryPublishing, MemoryVersion
from errata.testing.table import Draft
from faults.simulated_ready import ReadyTable

__all__ = ["DAYS", "EMPTIED", "PIN", "TABLE", "Catalog", "Client", "CommitFailed", "State"]

TABLE = "lake.fin.daily_revenue"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05")
EMPTIED = ("bf-b", DAYS[3])
"""A run and the partition in which it computes no rows: the old ones must go all the same."""
COLUMNS = {"d": "date", "row": "string"}
PIN = TargetPin(
    TABLE, "uuid", "1", 0, 0, "d", "date", "identity", Grain.DAY, COLUMNS, (), "part", dict.fromkeys(DAYS, "x"), 1
)
_ROW = 2
"""Field id of the column that says where a row comes from."""
_NOTE = 3
"""Field id of a column that the table gains once every run is planned."""
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class File:
    """A data file; its rows are names that say where they come from."""

    partition: str
    rows: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """A delete file for one row of older files."""

    partition: str
    row: str
    age: int


@dataclass(frozen=True, slots=True)
class State:
    """One snapshot, as a checker reads it; the summary is empty unless the commit was ours."""

    id: str
    parent: str | None
    age: int
    files: Mapping[str, File]
    summary: Mapping[str, str]
    deletes: tuple[Delete, ...]
    seen: Mapping[str, frozenset[str]]  # partition → what a reader sees

    @classmethod
    def of(cls, snapshot: stored.Snapshot) -> State:
        """Read a snapshot of the table."""
        files, seen = dict[str, File](), dict[str, frozenset[str]]()
        for path, file in snapshot.files.items():
            name = str(file.partition)
            files[path] = File(name, frozenset(map(_tell, file.rows)))
            seen[name] = seen.get(name, frozenset()) | set(map(_tell, snapshot.read(file)))
        summary = {key: value for key, value in snapshot.summary.items() if key.startswith("errata.")}
        deletes = [Delete(str(one.partition), one.key[_ROW], one.sequence) for one in snapshot.deletes.values()]
        return cls(
            snapshot.snapshot_id, snapshot.parent_id, snapshot.sequence, files, summary, tuple(deletes), seen
        )  # fmt: skip

    def rows(self, partition: str) -> frozenset[str]:
        """What a reader sees in a partition."""
        return self.seen.get(partition, frozenset())


def _tell(row: stored.Stored) -> str:
    """A row by its name, with what stands in the column that came later."""
    return f"{row[_ROW]}, {row[_NOTE]}" if row.get(_NOTE) else str(row[_ROW])


def _first_table() -> MemoryTable:
    lake = Lake(lambda: datetime(2030, 1, 1, tzinfo=UTC))
    table = lake.create(TABLE, COLUMNS, partition=("d", "identity"))
    table.metadata = replace(table.metadata, table_uuid=PIN.table_uuid)
    table.append([{"d": day, "row": f"base {day}"} for day in DAYS])
    return table


@dataclass
class Catalog:
    """The server's side: each method is one request."""

    table: MemoryTable = field(default_factory=_first_table)
    stood: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)  # publication → ref → its files
    writes: int = 0
    ready: ReadyTable = field(default_factory=ReadyTable)

    def __post_init__(self) -> None:
        self.lake = Lake(tables={TABLE: self.table})
        self.publishing = MemoryPublishing(self.lake)
        self.contents = MemoryContent(MemoryMeasurer(self.lake, lambda _: b""))
        self._states: dict[tuple[str, str | None], State] = {}  # an expiry may take a snapshot's parent

    def __deepcopy__(self, memo: dict[int, Any]) -> Catalog:
        return Catalog(deepcopy(self.table, memo), deepcopy(self.stood, memo), self.writes)

    def _state(self, snapshot: stored.Snapshot) -> State:
        known = (snapshot.snapshot_id, snapshot.parent_id)
        if known not in self._states:
            self._states[known] = State.of(snapshot)
        return self._states[known]

    @property
    def refs(self) -> dict[str, str]:
        """Branches and tags but main."""
        return {name: ref.snapshot_id for name, ref in self.table.metadata.refs.items() if name != stored.MAIN}

    @property
    def snapshots(self) -> dict[str, State]:
        """What an expiry has left."""
        return {name: self._state(one) for name, one in self.table.metadata.snapshots.items()}

    @property
    def landed(self) -> list[State]:
        """Every commit on main, in the order they came."""
        return [self._state(one) for one in self.table.on_main]

    def head(self) -> State:
        """Main, as a reader gets it."""
        found = self.table.metadata.head
        assert found is not None
        return self._state(found)

    def write(self, operation: str, partition: str, row: str | None) -> str:
        """What others do: append a row, overwrite a partition with it, or rewrite the partition's files as one."""
        self.writes += 1
        if row is None:
            return self.table.compact(partition)
        rows = [{"d": partition, "row": row}]
        return self.table.append(rows) if operation == "append" else self.table.overwrite(rows)

    def add_column(self) -> None:
        """A column that no run was planned with."""
        self.table.change_columns(lambda fields: (*fields, stored.Field(0, "note", "string")))

    @property
    def has_column(self) -> bool:
        """Whether the table has the column that came later."""
        return len(self.table.metadata.schema.fields) > len(COLUMNS)

    def fill(self, partition: str, note: str) -> str:
        """What a live job does that came with the column: the same rows, with a value in it."""
        self.writes += 1
        head, schema = self.table.metadata.head, self.table.metadata.schema
        assert head is not None
        files = [file for file in head.files.values() if file.partition == partition]
        rows = [schema.read(row) for file in files for row in head.read(file)]
        return self.table.overwrite([{**row, "note": note} for row in rows])

    def delete(self, partition: str, row: str) -> str:
        """What a CDC job does: a delete file for a row, wherever that is, and no data file touched."""
        return self.table.delete(partition, row=row)

    def before_ours(self) -> list[str]:
        """The states of main from which a publication or rollback of ours led to what it is now."""
        line = self.table.metadata.line(self.head().id)
        found = [one.parent_id for one in line if self._state(one).summary]
        return [name for name in found if name in self.table.metadata.snapshots]

    def set_main(self, snapshot_id: str) -> None:
        """An owner points main at an older state."""
        self.table.set_main(snapshot_id)

    def tag(self, name: str, snapshot_id: str) -> None:
        """A tag that never expires."""
        self.table.commit(lambda draft: draft.set_ref(name, snapshot_id))

    def drop(self, ref: str) -> None:
        """A tool removes a ref, and what nothing holds any more."""
        self.table.drop_ref(ref)
        self.expire()

    def expire(self, *, clear_parents: bool = False) -> None:
        """Forget what no ref holds but main's last two states."""
        self.table.expire(older_than_ms=self.table.now_ms() + 1, retain_last=2, clear_parents=clear_parents)

    def set_clock_ahead(self) -> None:
        """From now on those who commit are a day ahead of those before; no snapshot is older than its parent."""
        ahead = self.table.now_ms() + _DAY_MS
        self.table.now_ms = lambda: ahead

    def stage(self, attempt: str, partitions: Sequence[str], run_id: str) -> str:
        """An attempt's output: on nobody's branch, read by whoever knows its number."""
        full = [name for name in partitions if (run_id, name) != EMPTIED]
        schema = self.table.metadata.schema
        files = self.table.write_files([schema.store({"d": name, "row": f"{run_id} {name}"}) for name in full])

        def act(draft: Draft) -> str:
            made = draft.add_snapshot(None, "append", add=files, summary={"errata.attempt": attempt}).snapshot_id
            draft.set_ref(f"staged_{attempt}", made)
            return made

        return self.table.commit(act)

    def assemble(self, branch: str, staged: Sequence[str]) -> str:
        """A candidate: the files of these snapshots on one branch; what is there already is taken by its name."""

        def act(draft: Draft) -> str:
            if branch in draft.seen.refs:
                return draft.seen.refs[branch].snapshot_id
            files = [file for name in staged for file in draft.seen.snapshots[name].files.values()]
            made = draft.add_snapshot(None, "append", add=files).snapshot_id
            draft.set_ref(branch, made, is_branch=True)
            return made

        return self.table.commit(act)

    def version(self) -> MemoryVersion:
        """One metadata version, for ever as it is now."""
        return self.publishing.version(PIN)

    def swap(self, draft: Draft, publication_id: str) -> None:
        """The one compare-and-swap; the files are in the request, as its client had read them."""
        held = {ref: frozenset(self.table.metadata.snapshots[at].files) for ref, at in self.refs.items()}
        draft.swap()
        self.stood[publication_id] = held


@dataclass(frozen=True, slots=True)
class _Version:
    """What one client loaded; its commit is a request."""

    io: Callable[..., Any]
    catalog: Catalog
    seen: MemoryVersion

    def __getattr__(self, name: str) -> Any:
        return getattr(self.seen, name)

    def commit(self, publication: PublicationCommit) -> str:
        """Looks at the version that it loaded, and asks nobody; then the one compare-and-swap."""
        draft, made = self.seen.prepare(publication)
        sources = [ref for ref, at in draft.seen.refs.items() if at.snapshot_id in publication.add_from]
        relied_on = (GUARD, undo_branch(publication.publication_id), *sources)

        def swap() -> str:
            self.catalog.swap(draft, publication.publication_id)
            self.catalog.ready.note_landing(publication.publication_id, publication.partitions)
            return made

        answer: str = self.io("table.commit", swap, relied_on)
        return answer


@dataclass(frozen=True, slots=True)
class Client:
    """The publisher's ports, each call one request that the simulation may delay, lose or fail."""

    catalog: Catalog
    io: Callable[..., Any]

    def version(self, _target: TargetPin) -> _Version:
        """The newest metadata version."""
        return _Version(self.io, self.catalog, self.io("table.version", self.catalog.version))

    def find_outcome(self, target: TargetPin, publication_id: str) -> PublicationLookup:
        """What became of it."""
        found: PublicationLookup = self._ask("table.look", "find_outcome", target, publication_id)
        return found

    def fence(self, target: TargetPin, publication_id: str) -> None:
        """Keep a late commit out."""
        self._ask("table.fence", "fence", target, publication_id)

    def write_undo(self, *given: Any) -> str:
        """Keep what will be removed."""
        made: str = self._ask("table.undo", "write_undo", *given)
        return made

    def ensure_guard(self, target: TargetPin) -> tuple[str, bool]:
        """The guard."""
        found: tuple[str, bool] = self._ask("table.guard", "ensure_guard", target)
        return found

    def files_of(self, *given: Any) -> tuple[DataFile, ...]:
        """The files of any snapshot that is still there."""
        found: tuple[DataFile, ...] = self._ask("table.files", "files_of", *given)
        return found

    def rewrite(self, *given: Any) -> str:
        """Rows written anew, because their files carry deletes."""
        made: str = self._ask("table.rewrite", "rewrite", *given)
        return made

    def content(self, *given: Any) -> dict[str, str]:
        """Contents, when files cannot tell."""
        found: dict[str, str] = self.io("table.content", lambda: self.catalog.contents.content(*given))
        return found

    def filled(self, *given: Any) -> dict[str, tuple[str, ...]]:
        """Columns that hold values and came later."""
        found: dict[str, tuple[str, ...]] = self.io("table.filled", lambda: self.catalog.contents.filled(*given))
        return found

    def carry_over(self, *_: Any) -> Any:
        """Not asked for: no files are shared here."""
        raise AssertionError

    def _ask(self, request: str, method: str, *given: Any) -> Any:
        return self.io(request, lambda: getattr(self.catalog.publishing, method)(*given))
