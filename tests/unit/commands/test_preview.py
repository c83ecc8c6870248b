"""Dark publication: who may name a candidate, what the name stands for, and when it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errata.commands.publish.preview import publish_preview, update_previews
from errata.errors import ApprovalRefused, EngineError, PermissionRefused, RunExpired, StateRefused, UsageError
from errata.failpoints import arm
from errata.ledger import REBASE
from errata.model.audit import Actor
from errata.model.run import RunState
from errata.publishing.preview_state import (
    find_preview_owner,
    find_preview_refs,
    find_preview_views,
    read_newest_preview,
)
from errata.views import DarkView
from errata.workspace import RunContext
from support.office import ANA, OK, WARNED, Office, office

TABLE = "lake.fin.daily_revenue"
BO = Actor("bo", "u", "h")


@dataclass
class Tags:
    """Tags of tables, by table and name; ``gone`` are snapshots that expired."""

    held: dict[str, dict[str, str]] = field(default_factory=lambda: {TABLE: {"main": "800"}})
    gone: set[str] = field(default_factory=set)
    forbidden: bool = False

    def refs(self, table: str) -> dict[str, str]:
        return self.held[table]

    def snapshot_exists(self, _table: str, snapshot: str) -> bool:
        return snapshot not in self.gone

    def move(self, table: str, snapshot: str, tag: str, *, keep_ms: int, now_ms: int) -> Any:
        assert keep_ms == 30 * 86_400_000
        if self.forbidden or snapshot in self.gone:
            return SimpleNamespace(outcome="not_pinned", warning="this catalog takes no tags")
        self.held[table][tag] = snapshot
        return SimpleNamespace(outcome="moved", warning=None)

    def remove(self, table: str, tag: str) -> Any:
        self.held[table].pop(tag, None)


@dataclass
class Views:
    """Views of a catalog, which may take none."""

    made: dict[str, str] = field(default_factory=dict)
    broken: bool = False

    def show(self, view: str, query: str) -> None:
        if self.broken:
            raise RuntimeError("catalog lake does not support views\n  at Java")
        self.made[view] = query

    def drop_view(self, view: str) -> None:
        self.made.pop(view, None)


@dataclass
class Place:
    house: Office
    tags: Tags
    views: Views

    @property
    def run(self) -> str:
        return self.house.run.run_id

    def dark(self, person: str = "bo", **options: Any) -> DarkView:
        return self.house.client.dark(self.run, as_=person, **options)

    def judged_again(self, *, passed: bool, anew: bool = False) -> None:
        """A verdict as validate records it, and what follows it."""
        if anew:
            self.house.candidate()
        self.house.verdict(OK if passed else WARNED, passed=passed)
        newest, run = self.house.ledger.candidates.latest(self.run), self.house.ledger.runs.get(self.run)
        assert newest is not None
        manifest = self.house.ledger.runs.manifest(self.run)
        update_previews(RunContext(self.house.workspace, ANA, run, manifest), newest, passed=passed)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    house = office(tmp_path)
    sealed = replace(
        house.manifest,
        target=replace(house.manifest.target, base_snapshot_id="800"),
        lineage_columns=("produced_by_run_id",),
        classified=("account_id",),
    )
    house.ledger.runs.manifest = lambda *_: sealed  # type: ignore[method-assign]
    tags, views = Tags(), Views()
    house.workspace.engines.pins, house.workspace.engines.writer = tags, views  # type: ignore[misc,assignment]
    house.workspace.engines.suppressions = SimpleNamespace(watermark=lambda _: "")  # type: ignore[misc,assignment]
    house.approve("bo")
    house.judged()
    yield Place(house, tags, views)
    house.ledger.close()


def test_a_candidate_is_readable_by_name_and_main_stays(place: Place):
    """One name for it, one for what stood before; the same again is already so and writes nothing."""
    view = place.dark()
    name = f"errata_{place.run}_dark"
    assert place.tags.held[TABLE] == {"main": "800", name: "901", f"{name}_before": "800"}
    assert (view.name, view.snapshot_id, view.already, view.rejected) == (name, "901", False, False)
    assert view.reads["Spark"] == f"SELECT * FROM `lake`.`fin`.`daily_revenue` VERSION AS OF '{name}'"
    assert f"\"daily_revenue\" FOR VERSION AS OF '{name}'" in view.reads["Trino"]
    before = place.house.actions()
    assert place.dark().already
    assert place.house.actions() == before
    assert [action for action in before if action.startswith("dark.")] == ["dark.intended", "dark.published"]
    shown = read_newest_preview(place.house.workspace, place.house.run)
    assert shown is not None
    assert (shown["name"], shown["person"]) == (name, "bo")


def test_the_comparison_is_a_view_where_the_catalog_has_them_and_a_query_everywhere(place: Place):
    """A catalog without views costs the view and nothing else; classified columns are masked in both."""
    first = place.dark()
    assert first.view is None
    assert "VERSION AS OF" in (first.comparison or "")
    made = place.dark(compare=True)
    assert made.view == f"lake.fin.errata_compare_{place.run.replace('-', '_')}"
    assert place.views.made == {made.view: made.comparison}
    assert "WHEN `account_id` IS NOT NULL THEN '•••' END AS `account_id`" in (made.comparison or "")
    assert "produced_by_run_id" not in (made.comparison or "")
    place.views.broken = True
    other = place.dark(name="preview", compare=True)
    assert (other.view, other.comparison is not None) == (None, True)
    assert "does not support views" in other.warnings[0]


@pytest.mark.parametrize("name", ["main", "errata_guard", "1st", "a b", "a'; DROP", "", "x" * 64, "é", "ok_rejected"])
def test_a_name_is_a_word_and_none_of_ours(place: Place, name: str):
    """It goes into statements that people copy."""
    with pytest.raises(UsageError, match=r"the name .* was refused"):
        place.dark(name=name)


def test_a_name_that_someone_else_gave_is_left_alone(place: Place):
    """A tag or a branch of others is not moved, neither under the name nor under that of what stood before."""
    place.tags.held[TABLE]["release-7"] = "555"
    with pytest.raises(StateRefused, match="expected a free name, found release-7 on snapshot 555"):
        place.dark(name="release-7")
    place.tags.held[TABLE]["preview_before"] = "555"
    with pytest.raises(StateRefused, match="found preview_before on snapshot 555"):
        place.dark(name="preview")
    assert place.tags.held[TABLE]["release-7"] == "555"
    assert not [action for action in place.house.actions() if action.startswith("dark.")]


def test_who_may_not_publish_may_not_name_a_candidate_either(place: Place):
    """The requester is told to ask another, everyone else to ask a publisher."""
    with pytest.raises(PermissionRefused):
        place.dark("ana")
    people = place.house.workspace.project.people
    place.house.staff(ana=replace(people["ana"], roles=people["bo"].roles))
    with pytest.raises(ApprovalRefused, match="someone other than the requester") as refused:
        place.dark("ana")
    assert refused.value.hint == "ask bo or cy or dana"


def test_a_rejected_candidate_is_refused_unless_its_name_says_so(place: Place):
    """Nobody reads what did not pass by mistake."""
    place.judged_again(passed=False)
    with pytest.raises(StateRefused, match="expected a candidate that passed its gate") as refused:
        place.dark()
    assert "--dark --rejected" in (refused.value.hint or "")
    view = place.dark(rejected=True, name="preview")
    assert (view.name, view.rejected) == ("preview_rejected", True)
    assert place.tags.held[TABLE]["preview_rejected"] == "901"


def test_before_there_is_a_verdict_there_is_nothing_to_name(tmp_path: Path):
    """A run that was never judged, and one that is published whole, are refused."""
    house = office(tmp_path)
    house.approve("bo")
    with pytest.raises(StateRefused, match="expected a run whose candidate was judged"):
        house.client.dark(house.run.run_id, as_="bo")
    house.ledger.close()


def test_the_name_goes_with_the_candidate_when_that_is_made_anew(place: Place):
    """Readers of the name get the new rows; the view is the same query, because it reads the name."""
    made = place.dark(compare=True)
    place.judged_again(passed=True, anew=True)
    assert place.tags.held[TABLE][made.name] == "902"
    assert made.view in place.views.made
    assert place.dark(compare=True).already
    assert find_preview_refs(place.house.workspace, place.house.run, place.house.manifest) == [
        (TABLE, made.name), (TABLE, f"{made.name}_before"),
    ]  # fmt: skip


def test_where_live_won_the_old_side_is_what_the_candidate_replaces_now(place: Place):
    """A rebase pins another base; the name of what stood before goes there with the new candidate."""
    made = place.dark()
    place.house.ledger.facts.record(place.run, f"{REBASE}1", {"n": 1, "base_snapshot_id": "850"}, ANA)
    place.judged_again(passed=True, anew=True)
    assert place.tags.held[TABLE] == {"main": "800", made.name: "902", f"{made.name}_before": "850"}


@pytest.mark.parametrize("passed", [True, False])
def test_a_name_that_says_otherwise_than_the_gate_is_withdrawn(place: Place, passed: bool):
    """Judged again and rejected, a name that promised more goes; so does one that said rejected of what now passes."""
    if passed:
        place.judged_again(passed=False)
    made = place.dark(rejected=passed, compare=True)
    place.judged_again(passed=passed)
    assert place.tags.held[TABLE] == {"main": "800"}
    assert place.views.made == {}
    assert read_newest_preview(place.house.workspace, place.house.run) is None
    assert find_preview_views(place.house.workspace, place.house.run) == []
    assert any(made.name in line for line in place.house.said)


def test_cleanup_takes_names_and_views_but_not_what_another_run_took_over(place: Place):
    """By what the name stands for now: its snapshot is ours, or it is someone else's."""
    workspace, run = place.house.workspace, place.house.run
    place.dark(name="preview", compare=True)
    assert find_preview_refs(workspace, run, place.house.manifest) == [(TABLE, "preview"), (TABLE, "preview_before")]
    assert find_preview_views(workspace, run) == ["lake.fin.errata_compare_daily_revenue_preview"]
    place.tags.held[TABLE]["preview"] = "7777"
    assert find_preview_refs(workspace, run, place.house.manifest) == []
    assert find_preview_owner(workspace, run, "preview", "7777") is None


