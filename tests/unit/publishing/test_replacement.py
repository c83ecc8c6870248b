"""One replacement against a table that lies, fails late, moves or is fenced: the outcome is what the table says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from errata.errors import EngineError, PublishConflict, RunExpired, StateRefused
from errata.model.manifest import ExpectedFile, NewColumn, TargetPin
from errata.model.partition import Grain
from errata.model.table import Commit, DataFile, History, NewDelete, TableColumn, TableSchema, Touch
from errata.ports.publish import SCOPE_PROPERTY, Outcome, PublicationCommit, PublicationLookup, scope_digest
from errata.publishing.intent import Intent
from errata.publishing.replacement import Replacement, commit_replacement
from errata.publishing.unrecorded import close_intent

DAY = "2026-01-01"
PIN = TargetPin(
    "lake.t", "uuid", "1", 0, 0, "d", "date", "identity", Grain.DAY, {"d": "date"}, (), "part", {DAY: "x"}, 1
)
OLD, NEW = ExpectedFile("old", 1, "data"), ExpectedFile("new", 1, "data")


@dataclass
class Table:
    """A table in memory; ``on_commit`` decides what a try does before (and instead of) landing."""

    files: set[str] = field(default_factory=lambda: {"old"})
    head: int = 1
    tag: str | None = None  # landed snapshot, or "guard"
    undo: list[tuple[str, ...]] = field(default_factory=list)
    on_commit: Callable[[Table], bool] = lambda _table: True
    writes: list[Commit] = field(default_factory=list)
    schema_id: int = 0
    table_uuid: str = "uuid"
    spec_id: int = 0
    column: str | None = PIN.column
    partition: str | None = DAY  # of every file
    commits: list[PublicationCommit] = field(default_factory=list)
    last_column_id: int = 1
    columns: dict[str, str] = field(default_factory=lambda: {"d": "date"})
    field_ids: dict[str, int] = field(default_factory=lambda: {"d": 1})
    attached: tuple[ExpectedFile, ...] = ()  # delete files that apply to every live file
    defaults: dict[str, str] = field(default_factory=dict)
    deletes: list[NewDelete] = field(default_factory=list)
    complete: bool = True  # whether the commits reach back to the base
    past: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"1": ("old",)})
    listed: list[str] = field(default_factory=list)  # snapshots whose files were listed

    def version(self, _target: TargetPin) -> Version:
        return Version(self, self.head, frozenset(self.files), self.schema_id, self.table_uuid, self.spec_id)

    def find_outcome(self, _target: TargetPin, _pub: str) -> PublicationLookup:
        if self.tag == "guard":
            return PublicationLookup(Outcome.FENCED)
        return PublicationLookup(Outcome.LANDED, self.tag) if self.tag else PublicationLookup(Outcome.ABSENT)

    def fence(self, _target: TargetPin, _pub: str) -> None:
        self.tag = self.tag or "guard"

    def write_undo(self, _t: TargetPin, _p: str, _s: str, _n: Sequence[str], paths: Sequence[str], _d: int) -> str:
        self.undo.append(tuple(paths))
        return "undo"

    def ensure_guard(self, _target: TargetPin) -> tuple[str, bool]:
        return "guard", False

    def files_of(self, _target: TargetPin, snapshot_id: str, _partitions: Sequence[str]) -> tuple[DataFile, ...]:
        if snapshot_id not in self.past:
            raise RunExpired(f"snapshot {snapshot_id} is gone")
        return tuple(DataFile(path, 1, 1, DAY) for path in self.past[snapshot_id])

    def rewrite(self, *_: Any) -> str:
        raise AssertionError("nothing carries deletes here")

    def land(self, commit: PublicationCommit) -> str:
        self.files = (self.files - set(commit.remove)) | set(commit.add)
        self.head += 1
        self.tag = str(self.head)
        return self.tag


@dataclass
class Version:
    """One metadata version of that table."""

    table: Table
    at: int
    files: frozenset[str]
    schema_id: int
    table_uuid: str = "uuid"
    spec_id: int = 0
    refs: frozenset[str] = frozenset()

    @property
    def snapshot_id(self) -> str:
        return str(self.at)

    @property
    def schema(self) -> TableSchema:
        return TableSchema(self.schema_id, self.table.last_column_id, self.table.columns, self.table.field_ids)

    def columns(self, schema_id: int | None = None) -> tuple[TableColumn, ...]:
        ids = {"d": 1} if schema_id == PIN.schema_id else self.table.field_ids
        return tuple(TableColumn(number, name, self.table.defaults.get(name)) for name, number in ids.items())

    @property
    def column(self) -> str | None:
        return self.table.column

    def live(self, _partitions: Sequence[str]) -> tuple[DataFile, ...]:
        self.table.listed.append(self.snapshot_id)
        return tuple(DataFile(path, 1, 1, self.table.partition, self.table.attached, (DAY,)) for path in self.files)

    def history(self, _base: str | None, _partitions: Sequence[str]) -> History:
        return History(tuple(self.table.writes), complete=self.table.complete)

    def new_deletes(self, *_: Any) -> tuple[NewDelete, ...]:
        return tuple(self.table.deletes)

    def commit(self, commit: PublicationCommit) -> str:
        self.table.commits.append(commit)
        if not self.table.on_commit(self.table):
            raise RuntimeError("connection reset")
        if self.table.head != self.at or self.table.tag:
            raise RuntimeError("CommitFailedException")
        return self.table.land(commit)


@dataclass
class Log:
    """The ledger as a list."""

    events: list[str] = field(default_factory=list)
    may: Callable[[], object] = lambda: None
    known: frozenset[str] = frozenset({"p0"})
    restored: Mapping[str, object] = field(default_factory=dict)

    def last_look(self) -> None:
        self.may()

    def open_intent(self, detail: Mapping[str, object]) -> str:
        self.events.append("intended")
        return "p1"

    def is_recorded(self, publication_id: str) -> bool:
        return publication_id in self.known

    def restore(self, publication_id: str, snapshot_id: str, detail: Mapping[str, object]) -> None:
        self.events.append(f"restored {publication_id} {snapshot_id}")
        self.restored = detail

    def update(self, _pub: str, _detail: Mapping[str, object]) -> None:
        self.events.append("updated")

    def record_committed(self, _pub: str, snapshot_id: str) -> None:
        self.events.append(f"committed {snapshot_id}")

    def record_abandoned(self, _pub: str, _reason: str) -> None:
        self.events.append("abandoned")


class SameContent:
    """Content that never changes."""

    def content(self, *_: Any) -> Mapping[str, str]:
        return {DAY: "same"}

    def filled(self, *_: Any) -> Mapping[str, tuple[str, ...]]:
        return {}


ORDER = Replacement(
    "publish", "run", "fin.sales", "digest", PIN, (DAY,), {DAY: (OLD,)}, "1", {DAY: (NEW,)}, ("9",), 30, {}, ("d",)
)


def test_the_files_of_a_snapshot_are_listed_once() -> None:
    """However often the table is examined; what was committed meanwhile is listed again."""
    table = Table()
    commit_replacement(ORDER, table, SameContent(), Log())
    assert table.listed == ["1"]
    moving = Table(on_commit=_compact_once)
    commit_replacement(ORDER, moving, SameContent(), Log())
    assert moving.listed == ["1", "2"]
    assert moving.undo == [("old",), ("compacted",)]


def _compact_once(table: Table) -> bool:
    """The first try meets a compaction of someone else, and fails."""
    if table.head > 1:
        return True
    table.files, table.head = {"compacted"}, 2
    table.writes.append(Commit("2", "replace", 0, "app", {DAY: Touch(1, 1)}))
    return False


def test_a_try_that_lands_is_recorded_once_with_its_undo_set() -> None:
    """Intent, undo set, commit, outcome: in this order."""
    table, log = Table(), Log()
    done = commit_replacement(ORDER, table, SameContent(), log)
    assert table.files == {"new"}
    assert table.undo == [("old",)]
    assert log.events == ["intended", "updated", f"committed {done.snapshot_id}"]


def test_the_last_look_is_taken_before_every_try() -> None:
    """What was judged may turn out not to be shown while others move the table; the try after that is not made."""
    table, looks = Table(), list[int]()

    def moved(found: Table) -> bool:
        found.head += 1
        return False

    def look() -> None:
        looks.append(len(table.commits))
        if len(table.commits) == 2:
            raise StateRefused("the list has moved")

    table.on_commit = moved
    log = Log(may=look)
    with pytest.raises(StateRefused, match="the list has moved"):
        commit_replacement(ORDER, table, SameContent(), log)
    assert (looks, log.events[-1], table.files) == ([0, 1, 2], "abandoned", {"old"})


def test_an_answer_that_got_lost_is_looked_up_and_not_published_twice() -> None:
    """The commit landed and the call raised: the table decides."""
    table, log = Table(), Log()

    def land_and_raise(at: Table) -> bool:
        at.land(PublicationCommit("p1", "run", "d", (DAY,), ("old",), ("new",), (), {}, 1, {}))
        return False

    table.on_commit = land_and_raise
    done = commit_replacement(ORDER, table, SameContent(), log)
    assert table.files == {"new"}
    assert log.events[-1] == f"committed {done.snapshot_id}"
    assert log.events.count("intended") == 1


def test_a_lost_race_is_tried_again_on_what_is_there_now() -> None:
    """A live commit elsewhere between check and commit costs a try and nothing else."""
    table, log, moved = Table(), Log(), []

    def move_once(at: Table) -> bool:
        if not moved:
            moved.append(1)
            at.head += 1
        return True

    table.on_commit = move_once
    commit_replacement(ORDER, table, SameContent(), log)
    assert table.files == {"new"}
    assert table.undo == [("old",)]


def test_a_write_between_check_and_commit_is_a_conflict_behind_a_fence() -> None:
    """The next try sees it; the intent is closed with the fence in place, and main keeps the live file."""
    table, log = Table(), Log()

    table.on_commit = _live_write_once
    with pytest.raises(PublishConflict, match="snapshot 77 \\(daily"):
        commit_replacement(ORDER, table, SameContent(), log)
    assert table.files == {"old", "live"}
    assert table.tag == "guard"
    assert log.events[-1] == "abandoned"


def test_a_main_that_never_rests_ends_in_a_refusal_and_not_in_a_plain_overwrite() -> None:
    """After a bounded number of tries: exit 5, closed behind a fence."""
    table, log = Table(), Log()

    def always_moves(at: Table) -> bool:
        at.head += 1
        return True

    table.on_commit = always_moves
    with pytest.raises(PublishConflict) as refused:
        commit_replacement(ORDER, table, SameContent(), log)
    assert "CommitFailedException" in refused.value.message
    assert table.files == {"old"}
    assert log.events[-1] == "abandoned"


def test_compaction_between_check_and_commit_renews_the_undo_set() -> None:
    """What is removed, and what is kept for the undo, is what is live on the version that is committed on."""
    table, log, done = Table(), Log(), []

    def compact_once(at: Table) -> bool:
        if not done:
            done.append(1)
            at.files = {"compacted"}
            at.head += 1
            at.writes.append(Commit("78", "replace", 0, "maintenance", {DAY: Touch(1, 1)}))
        return True

    table.on_commit = compact_once
    found = commit_replacement(ORDER, table, SameContent(), log)
    assert table.files == {"new"}
    assert table.undo == [("old",), ("compacted",)]
    assert found.compacted == (DAY,)


@pytest.mark.parametrize(
    "changed",
    [{"schema_id": 1}, {"spec_id": 1}, {"table_uuid": "another"}, {"column": "renamed"}, {"column": None}],
    ids=str,
)
def test_a_table_that_is_not_the_planned_one_is_refused_before_anything_is_intended(changed: dict[str, Any]) -> None:
    """Table, schema and partition spec are requirements of the commit."""
    table, log = Table(**changed), Log()
    with pytest.raises(PublishConflict):
        commit_replacement(ORDER, table, SameContent(), log)
    assert log.events == []


ROLLBACK = replace(ORDER, kind="rollback", instead="errata plan fin.sales --partitions 2026-01-01 --restore 7")


@pytest.mark.parametrize("changed", [{"spec_id": 1}, {"schema_id": 1}, {"column": "renamed"}], ids=str)
def test_a_rollback_needs_the_partitions_files_and_not_the_planned_spec_or_names(changed: dict[str, Any]) -> None:
    """What was published is taken out and what was there put back, file by file, whatever the spec is by now."""
    table, log = Table(**changed), Log()
    commit_replacement(ROLLBACK, table, SameContent(), log)
    assert table.files == {"new"}


def test_a_rollback_over_files_of_another_spec_names_the_command_that_restores() -> None:
    """A file that may hold other partitions is not taken out; the hint is the whole command."""
    table, log = Table(spec_id=1, partition=None), Log()
    with pytest.raises(PublishConflict, match="written since under another partition spec") as refused:
        commit_replacement(ROLLBACK, table, SameContent(), log)
    assert "errata plan fin.sales --partitions 2026-01-01 --restore 7" in refused.value.hint
    assert (log.events, table.files) == ([], {"old"})


def test_a_rollback_after_a_rename_reads_no_rows_by_the_old_name() -> None:
    """Where only content could tell, it is refused with the command that restores."""
    table, log = Table(column="renamed", files={"rewritten"}), Log()
    with pytest.raises(PublishConflict, match="its partition column d is now renamed") as refused:
        commit_replacement(ROLLBACK, table, SameContent(), log)
    assert "--restore 7" in refused.value.hint


def test_a_rollback_by_a_column_that_was_dropped_is_refused_in_a_sentence() -> None:
    """Nothing says any more which rows are of a partition."""
    with pytest.raises(PublishConflict, match=r"the partition column d of lake\.t was dropped"):
        commit_replacement(ROLLBACK, Table(column=None), SameContent(), Log())


def test_a_commit_touches_every_ref_it_relies_on() -> None:
    """Candidate, undo set and guard: a REST catalog asserts only what a commit touches."""
    table = Table()
    commit_replacement(replace(ORDER, keep_refs={"errata_run_c1": 7}), table, SameContent(), Log())
    assert set(table.commits[-1].keep_refs) == {"errata_run_c1", "errata_p1_undo", "errata_guard"}


def test_rows_that_are_written_anew_hang_on_a_branch_that_the_commit_touches() -> None:
    """Nothing else holds their files: without the branch an expiry takes them, and main would be left with holes."""
    table = Table(past={"pre": ("old",), "rows": ("anew",)})
    table.rewrite = lambda *_: "rows"  # type: ignore[method-assign]
    order = replace(ORDER, kind="rollback", add={}, add_from=(), rewrite={"pre": (DAY,)})
    commit_replacement(order, table, SameContent(), Log())
    assert table.commits[-1].add == ("anew",)
    assert set(table.commits[-1].keep_refs) == {"errata_p1_rows1", "errata_p1_undo", "errata_guard"}


def test_main_before_is_kept_for_the_window_where_the_old_files_carry_deletes() -> None:
    """Their rows can only be read from that version; elsewhere the undo branch has the files, and three days do."""
    gone = ExpectedFile("gone", 1, "position_deletes")
    plain, deleted = Table(), Table(attached=(gone,))
    commit_replacement(ORDER, plain, SameContent(), Log())
    commit_replacement(replace(ORDER, expected={DAY: (OLD, gone)}), deleted, SameContent(), Log())
    assert [table.commits[-1].pre_days for table in (plain, deleted)] == [3, ORDER.undo_days]


def test_an_error_from_elsewhere_closes_the_intent_as_well() -> None:
    """Whatever was raised, the table is looked at, and what did not land is closed behind the fence."""
    table, log = Table(), Log()

    def undo_fails(*_: Any) -> str:
        raise RuntimeError

    table.write_undo = undo_fails  # type: ignore[method-assign]
    with pytest.raises(EngineError):
        commit_replacement(ORDER, table, SameContent(), log)
    assert log.events == ["intended", "updated", "abandoned"]
    assert table.tag == "guard"


def test_settling_fences_before_it_says_no_and_finds_what_landed_meanwhile() -> None:
    """Look, fence, look again: a commit that lands between the first look and the fence counts."""
    late, log = Table(), Log()
    first_look = late.find_outcome

    def look_then_land(target: TargetPin, pub: str) -> PublicationLookup:
        answer = first_look(target, pub)
        late.find_outcome = first_look  # type: ignore[method-assign]
        late.tag = late.tag or "55"
        return answer

    late.find_outcome = look_then_land  # type: ignore[method-assign]
    assert close_intent(PIN, "p1", (DAY,), late, log, reason="gone") == "55"
    assert log.events == ["committed 55"]
    quiet, log = Table(), Log()
    assert close_intent(PIN, "p1", (DAY,), quiet, log, reason="gone") is None
    assert quiet.tag == "guard"
    assert log.events == ["abandoned"]


def test_without_a_clear_answer_to_the_fence_nothing_is_concluded() -> None:
    """The intent stays open: a commit that is on its way could still land."""
    table, log = Table(), Log()

    def no_clear_answer(*_: Any) -> None:
        raise RuntimeError("504")

    table.fence = no_clear_answer  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="504"):
        close_intent(PIN, "p1", (DAY,), table, log, reason="gone")
    assert log.events == []


def test_a_publication_that_another_process_closed_is_not_tried_any_more() -> None:
    """Its partitions are free again and may be somebody else's: no undo set is written, no commit is sent."""
    table, log = Table(), Log()
    intend = log.open_intent

    def closed_at_once(detail: Mapping[str, object]) -> str:
        table.tag = "guard"
        return intend(detail)

    log.open_intent = closed_at_once  # type: ignore[method-assign]
    with pytest.raises(PublishConflict, match="another process closed this publication"):
        commit_replacement(ORDER, table, SameContent(), log)
    assert (table.commits, table.undo, log.events) == ([], [], ["intended", "abandoned"])


