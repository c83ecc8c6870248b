"""A catalog in memory for the simulation: snapshots, refs, and commits that assert what a REST catalog asserts.

A commit lands if main's head is the one it was built on, its own tag is not there yet, and every ref that it names is
where its client saw it; nothing else protects the table, and what a commit adds is what its client had read. Every
commit on main is kept in ``landed``, also those an expiry has taken from readers, and what the refs held when one of
ours landed in ``stood``, so that a checker can look at all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from errata.errors import RunExpired
from errata.model.manifest import ExpectedFile, TargetPin
from errata.model.partition import Grain
from errata.model.refs import GUARD, pre_tag, pub_tag, undo_branch
from errata.model.table import Commit, DataFile, History, NewDelete, TableColumn, TableSchema, Touch
from errata.ports.publish import Outcome, PublicationCommit, PublicationLookup

TABLE = "lake.fin.daily_revenue"
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05")
EMPTIED = ("bf-b", DAYS[3])
"""A run and the partition in which it computes no rows: the old ones must go all the same."""
PIN = TargetPin(
    TABLE, "uuid", "1", 0, 0, "d", "date", "identity", Grain.DAY, {"d": "date"}, (), "part", dict.fromkeys(DAYS, "x"), 1
)


class CommitFailed(RuntimeError):
    """The catalog compared and did not swap."""


@dataclass(frozen=True, slots=True)
class File:
    """A data file; its rows are names that say where they come from. It is as old as the commit that added it."""

    partition: str
    rows: frozenset[str]
    added: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    """A delete file: of files that are older, it takes out one row."""

    partition: str
    row: str
    added: int

    def hits(self, file: File) -> bool:
        """Whether a reader of the file needs it."""
        return self.partition == file.partition and self.row in file.rows and self.added > file.added


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of main or of a branch."""

    id: str
    parent: str | None
    files: Mapping[str, File]
    operation: str
    summary: Mapping[str, str] = field(default_factory=dict)
    deletes: Mapping[str, Delete] = field(default_factory=dict)

    def rows(self, partition: str) -> frozenset[str]:
        """What a reader sees in a partition."""
        found = [file for file in self.files.values() if file.partition == partition]
        gone = [frozenset(one.row for one in self.deletes.values() if one.hits(file)) for file in found]
        return frozenset(row for file, less in zip(found, gone, strict=True) for row in file.rows - less)


