"""What commands that write to a table sweep from it, and what they leave alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from errata.errors import EngineError
from errata.ledger import current_owner, is_owner_dead
from errata.model.manifest import Chunk
from errata.model.refs import GUARD, base_tag, pre_tag, pub_tag, quarantine_table, run_branch, undo_branch
from errata.model.run import AttemptState, RunState
from errata.publishing.intent import Intent
from errata.publishing.leftovers import WHOLE_TABLE, find_removable_refs
from errata.publishing.sweep import find_leftovers, find_unknown_refs, sweep_refs
from support.office import ANA, DAYS, Office, office

TABLE = "lake.fin.daily_revenue"
FOREIGN = "errata_bf-20250101-other-00000000"


@dataclass
class Refs:
    """The refs of tables; counts commits."""

    held: dict[str, dict[str, str]]
    commits: list[tuple[str, ...]] = field(default_factory=list)
    broken: str = ""

    def refs(self, table: str) -> dict[str, str]:
        return dict(self.held.get(table, {}))

    def drop(self, table: str, refs: Sequence[str]) -> tuple[str, ...]:
        if self.broken:
            raise EngineError(self.broken)
        gone = tuple(ref for ref in refs if self.held[table].pop(ref, None))
        self.commits.append(gone)
        return gone


@dataclass
class Place:
    house: Office
    refs: Refs

    @property
    def run(self) -> str:
        return self.house.run.run_id

    def there(self, *refs: str) -> None:
        self.refs.held.setdefault(TABLE, {"main": "1", GUARD: "2", FOREIGN: "3"}).update(dict.fromkeys(refs, "9"))

    def left(self) -> set[str]:
        return set(self.refs.held[TABLE]) - {"main", GUARD, FOREIGN}

    def candidates(self) -> tuple[str, ...]:
        """The candidate branches of the run, as the ledger knows them."""
        return tuple(candidate.branch for candidate in self.house.ledger.candidates.list(self.run))

    def published(self) -> str:
        """A publication of everything, just now."""
        pub = self.intended()
        self.house.ledger.publications.settle(pub, "committed", actor=ANA, snapshot_id="7", data_files_written=0)
        return pub

    def intended(self) -> str:
        """An open intent to publish everything."""
        self.house.judged()
        made = self.house.ledger.publications.intend(
            self.run, "publish", DAYS, table=TABLE, person="bo", reason="",
            detail=Intent("publish", DAYS, "").to_dict(), lease_seconds=60, actor=ANA, consumers=(),
        )  # fmt: skip
        return made.pub_id

    def days_later(self, days: int) -> None:
        now = datetime.now(UTC) + timedelta(days=days)
        self.house.workspace = replace(self.house.workspace, now=lambda: now)

    def sweep(self) -> None:
        sweep_refs(self.house.workspace, ANA, TABLE)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    house = office(tmp_path, chunks=(Chunk("c1", DAYS, 1, 1),))
    refs = Refs({})
    house.workspace.engines.pins = refs  # type: ignore[misc,assignment]
    yield Place(house, refs)
    house.ledger.close()


def test_refs_of_an_ended_run_go_in_one_commit_and_on_the_record(place: Place):
    """What nobody needs any more goes with the next command that writes; a second sweep commits nothing."""
    place.there(run_branch(place.run), base_tag(place.run))
    place.house.ledger.runs.move(place.run, RunState.CANCELLED, actor=ANA)
    place.sweep()
    place.sweep()
    assert place.left() == set()
    assert place.refs.commits == [(base_tag(place.run), run_branch(place.run))]
    assert place.house.actions().count("refs.swept") == 1


def test_a_run_that_is_under_way_keeps_its_refs(place: Place):
    """Only the end of a run ends the need for its pins and its branch."""
    place.there(run_branch(place.run), base_tag(place.run))
    place.house.ledger.runs.move(place.run, RunState.APPROVED, actor=ANA)
    place.sweep()
    assert place.left() == {run_branch(place.run), base_tag(place.run)}
    assert place.refs.commits == []


def test_while_a_publication_can_be_undone_nothing_of_its_run_is_swept(place: Place):
    """The undo branch lives for the whole rollback window; after it the run's refs go together."""
    pub = place.published()
    own = {run_branch(place.run), *place.candidates(), undo_branch(pub), pre_tag(pub)}
    place.there(*own)
    place.days_later(29)
    place.sweep()
    assert place.left() == own
    place.days_later(31)
    place.sweep()
    assert place.left() == set()


def test_while_a_publication_can_be_undone_the_rows_in_quarantine_are_kept(place: Place):
    """The quarantine table says which rows the published numbers leave out; it goes when the rollback window ends."""
    place.published()
    set_aside = (quarantine_table(TABLE, place.run), WHOLE_TABLE)
    for days, is_dropped in ((29, False), (31, True)):
        place.days_later(days)
        drop, _ = find_removable_refs(place.house.workspace, place.house.ledger.runs.get(place.run))
        assert (set_aside in drop) == is_dropped