def test_a_partition_that_is_empty_now_loses_its_old_rows() -> None:
    """The declared scope is replaced, not what is found in the new files: nothing to add still means all to remove."""
    table = Table()
    commit_replacement(replace(ORDER, add={DAY: ()}), table, SameContent(), Log())
    assert (table.commits[0].remove, table.commits[0].add, table.files) == (("old",), (), set())


def test_a_rollback_does_not_take_a_later_write_along() -> None:
    """What somebody wrote after the publication stays, and the rollback is refused."""
    table, log = Table(files={"old", "live"}), Log()
    table.writes.append(Commit("77", "append", 0, "daily", {DAY: Touch(1, 0)}))
    with pytest.raises(PublishConflict, match="1 of 1 partition was written by someone else after the publication"):
        commit_replacement(replace(ORDER, kind="rollback", own=frozenset({"p0"})), table, SameContent(), log)
    assert (table.files, table.commits, log.events) == ({"old", "live"}, [], [])


def test_an_error_of_ours_closes_the_intent() -> None:
    """Files that cannot be found stop the publication; the locks do not stay."""
    table, log = Table(), Log()

    def broken(_at: Table) -> bool:
        raise EngineError("not every file was found")

    table.on_commit = broken
    with pytest.raises(EngineError):
        commit_replacement(ORDER, table, SameContent(), log)
    assert log.events[-1] == "abandoned"
    assert table.files == {"old"}


