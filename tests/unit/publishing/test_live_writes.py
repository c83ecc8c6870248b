"""Live writes between plan and publication: noticed by approve and status, and recorded once for each commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from errata.model.manifest import ExpectedFile
from errata.model.partition import Grain
from errata.model.run import RunState
from errata.model.table import Commit, History, Touch
from support.office import ANA, DAYS, Office, office


@dataclass
class Table:
    """A target whose main moves; counts how often its history was walked."""

    commits_made: list[Commit] = field(default_factory=list)
    files: dict[str, tuple[ExpectedFile, ...]] = field(default_factory=dict)
    complete: bool = True
    walks: list[tuple[str, ...]] = field(default_factory=list)
    broken: str = ""

    def write(self, number: str, day: str, operation: str = "append", touch: Touch | None = None) -> None:
        made = Commit(number, operation, 1_770_000_000_000, "daily-load", {day: touch or Touch(added_rows=3)})
        self.commits_made.insert(0, made)
        rows = made.touched[day].added_rows - made.touched[day].removed_rows
        self.files[day] = (*self.files.get(day, ()), ExpectedFile(f"/lake/{number}.parquet", rows, "data"))

    def refs(self, _table: str) -> dict[str, str]:
        if self.broken:
            raise OSError(self.broken)
        return {"main": self.commits_made[0].snapshot_id} if self.commits_made else {}

    def read_target(self, _table: str, _column: str, _grain: Grain, partitions: Sequence[str]) -> SimpleNamespace:
        return SimpleNamespace(expected={name: self.files.get(name, ()) for name in partitions})

    def commits(
        self,
        _table: str,
        _column: str,
        _grain: Grain,
        partitions: Sequence[str],
        *,
        since: str | None,
        only_deletes: bool = False,
    ) -> History:
        assert since is None  # the plan found a table without snapshots
        if only_deletes:
            return History((), self.complete)
        self.walks.append(tuple(partitions))
        return History(tuple(one for one in self.commits_made if set(one.touched) & set(partitions)), self.complete)


@dataclass
class Place:
    house: Office
    table: Table

    def entries(self) -> list[tuple[str, tuple[str, ...]]]:
        log = self.house.ledger.audit.readable_entries(self.house.run.run_id, actions=("conflict.seen",))
        return [(e.body["seen_by"], tuple(one["snapshot_id"] for one in e.body["commits"])) for e in log]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    house, table = office(tmp_path), Table()
    for port in ("pins", "targets", "history"):
        setattr(house.workspace.engines, port, table)
    yield Place(house, table)
    house.ledger.close()


def test_whoever_approves_is_told_of_a_live_write_and_it_is_on_the_record(place: Place):
    """The approval counts all the same: publish decides."""
    place.table.write("71", DAYS[1])
    view = place.house.approve("bo")
    assert view.state == "approved"
    assert [one.text("day") for one in view.live_writes] == [
        f"{DAYS[1]} was written after planning by daily-load (append, snapshot 71, 2026-02-02 02:40 UTC)"
    ]
    assert place.entries() == [("approve", ("71",))]


def test_status_records_each_commit_once_whoever_saw_it_first(place: Place):
    """Asked again it says the same and writes nothing; a later commit is a new entry."""
    place.table.write("71", DAYS[0])
    place.house.approve("bo")
    for _ in range(2):
        view = place.house.client.status(place.house.run.run_id)
    assert [(one.snapshot_id, one.seen_by) for one in view.live_writes] == [("71", "approve")]
    place.table.write("72", DAYS[1])
    view = place.house.client.status(place.house.run.run_id)
    assert [(one.snapshot_id, one.seen_by) for one in view.live_writes] == [("71", "approve"), ("72", "status")]
    assert place.entries() == [("approve", ("71",)), ("status", ("72",))]


def test_a_publication_of_another_run_is_named_by_that_run(place: Place):
    """A correction that overtook this one is no unknown job."""
    made = Commit("71", "overwrite", 1_770_000_000_000, "unknown", {DAYS[0]: Touch(added_rows=3)})
    place.table.commits_made.append(replace(made, summary={"errata.run": "bf-later"}))
    place.table.files[DAYS[0]] = (ExpectedFile("/lake/71.parquet", 3, "data"),)
    (write,) = place.house.client.status(place.house.run.run_id).live_writes
    assert write.application == "errata bf-later"


def test_status_names_a_command_that_is_not_refused_for_a_live_write(place: Place):
    """The rest can be published; where nothing is left, the partitions are planned again."""
    place.house.approve("bo")
    place.house.judged()
    run = place.house.run.run_id
    assert place.house.client.status(run).next == f"errata publish {run} --as bo"
    place.table.write("71", DAYS[0])
    assert place.house.client.status(run).next == f"errata publish {run} --as bo --partitions {DAYS[1]}"
    place.table.write("72", DAYS[1])
    again = f"errata plan {place.house.run.product} --as ana --partitions {DAYS[0]}..{DAYS[1]} --supersede {run}"
    assert place.house.client.status(run).next.startswith(again)


def test_a_main_that_did_not_move_costs_one_look_at_its_refs(place: Place):
    """A status that is watched walks the history once for each state of main."""
    place.table.write("71", DAYS[0])
    for _ in range(5):
        place.house.client.status(place.house.run.run_id)
    assert place.table.walks == [(DAYS[0],)]


def test_compaction_and_writes_elsewhere_are_no_live_writes(place: Place):
    """A rewrite whose rows balance, and a commit to a day outside the scope, are not told."""
    place.table.write("71", DAYS[0], "replace", Touch(added_rows=3, removed_rows=3))
    place.table.write("72", "2026-03-01")
    assert place.house.client.status(place.house.run.run_id).live_writes == ()
    assert place.entries() == []


def test_where_history_was_cut_it_is_said_that_only_the_content_can_tell(place: Place):
    """Expired commits name nobody; the difference of files is told, not called a write."""
    place.table.write("71", DAYS[0])
    place.table.complete = False
    (told,) = place.house.client.status(place.house.run.run_id).live_writes
    assert told.text("day") == f"{DAYS[0]} holds other files than planned (snapshot 71): publish compares the content"


def test_metadata_that_cannot_be_read_stops_neither_approval_nor_status(place: Place):
    """The look is a courtesy; that it failed is said."""
    place.table.broken = "metadata/snap-1.avro is missing"
    assert place.house.approve("bo").state == "approved"
    assert place.house.client.status(place.house.run.run_id).live_writes == ()
    assert all("were not looked for: metadata/snap-1.avro is missing" in line for line in place.house.said)
    assert len(place.house.said) == 2


def test_a_run_that_is_over_is_not_looked_at(place: Place):
    """What live does afterwards concerns nobody's publication."""
    place.table.write("71", DAYS[0])
    place.house.ledger.runs.move(place.house.run.run_id, RunState.CANCELLED, actor=ANA)
    assert place.house.client.status(place.house.run.run_id).live_writes == ()
    assert place.entries() == []
