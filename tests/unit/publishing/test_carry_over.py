"""Files that hold other partitions as well: what is taken out, what is carried over, and what is no conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from errata.errors import EngineError, PublishConflict
from errata.failpoints import NAMES, arm
from errata.model.manifest import ExpectedFile, Rewrite, TargetPin
from errata.model.partition import Grain
from errata.model.table import Commit, DataFile, History, NewDelete, TableColumn, TableSchema
from errata.ports.publish import CarriedOver, Outcome, PublicationCommit, PublicationLookup
from errata.publishing.carry_over import NOTHING_CARRIED
from errata.publishing.conflict import classify_changes
from errata.publishing.replacement import Replacement, ReplacementResult, commit_replacement
from unit.publishing.test_replacement import Log

DAY, OTHER = "2026-01-01", "2026-01-02"
PIN = TargetPin(
    "lake.t", "uuid", "1", 0, 0, "d", "date", "identity", Grain.DAY, {"d": "date"}, (), "part", {DAY: "x"}, 1,
    mode="rewrite", rewrite=Rewrite("unpartitioned", 1, 2, 3),
)  # fmt: skip
Rows = frozenset[tuple[str, str]]


@dataclass
class Lake:
    """A table whose files are sets of (partition, row); nobody knows what is in a file without reading it."""

    files: dict[str, Rows]
    head: int = 1
    tag: str | None = None
    branches: dict[str, dict[str, Rows]] = field(default_factory=dict)
    carried: list[tuple[str, ...]] = field(default_factory=list)
    commits: list[PublicationCommit] = field(default_factory=list)
    undone: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        return sorted(row for rows in self.files.values() for row in rows)

    def version(self, _target: TargetPin) -> Version:
        return Version(self, self.head, dict(self.files))

    def find_outcome(self, *_: Any) -> PublicationLookup:
        if self.tag == "guard":
            return PublicationLookup(Outcome.FENCED)
        return PublicationLookup(Outcome.LANDED, self.tag) if self.tag else PublicationLookup(Outcome.ABSENT)

    def fence(self, *_: Any) -> None:
        self.tag = self.tag or "guard"

    def write_undo(self, _t: TargetPin, _p: str, _s: str, _n: Sequence[str], paths: Sequence[str], _d: int) -> str:
        self.undone = tuple(paths)
        return "undo"

    def ensure_guard(self, _target: TargetPin) -> tuple[str, bool]:
        return "guard", False

    def carry_over(
        self, _target: TargetPin, branch: str, _snapshot: str, partitions: Sequence[str], paths: Sequence[str]
    ) -> CarriedOver:
        taken = tuple(path for path in paths if any(day in partitions for day, _ in self.files[path]))
        rest = frozenset(row for path in taken for row in self.files[path] if row[0] not in partitions)
        made = {f"{branch}/0": rest} if rest else {}
        self.branches[branch] = made
        self.carried.append(tuple(paths))
        return CarriedOver(branch, tuple(_file(path, rows) for path, rows in made.items()), taken)


@dataclass
class Version:
    """One metadata version of it."""

    lake: Lake
    at: int
    files: dict[str, Rows]
    table_uuid: str = "uuid"
    spec_id: int = 0
    column: str = PIN.column
    refs: frozenset[str] = frozenset()

    @property
    def snapshot_id(self) -> str:
        return str(self.at)

    @property
    def schema(self) -> TableSchema:
        return TableSchema(0, 1, {"d": "date"}, {"d": 1})

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        return (TableColumn(1, "d"),)

    def live(self, partitions: Sequence[str]) -> tuple[DataFile, ...]:
        return tuple(_file(path, rows, partitions) for path, rows in self.files.items())

    def history(self, *_: Any) -> History:
        return History((Commit("9", "append", 0, "etl", {}, touches_everything=True),), complete=True)

    def new_deletes(self, *_: Any) -> tuple[NewDelete, ...]:
        return ()

    def commit(self, commit: PublicationCommit) -> str:
        self.lake.commits.append(commit)
        if self.lake.head != self.at:
            raise RuntimeError("CommitFailedException")
        for path in commit.remove:
            del self.lake.files[path]
        self.lake.files |= {path: frozenset({(DAY, "new")}) for path in commit.add}
        self.lake.files |= {path: self.lake.branches[commit.carried_from][path] for path in commit.carried}
        self.lake.head += 1
        self.lake.tag = str(self.lake.head)
        return self.lake.tag


def _file(path: str, rows: Rows, partitions: Sequence[str] = (DAY,)) -> DataFile:
    days = {day for day, _ in rows}
    only = next(iter(days)) if path.startswith("one") else None
    return DataFile(path, len(rows), 1, only, (), () if only else tuple(partitions))


def _order(*files: str, **changes: Any) -> Replacement:
    return replace(
        Replacement(
            kind="publish", run_id="run", product="fin.sales", manifest_digest="d", target=PIN, partitions=(DAY,),
            expected={DAY: tuple(ExpectedFile(path, 1, "data") for path in files)}, base_snapshot_id="1",
            add={DAY: (ExpectedFile("staged", 1, "data"),)}, add_from=("c",), undo_days=30, keep_refs={},
            content_columns=("d",),
        ),
        **changes,
    )  # fmt: skip


def _publish(lake: Lake, order: Replacement, *, same: bool = True) -> ReplacementResult:
    class Content:
        def content(self, _target: TargetPin, snapshot: str, names: Sequence[str], _columns: Any) -> dict[str, str]:
            return dict.fromkeys(names, "same" if same else snapshot)

    return commit_replacement(order, lake, Content(), Log())  # type: ignore[arg-type]


def test_what_a_shared_file_holds_of_others_is_carried_over_and_files_without_the_scope_stay() -> None:
    """One commit takes the shared file out and puts two in: the new rows, and the rows of others."""
    lake = Lake(
        {"mixed": frozenset({(DAY, "old"), (OTHER, "kept")}), "wide": frozenset({(OTHER, "far")}),
         "one": frozenset({(DAY, "old too")})}
    )  # fmt: skip
    done = _publish(lake, _order("mixed", "wide", "one"))
    (commit,) = lake.commits
    assert (commit.remove, commit.add, len(commit.carried)) == (("mixed", "one"), ("staged",), 1)
    assert commit.carried_from in commit.keep_refs
    assert lake.undone == ("mixed", "one")
    assert lake.rows() == [(DAY, "new"), (OTHER, "far"), (OTHER, "kept")]
    assert (done.data_files_written, done.removed) == (1, 2)


def test_a_shared_file_that_changed_meanwhile_is_carried_over_again() -> None:
    """Another writer exchanged the file before the commit: its row is kept, and the first copy is not used."""
    lake = Lake({"mixed": frozenset({(DAY, "old"), (OTHER, "kept")})})
    hits: list[int] = []

    def change() -> None:
        hits.append(1)
        if len(hits) == 1:
            lake.files = {"mixed2": frozenset({(DAY, "old"), (OTHER, "changed")})}
            lake.head += 1

    with arm("publish.before_commit", change):
        _publish(lake, _order("mixed"))
    assert lake.rows() == [(DAY, "new"), (OTHER, "changed")]
    assert lake.carried == [("mixed",), ("mixed2",)]


def test_a_commit_elsewhere_does_not_make_rows_be_written_again() -> None:
    """What was carried over depends on the shared files alone."""
    lake = Lake({"mixed": frozenset({(DAY, "old"), (OTHER, "kept")})})
    with arm("publish.before_commit", _moving(lake)):
        _publish(lake, _order("mixed"))
    assert len(lake.carried) == 1
    assert len(lake.commits) == 2


def _moving(lake: Lake) -> Callable[[], None]:
    hits: list[int] = []

    def move() -> None:
        hits.append(1)
        lake.head += len(hits) == 1

    return move


def test_content_decides_whether_a_partition_of_shared_files_was_written() -> None:
    """Its files changed in both cases; only other rows in the partition are a conflict, and it names who came by."""
    lake = Lake({"mixed2": frozenset({(DAY, "old"), (OTHER, "kept")})}, head=5)
    with pytest.raises(PublishConflict, match="snapshot 9"):
        _publish(lake, _order("mixed"), same=False)
    assert (lake.commits, lake.carried) == ([], [])
    assert _publish(lake, _order("mixed")).compacted == (DAY,)


def test_a_plan_that_did_not_say_rewrite_finds_shared_files_to_be_a_drift() -> None:
    """What was approved was a publication that writes nothing."""
    lake = Lake({"mixed": frozenset({(DAY, "old"), (OTHER, "kept")})})
    with pytest.raises(PublishConflict, match="another spec"):
        _publish(lake, _order("mixed", target=replace(PIN, mode="metadata", rewrite=None)))


def test_rows_that_cannot_be_carried_over_leave_main_as_it_was() -> None:
    """The publication is closed behind its fence."""
    lake = Lake({"mixed": frozenset({(DAY, "old"), (OTHER, "kept")})})

    def broken(*_: Any) -> CarriedOver:
        raise EngineError("rows were not written as they were read")

    lake.carry_over = broken  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="not written as they were read"):
        _publish(lake, _order("mixed"))
    assert (lake.tag, lake.commits) == ("guard", [])


def test_nothing_shared_needs_nothing_carried_over() -> None:
    """A table whose partitions are sets of files never gets here."""
    assert NOTHING_CARRIED.is_current([DataFile("a", 1, 1, DAY)])
    assert not NOTHING_CARRIED.is_current([DataFile("a", 1, 1, None)])
    assert {"publish.after_carry", "rollback.after_carry"} <= set(NAMES)


def test_commits_prove_nothing_of_partitions_that_share_files() -> None:
    """An append may have been to other partitions; it is only suspected."""
    append = Commit("9", "append", 0, "etl", {}, touches_everything=True)
    found = classify_changes([DAY], History((append,), complete=True), {}, {}, shares_files=True)
    assert (found.unclear, found.written) == ((DAY,), {})
    assert found.resolve_unclear([]).written == {DAY: (append,)}
    assert found.resolve_unclear([DAY]).compacted == (DAY,)