WIDER = replace(
    PIN,
    columns={"d": "date", "x": "long"},
    last_column_id=1,
    new_columns=(NewColumn("x", "long", 2),),
    shadow="lake.errata_shadow_t_1",
)


def test_the_commit_that_publishes_adds_the_new_columns_and_files_of_the_shadow() -> None:
    """One commit carries both, so readers see the columns when they see the rows."""
    table = Table()
    commit_replacement(replace(ORDER, target=WIDER, add_table="lake.errata_shadow_t_1"), table, SameContent(), Log())
    assert table.commits[0].add_columns == (NewColumn("x", "long", 2),)
    assert table.commits[0].add_table == "lake.errata_shadow_t_1"


def test_a_later_part_finds_the_columns_there_and_adds_none() -> None:
    """The schema id is another one by then; the columns are the planned ones under the planned field ids."""
    table = Table(schema_id=1, last_column_id=2, columns={"d": "date", "x": "long"}, field_ids={"d": 1, "x": 2})
    commit_replacement(replace(ORDER, target=WIDER), table, SameContent(), Log())
    assert table.commits[0].add_columns == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"last_column_id": 2},
        {"schema_id": 1, "last_column_id": 2, "columns": {"d": "date", "y": "long"}, "field_ids": {"d": 1, "y": 2}},
        {"schema_id": 1, "last_column_id": 3, "columns": {"d": "date", "x": "long"}, "field_ids": {"d": 1, "x": 3}},
        {"schema_id": 1, "last_column_id": 2, "columns": {"d": "date", "x": "int"}, "field_ids": {"d": 1, "x": 2}},
        {"schema_id": 1, "last_column_id": 3, "columns": {"d": "date", "x": "long", "y": "int"},
         "field_ids": {"d": 1, "x": 2, "y": 3}},
    ],
    ids=["added and dropped", "another column", "another field id", "another type", "one more column"],
)  # fmt: skip
def test_new_columns_are_not_added_to_a_schema_that_changed(changed: dict[str, Any]) -> None:
    """Staged files carry field ids; under any other they would be read wrongly."""
    table = Table(**changed)
    with pytest.raises(PublishConflict, match="expected schema 0"):
        commit_replacement(replace(ORDER, target=WIDER), table, SameContent(), Log())
    assert table.commits == []


