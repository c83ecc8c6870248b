"""Runs that hold live jobs off, and live jobs that ask: leases through the client, without Spark or a table."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import errata.live
from errata.errors import Frozen, NotFound, PublishConflict, ScopeLocked, UsageError
from errata.live_writers.freeze import freeze_partitions
from errata.model.audit import Actor
from errata.model.product import Freeze, Publish
from errata.model.run import RunState
from errata.workspace import RunContext
from support.clock import stopped_clock
from support.office import DAYS, Office, office
from support.statements import watched_statements
from unit.ledger.steps import intend

TABLE = "lake.fin.daily_revenue"
FREEZES = Publish(on_live_write="freeze", freeze=Freeze(idle=600, at_most=3600))
ANA = Actor("ana", "u", "h")
Make = Callable[..., Office]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Office] = []

    def _make(publish: Publish = FREEZES, **options: Any) -> Office:
        workspace = office(tmp_path, publish=publish, **options)
        workspace.approve("bo")
        made.append(workspace)
        return workspace

    yield _make
    for one in made:
        one.ledger.close()


def frozen(workspace: Office) -> Any:
    return freeze_partitions(
        RunContext(workspace.workspace, ANA, workspace.ledger.runs.get(workspace.run.run_id), workspace.manifest)
    )


def test_a_live_job_is_told_which_run_freezes_what_until_when_and_what_to_do(make: Make):
    """One error with run, reason, people, time and a way on; and one entry of the audit for each job turned away."""
    workspace = make()
    with frozen(workspace):
        found = errata.live.frozen(workspace.client, TABLE, [DAYS[0]])
        assert [(one.run_id, one.partitions, one.started_by) for one in found] == [
            (workspace.run.run_id, DAYS[:1], "ana")
        ]  # fmt: skip
        with (
            pytest.raises(Frozen) as refused,
            errata.live.writing(workspace.client, TABLE, [date(2026, 1, 1)], name="daily-0042"),
        ):
            pytest.fail("the body ran")
        assert errata.live.frozen(workspace.client, TABLE, ["2026-03-01"]) == ()
    error = refused.value
    assert error.exit_code == 3
    for word in (TABLE, DAYS[0], workspace.run.run_id, workspace.run.reason, "asked by ana", "at most until"):
        assert word in error.message
    assert f"errata status {workspace.run.run_id}" in (error.hint or "")
    assert error.fields["runs"] == [workspace.run.run_id]
    (told,) = [one for one in workspace.ledger.audit.entries() if one.action == "live.turned_away"]
    assert (told.run_id, told.body["job"]) == (workspace.run.run_id, "daily-0042")


def test_the_freeze_outlives_the_command_and_ends_with_the_run(make: Make):
    """Between validate and publish a person may take a while; a cancelled run holds nobody."""
    workspace = make()
    with frozen(workspace) as just_now:
        assert just_now
    assert errata.live.frozen(workspace.client, TABLE) != ()
    with frozen(workspace) as just_now:
        assert not just_now, "it goes on"
    workspace.ledger.runs.move(workspace.run.run_id, RunState.CANCELLED, actor=ANA)
    with errata.live.writing(workspace.client, TABLE, DAYS) as lease:
        assert lease.is_held


def test_a_partition_that_was_written_after_all_is_held_no_longer(make: Make):
    """The run publishes it no more: a conflict there gives it free, and the others stay frozen."""
    workspace = make()
    with pytest.raises(PublishConflict), frozen(workspace):
        raise PublishConflict("written by someone else", partitions=[DAYS[0]])
    assert errata.live.frozen(workspace.client, TABLE, [DAYS[0]]) == ()
    assert errata.live.frozen(workspace.client, TABLE, [DAYS[1]]) != ()
    assert workspace.ledger.audit.entries()[-1].body["because"] == "written by someone else"


def test_the_way_out_of_a_freeze_is_one_that_is_open(make: Make):
    """Cancel frees the partitions, also of a run that is out in part; not while it is being published."""
    workspace = make()
    workspace.judged()
    with frozen(workspace):
        pass
    with pytest.raises(Frozen) as refused:
        workspace.client.frozen(TABLE, DAYS, wait="0s")
    assert f'errata cancel {workspace.run.run_id} --reason "…" frees them' in (refused.value.hint or "")
    intend(workspace.ledger, workspace.run.run_id, DAYS[:1])
    with pytest.raises(Frozen) as refused:
        workspace.client.frozen(TABLE, DAYS, wait="0s")
    assert "errata cancel" not in (refused.value.hint or "")
    assert f"errata publish {workspace.run.run_id} frees them" in (refused.value.hint or "")


def test_other_policies_freeze_nothing(make: Make):
    """A run that says nothing of live writes leaves live jobs alone."""
    workspace = make(Publish())
    with frozen(workspace):
        assert errata.live.frozen(workspace.client, TABLE) == ()


def test_a_run_waits_for_a_live_job_that_writes_and_says_so(make: Make):
    """It goes on by itself when the job is done; nobody else begins meanwhile."""
    workspace = make()
    order: list[str] = []

    def correct() -> None:
        with frozen(workspace):
            order.append("run")

    with errata.live.writing(workspace.client, TABLE, [DAYS[0]], name="daily"):
        other = threading.Thread(target=correct)
        other.start()
        while not workspace.said:
            pass
        with pytest.raises(Frozen), errata.live.writing(workspace.client, TABLE, [DAYS[1]]):
            pytest.fail("the body ran")
        order.append("live")
    other.join(10)
    assert order == ["live", "run"]
    assert "waiting for live jobs that write already: daily on" in workspace.said[0]


def test_a_run_gives_up_on_a_live_job_that_does_not_end(make: Make):
    """Then it lets live jobs go on, and says who was in the way."""
    workspace = make()
    workspace.workspace = replace(workspace.workspace, sleep=lambda _: None)
    with errata.live.writing(workspace.client, TABLE, name="stream"):
        with pytest.raises(ScopeLocked, match="stream on") as refused, frozen(workspace):
            pytest.fail("the body ran")
        assert refused.value.fields["partitions"] == list(DAYS)
    assert errata.live.frozen(workspace.client, TABLE) == ()


@contextmanager
def polling(workspace: Office, seconds: float) -> Iterator[list[Callable[[], object]]]:
    """Each wait of a command moves the ledger's clock by so much; what is in the list happens then, one at a time."""
    planned: list[Callable[[], object]] = []
    with stopped_clock() as clock:

        def sleep(_: float) -> None:
            clock.move(seconds)
            if planned:
                planned.pop(0)()

        workspace.workspace = replace(workspace.workspace, sleep=sleep)
        yield planned