def test_the_fence_of_an_abandoned_publication_is_never_swept(place: Place):
    """A commit that arrives late must still meet the fence, so only the tag's own retention ends it."""
    pub = place.intended()
    place.house.ledger.publications.settle(pub, "abandoned", actor=ANA)
    place.house.ledger.runs.move(place.run, RunState.CANCELLED, actor=ANA)
    place.there(run_branch(place.run), undo_branch(pub), pre_tag(pub), pub_tag(pub))
    place.days_later(365)
    place.sweep()
    assert place.left() == {pub_tag(pub)}


def test_refs_of_another_ledger_are_reported_and_never_removed(place: Place):
    """A run that is not in this ledger may be another ledger's, which still needs its refs."""
    place.there(run_branch(place.run))
    place.house.ledger.runs.move(place.run, RunState.CANCELLED, actor=ANA)
    assert find_unknown_refs(place.house.workspace, place.refs.held[TABLE]) == (FOREIGN,)
    assert find_leftovers(place.house.workspace, TABLE) == {TABLE: {run_branch(place.run): place.run}}
    place.sweep()
    assert FOREIGN in place.refs.held[TABLE]


def test_a_sweep_that_fails_is_reported_and_does_not_fail_the_command(place: Place):
    """Housekeeping never stands in the way of the command that does it."""
    place.there(run_branch(place.run))
    place.house.ledger.runs.move(place.run, RunState.CANCELLED, actor=ANA)
    place.refs.broken = "the catalog does not answer"
    place.sweep()
    assert place.house.said == [
        f"refs of finished runs on {TABLE} were not removed: the catalog does not answer; next: errata cleanup"
    ]
    assert "refs.swept" not in place.house.actions()


def _claimed(place: Place) -> None:
    """A chunk in the hands of a worker whose Python process is dead."""
    dead = replace(current_owner(), pid=2**22 + 1, started=current_owner().started.rpartition("/")[0] + "/1")
    assert is_owner_dead(dead)
    ledger = place.house.ledger
    for state in (RunState.APPROVED, RunState.RUNNING):
        ledger.runs.move(place.run, state, actor=ANA)
    assert ledger.chunks.claim(place.run, dead, lease_seconds=60, actor=ANA) is not None
    ledger.runs.move(place.run, RunState.CANCELLED, actor=ANA)


@pytest.mark.parametrize("seconds,waits", [(0, True), (61, True), (60 + 599, True), (60 + 601, False)])
def test_a_dead_worker_process_does_not_end_the_wait_for_its_branch(place: Place, seconds: int, waits: bool):
    """Its JVM may still append, and an append to a dropped branch makes it anew from main: lease and grace count."""
    place.there(run_branch(place.run))
    _claimed(place)
    with place.house.later(seconds=seconds):
        drop, kept = find_removable_refs(place.house.workspace, place.house.ledger.runs.get(place.run))
        assert [item["why"] for item in kept] == (["a worker may still write to it"] if waits else [])
        assert ((TABLE, run_branch(place.run)) in drop) == (not waits)
        place.sweep()
    assert place.left() == ({run_branch(place.run)} if waits else set())


def test_a_branch_goes_only_after_the_fence_of_its_last_attempt_is_retired(place: Place):
    """A worker that wakes up after the sweep holds nothing any more: its heartbeat says so before it appends."""
    place.there(run_branch(place.run))
    _claimed(place)
    ledger = place.house.ledger
    (attempt,) = ledger.progress.attempts(place.run)
    with place.house.later(minutes=20):
        place.sweep()
        assert place.left() == set()
        assert [one.state for one in ledger.progress.attempts(place.run)] == [AttemptState.LOST]
        assert not ledger.chunks.heartbeat(attempt, 60)


def test_a_table_without_refs_of_ended_runs_costs_one_look(tmp_path: Path):
    """Neither manifests nor publications are read for runs that have nothing left on the table."""
    asked: list[str] = []
    ended = SimpleNamespace(run_id="bf-1", table=TABLE)
    ledger = SimpleNamespace(runs=SimpleNamespace(list=lambda states: asked.append("runs") or (ended,)))
    pins = SimpleNamespace(refs=lambda table: asked.append(table) or {"main": "1", GUARD: "2", FOREIGN: "3"})
    workspace = SimpleNamespace(ledger=ledger, engines=SimpleNamespace(pins=pins))
    assert find_leftovers(workspace, TABLE) == {}  # type: ignore[arg-type]
    assert asked == [TABLE, "runs"]