def test_a_rollback_leaves_the_columns_and_asks_nothing_of_the_schema() -> None:
    """What it restores has NULL in them."""
    table = Table(schema_id=1)
    commit_replacement(replace(ORDER, target=WIDER, kind="rollback"), table, SameContent(), Log())
    assert table.commits[0].add_columns == ()


APPEND = replace(ORDER, expected={DAY: ()}, only_into_empty=True)


def test_an_append_finds_its_partitions_empty_and_removes_nothing() -> None:
    """Nothing to remove makes the commit an append."""
    table = Table(files=set())
    commit_replacement(APPEND, table, SameContent(), Log())
    assert (table.files, table.commits[0].remove, table.undo) == ({"new"}, (), [()])


def test_an_append_meets_anything_live_as_a_conflict_even_where_content_would_say_the_same() -> None:
    """Compaction, rows that were deleted again, an unknown writer: an append replaces nothing."""
    table, log = Table(), Log()
    table.writes.append(Commit("78", "replace", 0, "maintenance", {DAY: Touch(0, 0)}))
    with pytest.raises(PublishConflict, match="snapshot 78 \\(maintenance"):
        commit_replacement(APPEND, table, SameContent(), log)
    assert (table.files, log.events) == ({"old"}, [])


def test_a_live_write_between_the_check_and_the_commit_of_an_append_is_a_conflict() -> None:
    """The next try sees it, and the intent is closed behind a fence."""
    table, log = Table(files=set()), Log()

    table.on_commit = _live_write_once
    with pytest.raises(PublishConflict, match="snapshot 77 \\(daily"):
        commit_replacement(APPEND, table, SameContent(), log)
    assert (table.files, table.tag, log.events[-1]) == ({"live"}, "guard", "abandoned")


