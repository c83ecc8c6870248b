"""What a task asks of Errata, and what it does with the answer; without Airflow's database and without Spark."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.errata.assets import list_changes, split_ranges
from airflow.providers.errata.command import build_live_write, build_plan, build_publish, build_ready
from airflow.providers.errata.installation import Command, Installation, choose_environment
from airflow.providers.errata.live_write import NoLease, write_lease
from airflow.providers.errata.outcome import Course, Outcome, choose_course, list_findings, read_outcome
from airflow.providers.errata.process_end import stop_process
from airflow.providers.errata.provider_info import get_provider_info
from airflow.providers.errata.run_state import (
    Progress,
    describe_decision,
    find_planned,
    judge_approval,
    judge_computed,
    judge_release,
    mark_reason,
)
from airflow.providers.errata.triggers.lease import ErrataLeaseTrigger
from airflow.providers.errata.triggers.run import ErrataRunTrigger, read_event
from airflow.triggers.base import BaseTrigger


def test_a_value_is_never_read_as_an_option():
    """A reason that looks like an option is joined to its option, and a name that does is refused."""
    assert "--reason=--override" in build_plan("fin.sales", "--override", start="2026-01-01", end="2026-01-02")
    with pytest.raises(ValueError, match="--early"):
        build_publish("--early")
    with pytest.raises(ValueError, match="--wait"):
        build_ready("fin.sales", ["--wait=1h"])


def test_the_program_of_a_live_write_follows_two_dashes():
    """What a job runs is separated from Errata's own options."""
    assert build_live_write("t", "2026-01-01", "job", ["cat", "-u"])[-3:] == ["--", "cat", "-u"]


def test_a_task_acts_as_the_account_of_its_connection_unless_a_person_is_named():
    """Plans and rollbacks name the person who asks for them."""
    installation = Installation("/srv/shop", account="airflow")
    assert installation.build_call(["status"])[-3:] == ["--as", "airflow", "status"]
    assert installation.build_call(["status"], "ana")[-3:] == ["--as", "ana", "status"]


@pytest.mark.parametrize(
    "exit_code, error, course",
    [
        (0, None, Course.DONE),
        (1, {"code": "engine", "retryable": True}, Course.RETRY),
        (1, {"code": "internal", "retryable": False}, Course.RETRY),
        (1, {"code": "transform-failed", "retryable": False}, Course.FAIL),
        (1, {"code": "run-failed", "retryable": False}, Course.FAIL),
        (2, {"code": "usage", "retryable": False}, Course.FAIL),
        (3, {"code": "approval", "retryable": False}, Course.FAIL),
        (3, {"code": "plan-refused", "retryable": False, "nothing_stale": True}, Course.SKIP),
        (3, {"code": "plan-refused", "retryable": False, "nothing_stale": False}, Course.FAIL),
        (3, {"code": "scope-locked", "retryable": False}, Course.RETRY),
        (3, {"code": "publish-held", "retryable": False}, Course.RETRY),
        (4, {"code": "validation-rejected", "retryable": False}, Course.FAIL),
        (4, {"code": "needs-acceptance", "retryable": False}, Course.FAIL),
        (5, {"code": "publish-conflict", "retryable": False}, Course.FAIL),
        (5, {"code": "copy-locked", "retryable": True}, Course.FAIL),
        (7, None, Course.RETRY),
        (130, {"code": "interrupted", "retryable": False}, Course.RETRY),
        (-9, None, Course.RETRY),
    ],
)
def test_an_exit_code_decides_whether_a_task_is_retried(exit_code: int, error: dict[str, Any] | None, course: Course):
    """Refusals, rejections and conflicts need a person; killed and interrupted commands continue."""
    assert choose_course(Outcome(exit_code, {"error": error} if error else {})) is course


def test_an_answer_that_is_no_json_object_is_no_answer():
    """A command that was killed may have printed nothing, or half."""
    assert read_outcome(-9, '{"run_id": ').answer == {}
    assert read_outcome(0, "[1]").answer == {}


def test_the_findings_of_a_rejected_candidate_are_listed():
    """The log of a failed validation names what the gate found, and not what was fine."""
    checks = [{"level": "ok", "name": "a"}, {"level": "block", "name": "b", "partition": "p", "message": "too much"}]
    assert list_findings({"error": {"validation": {"checks": checks}}}) == ["block: b p too much"]
    assert list_findings({"checks": checks}) == ["block: b p too much"]


