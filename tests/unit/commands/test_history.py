"""What was true when, which runs there are, and who wrote to a partition: from the ledger, and from commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from errata.cli.render.history import render_commits
from errata.errors import NotFound, UsageError
from errata.model.table import Commit, History, Touch
from support.office import DAYS, Office, office
from unit.ledger.steps import publish, roll_back

TABLE, PRODUCT = "lake.fin.daily_revenue", "fin.daily_revenue"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Office]:
    made = office(tmp_path)
    yield made
    made.ledger.close()


def at(text: str, **ahead: float) -> str:
    return (datetime.fromisoformat(text) + timedelta(**ahead)).isoformat()


def test_what_was_accepted_at_a_time_is_told_by_deed(workspace: Office):
    """Nothing before the first publication; then one span; after a rollback of one day, two."""
    run = workspace.run.run_id
    workspace.judged()
    first = publish(workspace.ledger, run, DAYS)
    back = roll_back(workspace.ledger, run, DAYS[:1])
    assert first.settled_at is not None
    assert back.settled_at is not None
    assert workspace.client.runs(accepted_at=at(first.settled_at, seconds=-1)).accepted == ()
    (whole,) = workspace.client.runs(TABLE, accepted_at=first.settled_at).accepted
    assert (whole.partitions, whole.run_id, whole.action, whole.person) == (DAYS, run, "published", "bo")
    now = workspace.client.runs(PRODUCT, accepted_at=at(back.settled_at, days=1)).accepted
    assert [(span.partitions, span.run_id, span.action) for span in now] == [
        (DAYS[:1], None, "rolled_back"),
        (DAYS[1:], run, "published"),
    ]
    assert now[1].publication_id == first.pub_id


def test_runs_are_found_by_state_product_person_and_time(workspace: Office):
    """Each filter alone finds the run or leaves it out; what nobody knows is an error."""
    run, planned = workspace.run.run_id, workspace.run.planned_at
    fits = [{}, {"states": ["planned"]}, {"person": "Ana"}, {"since": planned}, {"what": TABLE}, {"what": PRODUCT}]
    for options in fits:
        assert [line.run_id for line in workspace.client.runs(**options).runs] == [run], options  # type: ignore[arg-type]
    for options in ({"states": ["published"]}, {"person": "bo"}, {"since": at(planned, seconds=1)}):
        assert workspace.client.runs(**options).runs == (), options  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="not a product or table"):
        workspace.client.runs("fin.daily")
    with pytest.raises(UsageError, match="did you mean published"):
        workspace.client.runs(states=["publishd"])


@pytest.mark.parametrize("options", [{"accepted_at": "2026-02-20"}, {"since": "yesterday"}])
def test_a_time_has_a_zone(workspace: Office, options: dict[str, str]):
    """A day alone would be its beginning to one reader and its end to the next."""
    with pytest.raises(UsageError, match="with its zone"):
        workspace.client.runs(**options)  # type: ignore[arg-type]


def test_what_was_true_takes_no_other_filter(workspace: Office):
    """A state of now says nothing about then."""
    with pytest.raises(UsageError, match="--accepted-at"):
        workspace.client.runs(accepted_at="2026-02-20T18:30Z", states=["published"])


def commit(snapshot: str, operation: str, parent: str | None, **summary: str) -> Commit:
    return Commit(
        snapshot, operation, 1_767_000_000_000, "app-7", {DAYS[0]: Touch(3, 2)}, summary=summary, parent_id=parent
    )


@pytest.mark.parametrize(
    "first,restored",
    [
        (commit("5", "delete", "4"), "4"),
        (commit("5", "append", "4"), "5"),
        (replace(commit("5", "delete", "4"), application="app-8"), "5"),
        (commit("5", "delete", "4", **{"errata.run": "bf-1"}), "5"),
    ],
)
def test_an_overwrite_by_two_commits_is_taken_out_whole(workspace: Office, first: Commit, restored: str):
    """Between a job's delete and its append the partition is empty: that is not what was there before the job."""
    commits = (commit("6", "append", "5"), first, commit("4", "append", "3"))
    workspace.workspace.engines.history = SimpleNamespace(  # type: ignore[misc,assignment]
        commits=lambda *_: History(commits, complete=True)
    )
    assert f"--restore {restored} " in workspace.client.history(PRODUCT, DAYS[0]).next


@pytest.mark.parametrize(
    "newest,next_",
    [
        (commit("5", "overwrite", "4"), "--restore 4 "),
        (commit("5", "overwrite", None), ""),
        (commit("5", "overwrite", "4", **{"errata.run": "bf-1", "errata.publication": "bf-1-p1"}), ""),
    ],
)
def test_the_newest_write_of_another_job_is_what_a_restore_would_take_out(
    workspace: Office, newest: Commit, next_: str
):
    """Compaction in between changes nothing; what we published ourselves is rolled back instead."""
    commits = (commit("6", "replace", "5"), newest)
    asked: list[object] = []

    def read(*arguments: object) -> History:
        asked.extend(arguments)
        return History(commits, complete=True)

    workspace.workspace.engines.history = SimpleNamespace(commits=read)  # type: ignore[misc,assignment]
    view = workspace.client.history(PRODUCT, DAYS[0], most=5)
    assert (asked[0], asked[-2:]) == (TABLE, [(DAYS[0],), 5])
    assert view.commits[0].writer == "compaction"
    assert (view.commits[1].added_rows, view.commits[1].removed_rows) == (3, 2)
    assert next_ in view.next
    assert bool(view.next) == bool(next_)
    with pytest.raises(NotFound, match="not a governed table"):
        workspace.client.history("lake.other", DAYS[0])


def test_a_rollback_is_told_by_what_its_commit_says(workspace: Office):
    """By its kind, whatever its id looks like."""
    ours = [
        commit(name, "overwrite", "4", **{"errata.run": "bf-1", "errata.publication": "bf-1-p1", "errata.kind": kind})
        for name, kind in (("6", "rollback"), ("5", "publish"))
    ]
    found = History(tuple(ours), complete=True)
    workspace.workspace.engines.history = SimpleNamespace(commits=lambda *_: found)  # type: ignore[misc,assignment]
    view = workspace.client.history(PRODUCT, DAYS[0])
    assert [one.kind for one in view.commits] == ["rollback", "publish"]
    told = "\n".join(render_commits(view, 80))
    assert told.count("errata rollback of bf-1") == 1