def _live_write_once(at: Table) -> bool:
    """Another job is faster, the first time."""
    if not at.writes:
        at.files.add("live")
        at.head += 1
        at.writes.append(Commit("77", "append", 0, "daily", {DAY: Touch(1, 0)}))
    return True


def test_a_commit_says_which_partitions_it_is_about() -> None:
    """In whatever order they were named."""
    table = Table()
    commit_replacement(ORDER, table, SameContent(), Log())
    assert table.commits[0].properties["errata.scope"] == scope_digest([DAY])
    assert scope_digest(["b", "a"]) == scope_digest(["a", "b"]) != scope_digest(["a"])


@pytest.mark.parametrize(
    "files, landed",
    [({"new"}, True), ({"new", "appended since"}, True), ({"old"}, False), ({"new", "old"}, False), (set(), False)],
)
def test_an_intent_whose_tag_and_snapshot_have_expired_is_settled_by_its_files(files: set[str], landed: bool) -> None:
    """Only when main has all that was to be added and nothing that was to be removed, and only behind the fence."""
    table, log = Table(files=set(files)), Log()
    intent = {"add": {DAY: [["data", "new", 1]]}, "remove": {DAY: [["data", "old", 1]]}}
    found = close_intent(PIN, "p1", (DAY,), table, log, reason="gone", intent=Intent.from_dict(intent))
    assert table.tag == "guard"
    assert (found, log.events) == (("1", ["committed 1"]) if landed else (None, ["abandoned"]))