@pytest.mark.parametrize(
    "judge, state, progress",
    [
        (judge_approval, "planned", Progress.WAITING),
        (judge_approval, "approved", Progress.REACHED),
        (judge_approval, "published", Progress.REACHED),
        (judge_approval, "declined", Progress.ENDED),
        (judge_computed, "running", Progress.WAITING),
        (judge_computed, "paused", Progress.WAITING),
        (judge_computed, "staged", Progress.REACHED),
        (judge_computed, "validated", Progress.REACHED),
        (judge_computed, "failed", Progress.ENDED),
        (judge_computed, "rejected", Progress.ENDED),
        (judge_release, "validated", Progress.WAITING),
        (judge_release, "needs_acceptance", Progress.WAITING),
        (judge_release, "published", Progress.REACHED),
        (judge_release, "rejected", Progress.ENDED),
        (judge_release, "attested", Progress.ENDED),
    ],
)
def test_the_state_of_a_run_decides_whether_a_task_waits(
    judge: Callable[..., Progress], state: str, progress: Progress
):
    """A run that people gave up ends the wait; one that is decided or further ends it well."""
    assert judge({"state": state}) is progress


def test_only_a_release_that_counts_ends_the_wait():
    """A release that became void is none."""
    assert judge_release({"state": "validated", "release": {"valid": True}}) is Progress.REACHED
    assert judge_release({"state": "validated", "release": {"valid": False}}) is Progress.WAITING


def test_a_dag_run_finds_its_own_plan_only():
    """Another DAG run, another product and a plan that was given up are not continued."""
    mine = mark_reason("why", "dag", "run-1", "plan")
    runs = [
        {"run_id": "a", "product": "p", "reason": mine, "state": "cancelled", "planned_at": "1"},
        {"run_id": "b", "product": "p", "reason": mine, "state": "running", "planned_at": "2"},
        {"run_id": "c", "product": "p", "reason": mark_reason("why", "dag", "run-2", "plan"), "planned_at": "3"},
        {"run_id": "d", "product": "q", "reason": mine, "state": "running", "planned_at": "4"},
    ]
    assert find_planned(runs, "p", mine)["run_id"] == "b"
    assert find_planned(runs[:1], "p", mine) is None


def test_an_open_decision_is_shown_with_the_command_that_makes_it():
    """Airflow shows what to type in Errata, and that an answer in Airflow decides nothing."""
    status = {"run_id": "r", "state": "planned", "next": "errata approve r --as bo", "quorum": {"may": ["bo"]}}
    subject, body = describe_decision("approval", status, "/srv/shop")
    assert "approval of r" in subject
    assert "errata approve r --as bo" in body
    assert "An answer here changes nothing" in body


def test_ranges_have_no_gaps():
    """Each range of partitions without a gap becomes one event, whatever the grain."""
    assert split_ranges("day", ["2026-03-01", "2026-02-28", "2026-03-03"]) == [
        ["2026-02-28", "2026-03-01"], ["2026-03-03"],
    ]  # fmt: skip
    assert split_ranges("hour", ["2026-01-01T23", "2026-01-02T00", "2026-01-02T02"]) == [
        ["2026-01-01T23", "2026-01-02T00"], ["2026-01-02T02"],
    ]  # fmt: skip
    assert split_ranges("month", ["2025-12", "2026-01", "2026-03"]) == [["2025-12", "2026-01"], ["2026-03"]]
    assert split_ranges("month", ["2026-01", "2026-02", "2026-03"]) == [["2026-01", "2026-02", "2026-03"]]
    assert split_ranges("value", ["eu", "us"]) == [["eu"], ["us"]]
    assert split_ranges("day", ["2026-01-01", "null"]) == [["2026-01-01"], ["null"]]


def test_only_what_was_committed_becomes_an_event():
    """Publications that failed, and rollbacks, are no events of a publication."""
    publications = [
        {"kind": "publish", "state": "failed", "partitions": ["2026-01-01"]},
        {"kind": "publish", "state": "committed", "partitions": ["2026-01-01", "2026-01-03"], "snapshot_id": "7"},
        {"kind": "rollback", "state": "committed", "partitions": ["2026-01-03"], "snapshot_id": "8"},
    ]
    found = list_changes({"run_id": "r", "grain": "day", "publications": publications}, "publish")
    assert [(one["first"], one["last"], one["snapshot_id"]) for one in found] == [
        ("2026-01-01", "2026-01-01", "7"), ("2026-01-03", "2026-01-03", "7"),
    ]  # fmt: skip


def test_errata_does_not_get_the_secrets_of_airflow():
    """The process of Errata has the worker's environment without Airflow's settings and Python's paths."""
    given = {"AIRFLOW__CORE__FERNET_KEY": "k", "AIRFLOW_CONN_X": "u", "PYTHONPATH": "p", "LAKE_PASSWORD": "l"}
    assert choose_environment(given) == {"LAKE_PASSWORD": "l"}


def test_a_command_returns_its_answer_and_logs_what_it_says(tmp_path: Path):
    """Stdout is the answer, stderr the log."""
    lines: list[str] = []
    body = "import sys\nprint('one chunk', file=sys.stderr)\nprint('{\"a\": 1}')\nsys.exit(4)"
    outcome = Command(_write_program(tmp_path, body), lines.append).run(["validate", "r"])
    assert outcome == Outcome(4, {"a": 1})
    assert lines == ["one chunk"]