@dataclass
class Catalog:
    """The server's side: each method is one request, done wholly or not at all."""

    main: str = "1"
    refs: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    landed: list[Snapshot] = field(default_factory=list)
    stood: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)  # publication → ref → its files
    files: int = 0

    def __post_init__(self) -> None:
        first = {f"base/{day}": File(day, frozenset({f"base {day}"})) for day in DAYS}
        self._keep(Snapshot("1", None, first, "append"), main=True)

    def _keep(self, made: Snapshot, *, main: bool = False) -> str:
        self.snapshots[made.id] = made
        if main:
            self.main = made.id
            self.landed.append(made)
        return made.id

    def _next(self) -> str:
        self.files += 1
        return str(100 + self.files)

    def head(self) -> Snapshot:
        """Main, as a reader gets it."""
        return self.snapshots[self.main]

    def write(self, operation: str, partition: str, row: str | None) -> str:
        """What others do: append a row, overwrite a partition with it, or rewrite the partition's files as one."""
        head, made = self.head(), self._next()
        kept = {p: f for p, f in head.files.items() if f.partition != partition or operation == "append"}
        rows = head.rows(partition) if row is None else frozenset({row})
        files = {**kept, f"live/{made}": File(partition, rows, int(made))}
        return self._keep(
            replace(head, id=made, parent=head.id, files=files, operation=operation, summary={}), main=True
        )

    def delete(self, partition: str, row: str) -> str:
        """What a CDC job does: a delete file for a row, wherever that is, and no data file touched."""
        head, made = self.head(), self._next()
        deletes = {**head.deletes, f"delete/{made}": Delete(partition, row, int(made))}
        return self._keep(
            replace(head, id=made, parent=head.id, deletes=deletes, operation="delete", summary={}), main=True
        )

    def before_ours(self) -> list[str]:
        """The states of main from which a publication or rollback of ours led to what it is now."""
        found, at = list[str](), self.head()
        while at.parent in self.snapshots:
            found += [at.parent] if at.summary else []
            at = self.snapshots[at.parent]
        return found

    def drop(self, ref: str) -> None:
        """A tool removes a ref, and what nothing holds any more."""
        del self.refs[ref]
        self.expire()

    def expire(self) -> None:
        """Forget what no ref holds but main's last two states."""
        keep = {*self.refs.values(), self.main, self.head().parent}
        self.snapshots = {name: snapshot for name, snapshot in self.snapshots.items() if name in keep}

    def stage(self, attempt: str, partitions: Sequence[str], run_id: str) -> str:
        """An attempt's output: on nobody's branch, read by whoever knows its number."""
        full = [name for name in partitions if (run_id, name) != EMPTIED]
        files = {f"{attempt}/{name}": File(name, frozenset({f"{run_id} {name}"})) for name in full}
        made = self._keep(Snapshot(self._next(), None, files, "append", {"errata.attempt": attempt}))
        self.refs[f"staged_{attempt}"] = made
        return made

    def assemble(self, branch: str, staged: Sequence[str]) -> str:
        """A candidate: the files of these snapshots on one branch; what is there already is taken by its name."""
        if branch in self.refs:
            return self.refs[branch]
        files = {path: file for name in staged for path, file in self.snapshots[name].files.items()}
        made = self._keep(Snapshot(self._next(), None, files, "append"))
        self.refs[branch] = made
        return made

    def files_of(self, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files of these partitions in a snapshot."""
        if snapshot_id not in self.snapshots:
            raise RunExpired(f"snapshot {snapshot_id} is gone")
        return Version(self.snapshots[snapshot_id], {}, {}).live(partitions)

    def version(self) -> Version:
        """One metadata version, for ever as it is now."""
        return Version(self.head(), dict(self.snapshots), dict(self.refs))

    def commit(self, seen: Version, publication: PublicationCommit) -> str:
        """The one compare-and-swap; the files are in the request, as its client had read them."""
        pub, head = publication.publication_id, seen.at
        changed = [ref for ref in publication.keep_refs if self.refs.get(ref) != seen.held[ref]]
        if self.main != head.id or pub_tag(pub) in self.refs or changed:
            raise CommitFailed(f"built on {head.id}, main is {self.main}, changed are {changed}")
        number = self._next()
        source = {path: f for name in publication.add_from for path, f in seen.known[name].files.items()}
        kept = {path: file for path, file in head.files.items() if path not in publication.remove}
        files = {**kept, **{path: replace(source[path], added=int(number)) for path in publication.add}}
        made = Snapshot(number, head.id, files, "overwrite", dict(publication.properties), head.deletes)
        self.stood[pub] = {ref: frozenset(self.snapshots[at].files) for ref, at in self.refs.items()}
        self.refs |= {pub_tag(pub): made.id, pre_tag(pub): head.id}
        return self._keep(made, main=True)

    def find_outcome(self, publication_id: str) -> PublicationLookup:
        """By tag, then by what main remembers."""
        tagged = self.refs.get(pub_tag(publication_id))
        if tagged is not None:
            summary = self.snapshots[tagged].summary
            if summary.get("errata.publication") == publication_id:
                return PublicationLookup(Outcome.LANDED, tagged)
            return PublicationLookup(Outcome.FENCED)
        return PublicationLookup(Outcome.ABSENT)

    def fence(self, publication_id: str) -> None:
        """The publication's tag on the guard, unless it is there."""
        guard, _ = self.guard()
        self.refs.setdefault(pub_tag(publication_id), guard)

    def guard(self) -> tuple[str, bool]:
        """The guard, made when it is missing."""
        if GUARD in self.refs:
            return self.refs[GUARD], False
        self.refs[GUARD] = self._keep(Snapshot("guard", None, {}, "append"))
        return self.refs[GUARD], True

    def write_undo(self, publication_id: str, from_snapshot: str, paths: Sequence[str]) -> str:
        """A branch with exactly these files."""
        if from_snapshot not in self.snapshots:
            raise RunExpired(f"snapshot {from_snapshot} is gone")
        files = {path: self.snapshots[from_snapshot].files[path] for path in paths}
        made = self._keep(Snapshot(self._next(), None, files, "append"))
        self.refs[undo_branch(publication_id)] = made
        return made

    def rewrite(self, branch: str, from_snapshot: str, partitions: Sequence[str]) -> str:
        """Rows as a snapshot reads, in files of their own on a branch."""
        if from_snapshot not in self.snapshots:
            raise RunExpired(f"snapshot {from_snapshot} is gone")
        rows = {name: self.snapshots[from_snapshot].rows(name) for name in partitions}
        files = {f"{branch}/{name}": File(name, found) for name, found in rows.items() if found}
        self.refs[branch] = self._keep(Snapshot(self._next(), None, files, "append"))
        return self.refs[branch]

    def content(self, snapshot_id: str, partitions: Sequence[str]) -> dict[str, str]:
        """Per partition a digest of its rows."""
        if snapshot_id not in self.snapshots:
            raise RunExpired(f"snapshot {snapshot_id} is gone")
        rows = {name: sorted(self.snapshots[snapshot_id].rows(name)) for name in partitions}
        return {name: hashlib.sha256(repr(found).encode()).hexdigest() for name, found in rows.items()}


@dataclass(frozen=True, slots=True)
class Version:
    """What one client loaded; its commit goes through ``io`` of that client."""

    at: Snapshot
    known: Mapping[str, Snapshot]
    held: Mapping[str, str]
    commit_on: Callable[[Version, PublicationCommit], str] | None = None
    table_uuid: str = "uuid"
    spec_id: int = 0
    column: str = PIN.column

    @property
    def snapshot_id(self) -> str:
        """Main's head."""
        return self.at.id

    @property
    def refs(self) -> frozenset[str]:
        """Names of all branches and tags."""
        return frozenset(self.held)

    @property
    def schema(self) -> TableSchema:
        """Never changes here."""
        return TableSchema(0, 1, {"d": "date"}, {"d": 1})

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        """Never change here."""
        return (TableColumn(1, "d"),)

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """Data files of these partitions."""
        return tuple(
            DataFile(path, len(file.rows), 1, file.partition, _attached(self.at, file))
            for path, file in self.at.files.items()
            if file.partition in partitions
        )

    def history(self, base_snapshot_id: str | None, partitions: Sequence[str]) -> History:
        """From the head back to the base, or to where an expiry cut it."""
        commits: list[Commit] = []
        at: Snapshot | None = self.at
        while at is not None and at.id != base_snapshot_id:
            before = self.known.get(at.parent or "")
            if before is None:
                return History(tuple(commits), complete=False)
            touched = {name: touch for name in partitions if (touch := _touch(before, at, name))}
            commits.append(Commit(at.id, at.operation, 0, "live", touched, summary=at.summary))
            at = before
        return History(tuple(commits), complete=at is not None)

    def new_deletes(
        self, base_snapshot_id: str | None, partitions: Sequence[str], marks: Sequence[str] = ()
    ) -> tuple[NewDelete, ...]:
        """Those that commits after the base brought; where they do not reach it, by age."""
        since = self.history(base_snapshot_id, partitions)
        if since.complete:
            brought = {commit.snapshot_id: commit for commit in since.commits}
            found = {path: one for path, one in self.at.deletes.items() if str(one.added) in brought}
        else:
            known = [int(name) for name in (base_snapshot_id, *marks) if name in self.known]
            oldest = known[0] if base_snapshot_id in self.known else min(known, default=0)
            brought, found = {}, {path: one for path, one in self.at.deletes.items() if one.added > oldest}
        return tuple(
            NewDelete(path, "equality_deletes", one.partition, (), brought.get(str(one.added)))
            for path, one in found.items()
            if one.partition in partitions
        )

    def commit(self, publication: PublicationCommit) -> str:
        """The one compare-and-swap on this version."""
        assert self.commit_on is not None
        return self.commit_on(self, publication)


def _touch(before: Snapshot, after: Snapshot, partition: str) -> Touch | None:
    added = [f for path, f in after.files.items() if f.partition == partition and path not in before.files]
    removed = [f for path, f in before.files.items() if f.partition == partition and path not in after.files]
    deletes = [d for path, d in after.deletes.items() if d.partition == partition and path not in before.deletes]
    if not added and not removed and not deletes:
        return None
    return Touch(sum(len(f.rows) for f in added), sum(len(f.rows) for f in removed), len(deletes))


def _attached(at: Snapshot, file: File) -> tuple[ExpectedFile, ...]:
    return tuple(ExpectedFile(path, 1, "equality_deletes") for path, one in at.deletes.items() if one.hits(file))


@dataclass(frozen=True, slots=True)
class Client:
    """The publisher's ports, each call one request that the simulation may delay, lose or fail."""

    catalog: Catalog
    io: Callable[..., Any]

    def version(self, _target: TargetPin) -> Version:
        """The newest metadata version."""
        found: Version = self.io("table.version", self.catalog.version)
        return replace(found, commit_on=self._commit)

    def _commit(self, seen: Version, publication: PublicationCommit) -> str:
        # as the adapter does: looks at the version that it loaded, and asks nobody
        sources = [ref for ref, at in seen.held.items() if at in publication.add_from]
        if gone := [ref for ref in publication.keep_refs if ref not in seen.held]:
            raise RunExpired(f"refs {gone} are gone, and this commit relies on them")
        if gone := [name for name in publication.add_from if name not in seen.known]:
            raise RunExpired(f"snapshots {gone} are gone")
        relied_on = (GUARD, undo_branch(publication.publication_id), *sources)
        made: str = self.io("table.commit", lambda: self.catalog.commit(seen, publication), relied_on)
        return made

    def find_outcome(self, _target: TargetPin, publication_id: str) -> PublicationLookup:
        """What became of it."""
        found: PublicationLookup = self.io("table.look", lambda: self.catalog.find_outcome(publication_id))
        return found

    def fence(self, _target: TargetPin, publication_id: str) -> None:
        """Keep a late commit out."""
        self.io("table.fence", lambda: self.catalog.fence(publication_id))

    def write_undo(self, _t: TargetPin, pub: str, source: str, _n: Sequence[str], paths: Sequence[str], _d: int) -> str:
        """Keep what will be removed."""
        made: str = self.io("table.undo", lambda: self.catalog.write_undo(pub, source, paths))
        return made

    def ensure_guard(self, _target: TargetPin) -> tuple[str, bool]:
        """The guard."""
        found: tuple[str, bool] = self.io("table.guard", self.catalog.guard)
        return found

    def content(self, _t: TargetPin, snapshot_id: str, partitions: Sequence[str], _c: Sequence[str]) -> dict[str, str]:
        """Contents, when files cannot tell."""
        found: dict[str, str] = self.io("table.content", lambda: self.catalog.content(snapshot_id, partitions))
        return found

    def filled(self, *_: Any) -> dict[str, tuple[str, ...]]:
        """Not asked for: no column is added here."""
        raise AssertionError

    def files_of(self, _target: TargetPin, snapshot_id: str, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        """The files of any snapshot that is still there."""
        found: tuple[DataFile, ...] = self.io("table.files", lambda: self.catalog.files_of(snapshot_id, partitions))
        return found

    def rewrite(self, _target: TargetPin, branch: str, source: str, partitions: Sequence[str]) -> str:
        """Rows written anew, because their files carry deletes."""
        made: str = self.io("table.rewrite", lambda: self.catalog.rewrite(branch, source, partitions))
        return made

    def carry_over(self, *_: Any) -> Any:
        """Not asked for: no files are shared here."""
        raise AssertionError