def test_files_that_another_publication_brought_are_not_proof_of_this_one() -> None:
    """Closed behind a fence and published again under another id, which an older copy of the ledger lacks."""
    table, log = Table(files={"new"}, tag="guard", writes=[_published("run-p2-bbbbbb")]), Log()
    intent = {"add": {DAY: [["data", "new", 1]]}, "remove": {DAY: [["data", "old", 1]]}, "base_snapshot_id": "1"}
    assert (
        close_intent(PIN, "run-p1-aaaaaa", (DAY,), table, log, reason="gone", intent=Intent.from_dict(intent)) is None
    )
    assert log.events == ["abandoned"]


def _published(publication_id: str, kind: str = "publish", scope: Sequence[str] = (DAY,), run: str = "run") -> Commit:
    said = {
        "errata.publication": publication_id,
        "errata.run": run,
        "errata.kind": kind,
        SCOPE_PROPERTY: scope_digest(scope),
    }
    return Commit("55", "overwrite", 0, "errata", {DAY: Touch(1, 1)}, summary=said)


def test_a_publication_that_the_ledger_lacks_is_recorded_and_not_made_again() -> None:
    """Main holds exactly what is ordered, by a commit of this run: on the record under its own id, with its undo."""
    table, log, looks = Table(files={"new"}, head=2, writes=[_published("run-p1-aaaaaa")]), Log(), list[int]()
    log.may = lambda: looks.append(1)
    done = commit_replacement(ORDER, table, SameContent(), log)
    assert (done.publication_id, done.snapshot_id, done.removed, done.added) == ("run-p1-aaaaaa", "55", 1, 1)
    assert (log.events, table.commits, looks) == (["restored run-p1-aaaaaa 55"], [], [1])
    assert log.restored["remove"] == {DAY: [["data", "old", 1]]}