def test_a_freeze_outlives_the_wait_for_live_jobs(make: Make):
    """The wait may be longer than ``idle``: it counts as work on the run, so live jobs stay out when it is over."""
    workspace = make(replace(FREEZES, freeze=Freeze(idle=10, at_most=3600)))
    with polling(workspace, 4) as planned, ExitStack() as job:
        job.enter_context(errata.live.writing(workspace.client, TABLE, [DAYS[0]], name="daily"))
        planned += [lambda: None] * 8 + [job.close]
        with frozen(workspace) as just_now:
            assert just_now
            assert errata.live.frozen(workspace.client, TABLE, [DAYS[0]]) != ()
    assert "freeze.granted" in workspace.actions()


def test_a_freeze_that_lapsed_during_the_wait_refuses_the_command(make: Make):
    """A machine that slept lost it, and live jobs may have written since: nothing goes on as if they were held off."""
    workspace = make(replace(FREEZES, freeze=Freeze(idle=10, at_most=3600)))
    with polling(workspace, 11), errata.live.writing(workspace.client, TABLE, [DAYS[0]], name="daily"):
        with pytest.raises(ScopeLocked, match="its freeze ended or expired") as refused, frozen(workspace):
            pytest.fail("the body ran")
        assert refused.value.hint == f"errata run {workspace.run.run_id}"
    assert "freeze.granted" not in workspace.actions()
    with frozen(workspace) as just_now:
        assert just_now, "the same command again starts it again"


def test_a_freeze_whose_time_ends_during_the_wait_is_said_to_be_over(make: Make):
    """The run goes on without it, as it does when the time was over before; it does not count as granted."""
    workspace = make(replace(FREEZES, freeze=Freeze(idle=10, at_most=12)))
    live_job = errata.live.writing(workspace.client, TABLE, [DAYS[0]], name="daily")
    with polling(workspace, 4), live_job, frozen(workspace) as just_now:
        assert not just_now
    assert "(freeze.at_most)" in workspace.said[-1]