def test_a_name_may_be_taken_over_by_another_run_which_is_said_to_both(place: Place, tmp_path: Path):
    """Readers of one name get the newest candidate; the run that had it leaves it alone from then on."""
    place.dark(name="preview", compare=True)
    other = office(tmp_path, requester="cy")
    sealed = replace(other.manifest, target=replace(other.manifest.target, base_snapshot_id="800"))
    other.ledger.runs.manifest = lambda *_: sealed  # type: ignore[method-assign]
    other.use(replace(place.house.workspace.project))
    other.workspace = replace(other.workspace, engines=place.house.workspace.engines)
    for state in (RunState.APPROVED, RunState.RUNNING, RunState.STAGED):
        other.ledger.runs.move(other.run.run_id, state, actor=ANA)
    made = other.ledger.candidates.intend(other.run.run_id, "d" * 64, ANA)
    other.ledger.candidates.record(
        other.run.run_id, made.n, None, "1901", ANA, {"rows": dict.fromkeys(other.run.partitions, 3)}
    )
    other.verdict(OK)
    view = publish_preview(other.workspace, BO, other.run.run_id, "preview", compare=True, rejected=False)
    assert view.warnings == (f"preview stood for the candidate of {place.run} until now",)
    assert place.tags.held[TABLE]["preview"] == "1901"
    assert read_newest_preview(place.house.workspace, place.house.run) is None
    assert find_preview_refs(place.house.workspace, place.house.run, place.house.manifest) == []
    assert find_preview_views(place.house.workspace, place.house.run) == []
    assert find_preview_views(other.workspace, other.run) == ["lake.fin.errata_compare_daily_revenue_preview"]
    other.ledger.close()