def test_a_rollback_that_the_ledger_lacks_is_recorded_as_well() -> None:
    """The run is published by the ledger and taken back on main: rolling back finds that, and commits nothing."""
    back = replace(ORDER, kind="rollback", expected={DAY: (NEW,)}, add={DAY: (OLD,)}, base_snapshot_id="1")
    table, log = Table(files={"old"}, head=3, writes=[_published("run-r2-bbbbbb", "rollback")]), Log()
    table.past["1"] = ("new",)
    assert commit_replacement(back, table, SameContent(), log).publication_id == "run-r2-bbbbbb"
    assert (log.events, table.commits) == (["restored run-r2-bbbbbb 55"], [])


@pytest.mark.parametrize(
    "files, commit, past",
    [
        ({"other"}, _published("run-p1-aaaaaa"), {"1": ("old",)}),
        ({"new", "live"}, _published("run-p1-aaaaaa"), {"1": ("old",)}),
        ({"new"}, _published("p0"), {"1": ("old",)}),
        ({"new"}, _published("run-p1-aaaaaa", run="another"), {"1": ("old",)}),
        ({"new"}, _published("run-p1-aaaaaa", scope=(DAY, "2026-01-02")), {"1": ("old",)}),
        ({"new"}, _published("run-r1-aaaaaa", "rollback"), {"1": ("old",)}),
        ({"new"}, _published("run-p1-aaaaaa"), {}),
    ],
    ids=[
        "other files",
        "written since",
        "known",
        "another run",
        "another scope",
        "another kind",
        "what was before expired",
    ],
)
def test_anything_but_the_ordered_publication_is_a_conflict(
    files: set[str], commit: Commit, past: dict[str, tuple[str, ...]]
) -> None:
    """Nothing is recorded; the message names the publication, and says so when the ledger lacks it."""
    table, log = Table(files=files, head=2, writes=[commit], past=past), Log()
    with pytest.raises(PublishConflict) as refused:
        commit_replacement(ORDER, table, SameContent(), log)
    name = commit.summary["errata.publication"]
    assert f"snapshot 55 ({name}, " in refused.value.message
    assert (f"{name} is not in this ledger" in refused.value.message) == (name != "p0")
    assert (log.events, table.commits) == ([], [])


def test_an_intent_on_a_table_that_was_made_anew_is_closed_as_abandoned() -> None:
    """Another table of the same name holds nothing that was published, whatever its files and columns are."""
    table, log = Table(files={"/new"}, table_uuid="another"), Log()
    intent = {"add": {DAY: [["data", "/new", 1]]}, "remove": {DAY: []}}
    assert close_intent(PIN, "p1", (DAY,), table, log, reason="gone", intent=Intent.from_dict(intent)) is None


def test_an_intent_that_adds_nothing_is_not_settled_by_what_is_missing() -> None:
    """Its partitions may have been emptied by anyone."""
    table, log = Table(files=set()), Log()
    intent: dict[str, Any] = {"add": {DAY: []}, "remove": {DAY: [["data", "old", 1]]}}
    assert close_intent(PIN, "p1", (DAY,), table, log, reason="gone", intent=Intent.from_dict(intent)) is None
    assert log.events == ["abandoned"]