def test_a_live_job_waits_for_a_freeze_that_ends_in_time(make: Make):
    """And holds its lease then."""
    workspace = make()
    with frozen(workspace):
        pass
    ended = threading.Timer(0.2, lambda: workspace.ledger.freezes.end_freeze(workspace.run.run_id, ANA, "test"))
    ended.start()
    with errata.live.writing(workspace.client, TABLE, DAYS, wait="1min"):
        assert len(workspace.ledger.freezes.live_writes(TABLE)) == 1
    ended.join()
    (told,) = [line for line in workspace.said if line.startswith("waiting 1min at most")]
    assert workspace.run.run_id in told
    assert workspace.ledger.freezes.live_writes(TABLE) == ()


def test_a_freeze_whose_time_is_over_is_not_opened_again_and_the_run_says_so(make: Make):
    """A forgotten run cannot hold the live pipeline for ever; its conflicts are found as always."""
    workspace = make()
    with frozen(workspace):
        pass
    with workspace.later(hours=2), frozen(workspace) as just_now:
        assert not just_now
        assert errata.live.frozen(workspace.client, TABLE) == ()
    assert any("freeze.at_most" in line for line in workspace.said)


def test_a_live_job_that_slept_past_its_lease_is_warned_and_can_look_before_it_commits(
    make: Make, monkeypatch: pytest.MonkeyPatch
):
    """Only when a run froze the partitions since; its own write has happened by then, so nothing is raised."""
    workspace = make()
    monkeypatch.setenv("ERRATA_LEASE_SECONDS", "0")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with errata.live.writing(workspace.client, TABLE, DAYS) as lease:
            assert lease.is_held
            with frozen(workspace):
                assert not lease.is_held
                threading.Event().wait(0.1)
    assert ["ran out while the job wrote" in str(one.message) for one in heard] == [True]


def test_a_lease_is_given_back_when_the_job_fails_and_when_the_ledger_does_not_answer(make: Make):
    """What the job raised is what the caller sees."""
    workspace = make()
    with pytest.raises(ZeroDivisionError), errata.live.writing(workspace.client, TABLE, DAYS):
        raise ZeroDivisionError
    assert workspace.ledger.freezes.live_writes(TABLE) == ()

    wrote: list[bool] = []

    def refuse_to_forget(statement: str) -> None:
        if wrote and statement.startswith("DELETE FROM live_write"):
            raise sqlite3.OperationalError("disk I/O error")

    with watched_statements(refuse_to_forget), errata.live.writing(workspace.client, TABLE, DAYS):
        wrote.append(True)
    assert len(workspace.ledger.freezes.live_writes(TABLE)) == 1, "it expires by itself"


def test_a_table_that_nobody_governs_is_an_error_and_not_a_yes(make: Make):
    """A mistyped name must not protect nothing in silence; neither must a wait nobody can read."""
    workspace = make()
    with pytest.raises(NotFound, match=TABLE):
        errata.live.frozen(workspace.client, "lake.fin.daily_revenues")
    assert errata.live.frozen(workspace.client, "fin.daily_revenue") == (), "the product's name will do"
    with pytest.raises(UsageError), errata.live.writing(workspace.client, TABLE, wait="soon"):
        pytest.fail("the body ran")
    with errata.live.writing(workspace.client, TABLE, wait="10m") as lease:
        assert lease.partitions == ()
    with pytest.raises(UsageError):
        errata.live.frozen(workspace.client, TABLE, ["yesterday"])


def test_asking_starts_no_engine(tmp_path: Path):
    """A live job pays for a look into the ledger: no Spark, no lake."""
    code = (
        "import sys, errata.live; assert 'sqlalchemy' not in sys.modules\n"
        "with errata.live.writing(sys.argv[1], 'lake.fin.daily', ['2026-01-01']): pass\n"
        "assert errata.live.frozen(sys.argv[1], 'lake.fin.daily') == ()\n"
        "print([name for name in ('pyspark', 'py4j', 'pyiceberg', 'pyarrow') if name in sys.modules])"
    )
    (tmp_path / "products").mkdir()
    (tmp_path / "errata.yaml").write_text(
        "project: p\nledger: sqlite:///ledger.db\npeople: single-user\n"
        "catalogs: {lake: {type: rest, uri: 'http://127.0.0.1:1'}}\n"
    )
    (tmp_path / "products/daily.yaml").write_text(
        "product: fin.daily\nowner: f\ntarget: {table: lake.fin.daily, partition: {column: day, grain: day}}\n"
        "transform: {call: 'transforms.d:build', version: 1.0.0}\n"
        "inputs: {raw: {table: lake.raw.d, partition: day}}\npublish: {on_live_write: freeze}\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