def test_a_snapshot_that_is_gone_and_a_catalog_without_tags_are_told_apart(place: Place):
    """One is made again by validate; the other has no names to give."""
    place.tags.forbidden = True
    with pytest.raises(EngineError, match="takes no tags"):
        place.dark()
    place.tags.gone.add("901")
    with pytest.raises(RunExpired, match=r"snapshot 901 of lake\.fin\.daily_revenue is gone"):
        place.dark()


@pytest.mark.parametrize("point", ["dark.after_intent", "dark.after_tag", "dark.after_view"])
def test_an_error_at_any_boundary_leaves_a_state_from_which_the_command_goes_on(place: Place, point: str):
    """What was intended is found by the next command and by cleanup, whether it was made or not."""

    def fail() -> None:
        raise EngineError("a failpoint raised here")

    with arm(point, fail), pytest.raises(EngineError, match="raised here"):
        place.dark(compare=True)
    names = {ref for _, ref in find_preview_refs(place.house.workspace, place.house.run, place.house.manifest)}
    assert set(place.tags.held[TABLE]) - {"main"} <= names
    assert set(place.views.made) <= set(find_preview_views(place.house.workspace, place.house.run))
    view = place.dark(compare=True)
    assert (view.already, view.warnings, list(place.views.made)) == (False, (), [view.view])
    assert place.dark(compare=True).already


def test_erased_subjects_are_looked_for_before_anyone_can_read_the_candidate(place: Place):
    """The list moved on since the gate: judge again first."""
    place.house.workspace.engines.suppressions = SimpleNamespace(watermark=lambda _: "42")  # type: ignore[misc,assignment]
    with pytest.raises(StateRefused, match="the list of suppressed subjects has moved"):
        place.dark()
    assert place.tags.held[TABLE] == {"main": "800"}