@dataclass
class Measured(SameContent):
    """Content that is the same over the planned columns, with columns beside them that live has filled."""

    holds: tuple[str, ...] = ()
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def content(self, *asked: Any) -> Mapping[str, str]:
        self.asked.append(tuple(asked[3]))
        return {DAY: "same"}

    def filled(self, *asked: Any) -> Mapping[str, tuple[str, ...]]:
        held = tuple(name for name in asked[3] if name in self.holds)
        return {DAY: held} if held else {}


REWRITE = replace(PIN, mode="rewrite")
BACK = replace(ORDER, kind="rollback", known_content={DAY: "same"})


@pytest.mark.parametrize("target", [PIN, REWRITE], ids=["history cut", "shared files"])
def test_a_column_added_since_that_holds_values_is_a_live_write(target: TargetPin) -> None:
    """Where content decides, it is compared over the planned columns, and these do not tell."""
    wider = {"d": 1, "region": 2}
    table, log = Table(files={"rewritten"}, complete=target is REWRITE, field_ids=wider), Log()
    with pytest.raises(PublishConflict, match=f"{DAY}  column region, added since, holds values") as conflict:
        commit_replacement(replace(BACK, target=target), table, Measured(holds=("region",)), log)
    assert conflict.value.fields["partitions"] == [DAY]
    assert (table.files, log.events) == ({"rewritten"}, [])
    commit_replacement(replace(BACK, target=target), table, Measured(), log)
    assert table.files == {"new"}, "a column that holds nothing changes nothing"


def test_columns_that_the_publication_brought_are_compared_with_all_others() -> None:
    """They were measured at the gate; what they hold is its own."""
    table = Table(files={"rewritten"}, complete=False, field_ids={"d": 1, "x": 2})
    content = Measured(holds=("x",))
    commit_replacement(replace(BACK, target=WIDER, content_columns=("d", "x")), table, content, Log())
    assert (table.files, set(content.asked)) == ({"new"}, {("d", "x")})


def test_content_is_compared_under_the_names_of_now() -> None:
    """A column that was renamed since is the same column."""
    table, content = Table(files={"rewritten"}, complete=False, field_ids={"date": 1}), Measured()
    commit_replacement(BACK, table, content, Log())
    assert (table.files, set(content.asked)) == ({"new"}, {("date",)})


def test_rows_that_a_dropped_column_keeps_from_being_compared_are_a_conflict_that_names_it() -> None:
    """What it held was measured and is no longer there to be measured."""
    table = Table(files={"rewritten"}, complete=False, field_ids={"e": 2})
    with pytest.raises(PublishConflict, match="column d was dropped since"):
        commit_replacement(replace(BACK, known_content={DAY: "other"}), table, Measured(), Log())
    assert table.files == {"rewritten"}


@pytest.mark.parametrize(
    "order",
    [ORDER, BACK, replace(ORDER, only_into_empty=True, expected={DAY: ()})],
    ids=["publish", "rollback", "append"],
)
def test_a_delete_file_is_a_live_write_although_the_live_files_are_the_expected_ones(order: Replacement) -> None:
    """The rows it deletes may be in no live file; to go over it would bring them back."""
    files = {"old"} if order.expected[DAY] else set()
    gone = Commit("77", "overwrite", 0, "flink", {})
    table, log = Table(files=set(files), deletes=[NewDelete("eq", "equality_deletes", DAY, (), gone)]), Log()
    with pytest.raises(PublishConflict, match=f"{DAY}  overwritten by snapshot 77 \\(flink.*by a delete file") as found:
        commit_replacement(order, table, SameContent(), log)
    assert found.value.fields["partitions"] == [DAY]
    assert (table.files, table.commits, log.events) == (files, [], [])


def test_a_delete_file_decides_before_content_is_read() -> None:
    """Files were rewritten and the rows are the same; that does not make the deletion undone."""
    table = Table(files={"rewritten"}, complete=False, deletes=[NewDelete("eq", "equality_deletes", DAY)])
    content = Measured()
    with pytest.raises(PublishConflict, match="deleted by a delete file; history does not say by whom"):
        commit_replacement(BACK, table, content, Log())
    assert content.asked == []
