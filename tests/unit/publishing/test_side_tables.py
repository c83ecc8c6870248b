"""An append beside the target against a table that lies, fails late or is fenced: it lands once, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from errata.errors import EngineError, PublishConflict
from errata.model.manifest import TargetPin
from errata.model.table import Commit, Touch
from errata.ports.publish import SCOPE_PROPERTY, Outcome, PublicationLookup, StagedRows, scope_digest
from errata.publishing.side_tables import SideTableRows, append_to_side_table
from unit.publishing.test_replacement import DAY, ORDER, Log, SameContent, Table

PLACE = "lake.t_corrections"


@dataclass
class Beside:
    """The table beside the target, and both tables' tags."""

    main: Table
    shown: list[str] = field(default_factory=list)
    branches: int = 0
    lose_answer: bool = False
    moves: bool = False
    told: list[Mapping[str, str]] = field(default_factory=list)

    def list_run_commits(self, _table: str, _run: str) -> tuple[Mapping[str, str], ...]:
        return tuple(self.told)

    def open_branch(self, _table: str, _pub: str) -> str:
        self.branches += 1
        return f"b{self.branches}"

    def staged(self, _table: str, _branch: str) -> StagedRows:
        return StagedRows(7, 2)

    def landed(self, _table: str, pub: str) -> str | None:
        return "900" if pub in self.shown else None

    def land(self, table: str, pub: str, _branch: str, properties: Mapping[str, str]) -> str:
        assert table == PLACE
        assert properties["errata.publication"] == pub
        if self.main.tag == "guard":
            raise EngineError("fenced")
        self.shown.append(pub)
        self.main.tag = "900"
        if self.lose_answer:
            raise RuntimeError("connection reset")
        return "900"

    def head(self, _table: str) -> str:
        return "900"


class Watching(Table):
    """Says which table is looked at and fenced."""

    def find_outcome(self, target: TargetPin, pub: str) -> PublicationLookup:
        assert target.table == PLACE
        return PublicationLookup(Outcome.LANDED, "900") if self.tag == "900" else super().find_outcome(target, pub)

    def fence(self, target: TargetPin, pub: str) -> None:
        assert target.table == PLACE
        super().fence(target, pub)


def rows(_pub: str, branch: str) -> Mapping[str, object]:
    return {"branch": branch}


def test_the_target_is_looked_at_and_not_committed_to() -> None:
    """Rows stand on a branch, one append shows them, and the record says how many files were written."""
    main, log = Watching(), Log()
    beside = Beside(main)
    done = append_to_side_table(ORDER, SideTableRows(PLACE, rows), main, beside, SameContent(), log)
    assert (done.snapshot_id, done.data_files_written, beside.shown) == ("900", 2, ["p1"])
    assert (main.files, main.commits, main.undo) == ({"old"}, [], [])
    assert log.events == ["intended", "updated", "committed 900"]


def test_an_answer_that_got_lost_is_looked_up_on_the_table_beside() -> None:
    """The append landed and the call raised: it is recorded, once."""
    main, log = Watching(), Log()
    beside = Beside(main, lose_answer=True)
    assert (
        append_to_side_table(ORDER, SideTableRows(PLACE, rows), main, beside, SameContent(), log).snapshot_id == "900"
    )
    assert (log.events[-1], beside.shown) == ("committed 900", ["p1"])


def test_a_failure_before_the_append_is_closed_behind_a_fence_on_the_table_beside() -> None:
    """A late append of the same publication finds the tag taken."""
    main, log = Watching(), Log()
    beside = Beside(main)

    def broken(_pub: str, _branch: str) -> Mapping[str, object]:
        raise RuntimeError("no space left")

    with pytest.raises(EngineError, match="no space left"):
        append_to_side_table(ORDER, SideTableRows(PLACE, broken), main, beside, SameContent(), log)
    assert (main.tag, log.events[-1]) == ("guard", "abandoned")
    with pytest.raises(EngineError, match="fenced"):
        beside.land(PLACE, "p1", "b1", {"errata.publication": "p1"})


@pytest.mark.parametrize("moment", ["before", "while rows are written"])
def test_a_live_write_into_the_scope_is_a_conflict(moment: str) -> None:
    """The rows say old values: they must be those that are there."""
    main, log = Watching(), Log()
    beside = Beside(main)

    def write(_pub: str = "", _branch: str = "") -> Mapping[str, object]:
        main.files.add("live")
        main.writes.append(Commit("77", "append", 0, "daily", {DAY: Touch(1, 0)}))
        return {}

    if moment == "before":
        write()
    with pytest.raises(PublishConflict):
        append_to_side_table(ORDER, SideTableRows(PLACE, write), main, beside, SameContent(), log)
    assert beside.shown == []
    assert log.events == ([] if moment == "before" else ["intended", "abandoned"])


def test_a_rollback_depends_on_nothing_in_the_target() -> None:
    """It takes back what was said, whatever live has written since."""
    main, log = Watching(files={"another"}), Log()
    back = replace(ORDER, kind="rollback")
    append_to_side_table(back, SideTableRows(PLACE, rows), main, Beside(main), SameContent(), log)
    assert log.events[-1] == "committed 900"


def _told(pub: str, kind: str = "publish", digest: str = "d1", scope: str = "") -> dict[str, str]:
    said = {
        "snapshot_id": "800",
        "errata.publication": pub,
        "errata.kind": kind,
        SCOPE_PROPERTY: scope or scope_digest([DAY]),
    }
    return said | ({"errata.candidate-digest": digest} if kind == "publish" else {})


JUDGED = replace(ORDER, properties={"errata.candidate-digest": "d1"})


def test_corrections_that_the_ledger_lacks_are_recorded_and_not_told_twice() -> None:
    """The same candidate, the same partitions: a lost publication of the run is on the record under its own id."""
    main, log = Watching(), Log()
    beside = Beside(main, told=[_told("run-p1-aaaaaa")])
    done = append_to_side_table(JUDGED, SideTableRows(PLACE, rows, adds_up=True), main, beside, SameContent(), log)
    assert (done.publication_id, done.snapshot_id, done.data_files_written) == ("run-p1-aaaaaa", "800", 0)
    assert (log.events, beside.shown) == (["restored run-p1-aaaaaa 800"], [])


@pytest.mark.parametrize(
    "told",
    [
        [],
        [_told("p0")],
        [_told("run-p1-aaaaaa"), _told("run-r2-aaaaaa", "rollback")],
        [_told("run-p1-aaaaaa", scope="of others")],
    ],
    ids=["nothing", "known", "taken back", "other partitions"],
)
def test_corrections_that_do_not_hold_are_told(told: list[Mapping[str, str]]) -> None:
    """What was never told, or was taken back, or is about other partitions is no reason to say nothing."""
    main, log = Watching(), Log()
    beside = Beside(main, told=told)
    append_to_side_table(JUDGED, SideTableRows(PLACE, rows, adds_up=True), main, beside, SameContent(), log)
    assert beside.shown == ["p1"]


def test_corrections_of_other_staged_output_are_not_told_on_top() -> None:
    """They would be there twice, and they are not those that were judged."""
    main, log = Watching(), Log()
    beside = Beside(main, told=[_told("run-p1-aaaaaa", digest="d0")])
    with pytest.raises(PublishConflict, match="run-p1-aaaaaa, which is not in this ledger") as refused:
        append_to_side_table(JUDGED, SideTableRows(PLACE, rows, adds_up=True), main, beside, SameContent(), log)
    assert "publication_id = 'run-p1-aaaaaa'" in (refused.value.hint or "")
    assert (log.events, beside.shown) == ([], [])