def _write_program(place: Path, body: str) -> Installation:
    """An installation whose program is this Python code."""
    program = place / "errata"
    program.write_text(f"#!{sys.executable}\n{body}\n")
    program.chmod(0o755)
    return Installation(str(place), str(program))


def _fail(code: int, error: dict[str, Any]) -> str:
    return f"import sys\nprint({json.dumps({'error': error})!r})\nsys.exit({code})"


async def _take_event(trigger: BaseTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError("the trigger ended without an event")


@pytest.mark.parametrize("aim", ["approval", "computed", "release"])
def test_a_status_that_is_refused_ends_the_wait_as_a_failure(aim: str, tmp_path: Path):
    """A run that the ledger does not know is not taken for one that has been approved or computed."""
    refused = _write_program(tmp_path, _fail(2, {"code": "not-found", "message": "no run bf-1", "retryable": False}))
    event = asyncio.run(_take_event(ErrataRunTrigger(refused.to_data(), "bf-1", aim, 0.1)))
    with pytest.raises(AirflowFailException, match="no run bf-1"):
        read_event(event)


def test_a_lease_is_waited_for_no_longer_than_the_limit_though_errata_hangs(tmp_path: Path):
    """The trigger kills a look that takes too long."""
    hanging = _write_program(tmp_path, "import time\ntime.sleep(60)")
    begun = time.monotonic()
    until = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    assert asyncio.run(_take_event(ErrataLeaseTrigger(hanging.to_data(), "t", None, until, 0.1))) == {"until": until}
    assert 1 <= time.monotonic() - begun < 20


def test_a_ledger_that_does_not_answer_is_asked_for_a_lease_again(tmp_path: Path):
    """Until the limit, as with a correction that has frozen the partitions; another refusal ends the wait at once."""
    until = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    down = _write_program(tmp_path, _fail(1, {"code": "engine", "message": "ledger", "retryable": True}))
    begun = time.monotonic()
    asyncio.run(_take_event(ErrataLeaseTrigger(down.to_data(), "t", None, until, 0.1)))
    assert time.monotonic() - begun >= 1
    far = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    unknown = _write_program(tmp_path, _fail(2, {"code": "not-found", "message": "no table t", "retryable": False}))
    asyncio.run(_take_event(ErrataLeaseTrigger(unknown.to_data(), "t", None, far, 0.1)))


def test_a_lease_that_nobody_gives_is_not_waited_for_for_ever(tmp_path: Path):
    """A hanging program is killed, with what it has started."""
    hanging = _write_program(
        tmp_path, "import subprocess\nsubprocess.run(['sh', '-c', 'echo $$ > child; exec sleep 60'], cwd=__file__[:-7])"
    )
    begun = time.monotonic()
    with pytest.raises(NoLease, match="has not answered"), write_lease(hanging, "t", None, "job", at_most=3):
        raise AssertionError("there is no lease")
    assert time.monotonic() - begun < 20
    child = (tmp_path / "child").read_text().strip()
    assert not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes()


@pytest.mark.parametrize(
    "code, error, raised",
    [
        (3, {"code": "frozen", "message": "frozen by bf-1", "retryable": False}, NoLease),
        (1, {"code": "engine", "message": "the ledger is down", "retryable": True}, NoLease),
        (2, {"code": "not-found", "message": "no table t", "retryable": False}, AirflowFailException),
    ],
)
def test_only_what_ends_by_itself_is_waited_for(
    code: int, error: dict[str, Any], raised: type[Exception], tmp_path: Path
):
    """A frozen partition and a ledger that is down; a table that Errata does not know fails the task."""
    with pytest.raises(raised, match=error["message"]), write_lease(
        _write_program(tmp_path, _fail(code, error)), "t", None, "job"
    ):  # fmt: skip
        raise AssertionError("there is no lease")


def _start(body: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", body], start_new_session=True, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def test_a_killed_task_lets_its_command_end_by_itself():
    """The first signal is a request, and the exit code stays for the one who waits."""
    body = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(130))\nprint('up', flush=True)\n"
        "time.sleep(60)"
    )
    child = _start(body)
    stop_process(child.pid, patience=10)
    assert child.wait() == 130
    child.stdout.close()


def test_a_command_that_does_not_end_is_killed():
    """A process that ignores both requests does not outlive its task."""
    body = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    child = _start(body)
    begun = time.monotonic()
    stop_process(child.pid, patience=0.3)
    assert child.wait() == -signal.SIGKILL
    assert time.monotonic() - begun < 30
    child.stdout.close()


def test_the_provider_is_described_to_airflow():
    """What Airflow lists about the provider can be imported."""
    info = get_provider_info()
    assert info["package-name"] == "apache-airflow-providers-errata"
    assert json.loads(json.dumps(info)) == info
