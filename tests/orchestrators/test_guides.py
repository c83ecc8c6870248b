"""The job and the flow of the guides on Dagster and Prefect, run by these, with a real project and real Spark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

import errata
from support.orchestrated import PYTHON, Orchestrated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STEPS = {"plan", "wait_for_approval", "compute", "validate", "publish"}
DAYS = list(pairwise(["2026-01-05", "2026-01-07", "2026-01-09", "2026-01-11", "2026-01-13"]))
"""Two days for each test, the end excluded."""


@pytest.fixture(scope="module", params=["dagster", "prefect"])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrated]:
    """The project of a guide; each test corrects other days of it."""
    if not PYTHON.exists():
        pytest.skip("Dagster and Prefect are not installed (make setup-orchestrators)")
    made = Orchestrated.make(request.param, tmp_path_factory.mktemp(request.param) / "shop")
    yield made
    assert not made.guard.exists(), made.guard.read_text("utf-8")


def read_published(project: Orchestrated, run_id: str) -> int:
    """The number of publications of a run."""
    with errata.open(str(project.root)) as client:
        return len(client.status(run_id).publications)


def test_a_correction_waits_for_people_and_every_start_goes_on_with_it(project: Orchestrated) -> None:
    """Killed while it waits, refused without a release, published after one, started once more: one run, one commit."""
    first = project.start(DAYS[0], "SHOP-1 refunds")
    run = project.wait_for("SHOP-1 refunds", "planned")
    project.kill(first)
    second = project.start(DAYS[0], "SHOP-1 refunds")
    project.decide(run.run_id, "approve")
    told = project.finish(second)
    assert (told["success"], set(told["steps"])) == (False, STEPS - {"publish"})
    assert "error[approval]: " in told["failed"]["publish"]
    assert f"errata release {run.run_id}" in told["failed"]["publish"]
    project.decide(run.run_id, "release")
    for _ in range(2):
        told = project.finish(project.start(DAYS[0], "SHOP-1 refunds"))
        assert (told["success"], set(told["steps"])) == (True, STEPS)
        assert [one.state for one in project.list_runs("SHOP-1 refunds")] == ["published"]
        assert read_published(project, run.run_id) == 1
    if project.name == "dagster":
        (shown,) = told["shown"]
        assert (shown["asset"], shown["run"]) == ("shop/daily_sales", run.run_id)
        assert shown["partitions"] == ["2026-01-05", "2026-01-06"]


def test_a_job_killed_while_it_computes_is_finished_by_the_next(project: Orchestrated) -> None:
    """With ``manual: false`` an approval is enough, and the second start publishes the run that the first began."""
    project.change_product("rollback_window: 30d}", "rollback_window: 30d, manual: false}")
    first = project.start(DAYS[1], "SHOP-2 refunds")
    run = project.wait_for("SHOP-2 refunds", "planned")
    project.decide(run.run_id, "approve")
    project.wait_for("SHOP-2 refunds", "running", "staged")
    project.kill(first)
    told = project.finish(project.start(DAYS[1], "SHOP-2 refunds"))
    assert (told["success"], told["failed"]) == (True, {})
    assert [(one.run_id, one.state) for one in project.list_runs("SHOP-2 refunds")] == [(run.run_id, "published")]
    assert read_published(project, run.run_id) == 1


def test_a_rejected_candidate_fails_the_step_with_the_verdict(project: Orchestrated) -> None:
    """It names the check and the way on; a second start says the same of the same run, and nothing is published."""
    project.change_product("checks:\n", "checks:\n  - {metric: rowCount, name: many_rows, mustBeGreaterThan: 5000}\n")
    first = project.start(DAYS[2], "SHOP-3 refunds")
    run = project.wait_for("SHOP-3 refunds", "planned")
    project.decide(run.run_id, "approve")
    told = project.finish(first)
    assert (told["success"], list(told["failed"])) == (False, ["validate"])
    verdict = told["failed"]["validate"]
    for words in ("error[validation-rejected]: ", "many_rows blocks in 2", "main is unchanged", "hint: "):
        assert words in verdict
    again = project.finish(project.start(DAYS[2], "SHOP-3 refunds"))
    assert again["failed"] == {"validate": verdict}
    assert [(one.run_id, one.state) for one in project.list_runs("SHOP-3 refunds")] == [(run.run_id, "rejected")]
    assert read_published(project, run.run_id) == 0


def test_a_declined_plan_fails_the_job_and_is_not_planned_again(project: Orchestrated) -> None:
    """A decision is final: also the next start says that the run was declined."""
    first = project.start(DAYS[3], "SHOP-4 refunds")
    run = project.wait_for("SHOP-4 refunds", "planned")
    project.decide(run.run_id, "decline")
    told = project.finish(first)
    assert (told["success"], list(told["failed"])) == (False, ["compute"])
    assert "error[state]: " in told["failed"]["compute"]
    assert "declined" in told["failed"]["compute"]
    again = project.finish(project.start(DAYS[3], "SHOP-4 refunds"))
    assert again["failed"] == told["failed"]
    assert [(one.run_id, one.state) for one in project.list_runs("SHOP-4 refunds")] == [(run.run_id, "declined")]
