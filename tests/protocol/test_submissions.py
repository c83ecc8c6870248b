"""Workers started on a cluster in memory: what is recorded, followed, refused and stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.cli.render.plan import render_plan
from errata.errors import EngineError, PermissionRefused, Refused, StateRefused, UsageError
from errata.failpoints import arm
from errata.ports.clusters import JobState
from errata.testing.clusters.memory_cluster import MemoryCluster
from support.memory_world import MemoryWorld
from support.office import ANA

Make = Callable[..., MemoryWorld]
ONE_DAY = "1"  # bytes: every day is a chunk of its own
CLUSTER = """
clusters:
  standalone: {master: "spark://spark.example.com:7077", release: "4.1"}
"""


class Killed(BaseException):
    """Stands for kill -9: nothing is tidied up."""


def kill() -> None:
    raise Killed


@pytest.fixture
def world(make_world: Make) -> MemoryWorld:
    """Four wrong days in four chunks, and a cluster whose workers are one look away from being done."""
    return prepare(make_world(days=4, chunk_bytes=ONE_DAY, project=CLUSTER, sleep=lambda _: None))


def prepare(made: MemoryWorld) -> MemoryWorld:
    found = MemoryCluster()
    kept = made.prepare

    def engines(given: Any) -> Any:
        given.memory_cluster = found
        return kept(given)

    made.prepare = engines
    made.client.close()
    made.open()
    return made


def memory(world: MemoryWorld) -> MemoryCluster:
    found = world.engines.memory_cluster
    assert isinstance(found, MemoryCluster)
    return found


def compute(world: MemoryWorld, run: str, chunks: int | None = None) -> None:
    """What a worker on the cluster does."""
    world.client.run(run, max_chunks=chunks, as_="ana")


def finish_at_a_look(world: MemoryWorld, run: str) -> None:
    """At the next look, the run is computed and every worker has ended."""

    def work() -> None:
        if memory(world).list_running() and world.client.status(run).state in ("approved", "running"):
            compute(world, run)
            memory(world).end_all(JobState.SUCCEEDED)

    memory(world).work = work


def notes(world: MemoryWorld, run: str) -> list[str]:
    return [name for name in world.ledger.facts.list(run) if name.startswith("submission.")]


def test_workers_are_started_followed_and_ended_on_record(world: MemoryWorld):
    """The intent, every start and every end are notes of the run, each with its audit entry."""
    run = world.to("approved")
    finish_at_a_look(world, run)
    view = world.client.submit(run, "standalone", workers=2, as_="ana")
    assert (view.state, view.submission, view.workers, view.joined) == ("staged", 1, 2, False)
    assert [one.outcome for one in view.started] == ["succeeded", "succeeded"]
    assert sorted(notes(world, run)) == [
        "submission.1", "submission.1.ended.1", "submission.1.ended.2", "submission.1.started.1",
        "submission.1.started.2",
    ]  # fmt: skip
    assert memory(world).list_running() == []
    assert world.client.audit_verify().ok


@pytest.mark.parametrize("name", ["submit.after_intent", "submit.after_start", "submit.after_record"])
def test_killed_anywhere_the_next_command_follows_the_same_workers(world: MemoryWorld, name: str):
    """Two workers were asked for, two are ever started."""
    run = world.to("approved")
    with arm(name, kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", workers=2, as_="ana")
    finish_at_a_look(world, run)
    view = world.client.submit(run, "standalone", as_="ana")
    assert (view.submission, view.workers, view.joined) == (1, 2, True)
    assert len(memory(world).orders) == 2
    assert memory(world).list_running() == []


def test_workers_that_have_ended_meanwhile_are_replaced(world: MemoryWorld):
    """A killed command, workers that were lost since: the next command starts others."""
    run = world.to("approved")
    with arm("submit.after_record", kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", as_="ana")
    memory(world).end_all(JobState.FAILED, "the machine is gone")
    finish_at_a_look(world, run)
    view = world.client.submit(run, "standalone", as_="ana")
    assert (view.submission, view.joined, view.state) == (2, False, "staged")
    assert any("the machine is gone" in line for line in world.said)


def test_an_interrupt_stops_what_was_started(make_world: Make):
    """Ctrl-C ends the workers, and the record says so."""
    asked: list[float] = []

    def interrupt(seconds: float) -> None:
        asked.append(seconds)
        if len(asked) == 1:
            raise KeyboardInterrupt

    world = prepare(make_world(days=2, project=CLUSTER, sleep=interrupt))
    run = world.to("approved")
    with pytest.raises(KeyboardInterrupt):
        world.client.submit(run, "standalone", workers=2, as_="ana")
    assert memory(world).list_running() == []
    (known,) = world.ledger.submissions.read_all(run)
    assert [(one.outcome, one.detail) for one in known.started] == [("stopped", "interrupted")] * 2


def test_stop_ends_what_another_command_started(world: MemoryWorld):
    """Whether or not its start was recorded; a second one changes nothing."""
    run = world.to("approved")
    with arm("submit.after_start", kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", workers=2, as_="ana")
    view = world.client.stop_workers(run, as_="ana")
    assert [one.outcome for one in view.started] == ["stopped", "not_started"]
    assert memory(world).list_running() == []
    assert world.client.stop_workers(run, as_="ana") == view


def test_a_stop_that_is_killed_is_repeated(world: MemoryWorld):
    """The end was asked for and not recorded; the next one records it."""
    run = world.to("approved")
    with arm("submit.after_record", kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", as_="ana")
    with arm("submit.after_stop", kill), pytest.raises(Killed):
        world.client.stop_workers(run, as_="ana")
    assert world.ledger.submissions.read_all(run)[0].is_open
    assert [one.outcome for one in world.client.stop_workers(run, as_="ana").started] == ["stopped"]
    assert len(memory(world).stopped) == 1


def test_workers_that_do_not_end_by_themselves_are_stopped(world: MemoryWorld):
    """The run is computed, a worker hangs: it is ended, and the command succeeds."""
    run = world.to("approved")
    memory(world).work = lambda: compute(world, run) if world.client.status(run).state == "approved" else None
    view = world.client.submit(run, "standalone", as_="ana")
    assert (view.state, view.started[0].outcome) == ("staged", "stopped")
    assert memory(world).list_running() == []


def test_a_worker_that_fails_is_reported_with_its_log(world: MemoryWorld):
    """What is left, what it said, where its log is, and the command that goes on."""
    run = world.to("approved")
    memory(world).work = lambda: memory(world).end_all(JobState.FAILED, "its driver ended with 127")
    with pytest.raises(EngineError) as failed:
        world.client.submit(run, "standalone", as_="ana")
    (token,) = memory(world).orders
    assert "4 chunks of 4 are not done" in failed.value.message
    assert "its driver ended with 127" in failed.value.message
    assert f"memory:{token}" in failed.value.message
    assert failed.value.hint is not None
    assert f"errata submit {run} --start standalone" in failed.value.hint


def test_a_worker_that_cannot_be_started_ends_the_others(world: MemoryWorld):
    """Nothing is left running of a submission that did not come about."""
    run = world.to("approved")

    def broken() -> None:
        memory(world).broken = "no machine is free"

    with arm("submit.after_record", broken), pytest.raises(EngineError, match="no machine is free"):
        world.client.submit(run, "standalone", workers=2, as_="ana")
    (known,) = world.ledger.submissions.read_all(run)
    assert [one.outcome for one in known.started] == ["stopped", "not_started"]
    assert memory(world).list_running() == []


def test_what_the_plan_did_not_seal_is_refused(world: MemoryWorld):
    """Another release, another master, a cluster that errata.yaml did not have, an image."""
    run = world.to("approved")
    with pytest.raises(Refused, match="the plan seals image none"):
        world.client.submit(run, "standalone", image="errata:2", as_="ana")
    with pytest.raises(Refused, match=r"expected clusters\.emr in errata\.yaml, found none"):
        world.client.submit(run, "emr", as_="ana")
    world.configure('release: "4.1"', 'release: "4.2"')
    with pytest.raises(Refused, match=r"the plan seals release 4\.1, errata\.yaml has 4\.2"):
        world.client.submit(run, "standalone", as_="ana")
    world.configure('release: "4.2"', 'release: "4.1"')
    world.configure("spark.example.com", "live.example.com")
    with pytest.raises(Refused, match=r"the plan seals queue master spark://spark\.example\.com:7077"):
        world.client.submit(run, "standalone", as_="ana")
    assert memory(world).orders == {}
    assert notes(world, run) == []


def test_the_plan_shows_where_workers_may_be_started(world: MemoryWorld):
    """Whoever approves sees what is sealed."""
    told = {"standalone": "release 4.1, master spark://spark.example.com:7077"}
    run = world.to("planned")
    assert world.client.show(run).clusters == told
    assert any("standalone (release 4.1, master" in line for line in render_plan(world.client.show(run), 100))


def test_a_plan_without_clusters_has_the_bytes_it_always_had(make_world: Make):
    """Nothing is sealed, and --start is refused until it is planned again."""
    world = prepare(make_world(days=2))
    run = world.to("approved")
    assert b'"clusters"' not in world.client.manifest_bytes(run)
    world.configure("people:", CLUSTER.strip() + "\npeople:")
    with pytest.raises(Refused, match="seals no cluster of this kind"):
        world.client.submit(run, "standalone", as_="ana")


def test_the_cluster_itself_must_have_the_sealed_release(world: MemoryWorld):
    """It is asked before anything is recorded."""
    run = world.to("approved")
    memory(world).release = "4.0"
    with pytest.raises(Refused, match=r"seals release 4\.1, the cluster has 4\.0"):
        world.client.submit(run, "standalone", as_="ana")
    assert notes(world, run) == []


def test_only_an_operator_starts_and_stops(world: MemoryWorld):
    """As with run."""
    run = world.to("approved")
    for refused in (
        lambda: world.client.submit(run, "standalone", as_="bo"),
        lambda: world.client.stop_workers(run, as_="bo"),
    ):
        with pytest.raises(PermissionRefused):
            refused()


def test_a_run_without_work_starts_nothing(world: MemoryWorld):
    """Not approved: refused. Computed: said so."""
    run = world.to("planned")
    with pytest.raises(StateRefused, match="found planned"):
        world.client.submit(run, "standalone", as_="ana")
    world.client.approve(run, digest=world.client.show(run).digest, as_="bo")
    compute(world, run)
    assert world.client.submit(run, "standalone", as_="ana").submission == 0
    with pytest.raises(StateRefused, match="nothing was started for it"):
        world.client.stop_workers(run, as_="ana")
    assert memory(world).orders == {}


def test_a_deadline_decides_the_size(world: MemoryWorld):
    """The fewest cores that do; one that cannot be met starts nothing, and neither does a second answer."""
    run = world.to("approved")
    with pytest.raises(Refused, match=r"no number of cores finishes 4 chunks in the 5 s"):
        world.client.submit(run, "standalone", deadline="5s", as_="ana")
    with pytest.raises(UsageError, match="--workers with --deadline"):
        world.client.submit(run, "standalone", workers=3, deadline="1h", as_="ana")
    assert memory(world).orders == {}
    finish_at_a_look(world, run)
    view = world.client.submit(run, "standalone", deadline="1h", as_="ana")
    assert (view.workers, view.cores) == (1, 1)
    assert view.deadline is not None
    assert view.deadline.meets


def test_a_deadline_that_costs_more_than_the_plan_allows_starts_nothing(make_world: Make):
    """The cap is the one that was approved, the price the one of today; without a deadline workers stop at the cap."""
    world = prepare(make_world(days=4, chunk_bytes=ONE_DAY, project=CLUSTER + "price: {core_hour_usd: 0.01}\n"))
    world.configure("max_partitions: 400", "max_partitions: 400, max_usd: 60")
    run = world.to("approved")
    world.configure("core_hour_usd: 0.01", "core_hour_usd: 99999")
    with pytest.raises(Refused, match=r"limits\.max_usd of the plan is \$60"):
        world.client.submit(run, "standalone", deadline="1h", as_="ana")
    assert memory(world).orders == {}
    assert notes(world, run) == []


def test_workers_on_one_cluster_are_not_joined_on_another(world: MemoryWorld):
    """They have to be stopped or followed where they are."""
    world.configure("clusters:\n", 'clusters:\n  kubernetes: {image: "e@sha256:1", namespace: b, service_account: e}\n')
    run = world.to("approved")
    with arm("submit.after_record", kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", as_="ana")
    with pytest.raises(Refused, match="were started on standalone and may be running"):
        world.client.submit(run, "kubernetes", as_="ana")
    world.client.stop_workers(run, as_="ana")
    with pytest.raises(Refused, match="SQLite file of this machine"):
        world.client.submit(run, "kubernetes", as_="ana")


def test_a_start_whose_answer_was_lost_is_found_and_ended(world: MemoryWorld):
    """The call failed and the worker runs: it is not recorded as never started."""
    run = world.to("approved")
    memory(world).loses_answers = True
    with pytest.raises(EngineError, match="no answer") as failed:
        world.client.submit(run, "standalone", workers=2, as_="ana")
    assert failed.value.state == "nothing that was started runs any more; main is unchanged"
    (known,) = world.ledger.submissions.read_all(run)
    assert [one.outcome for one in known.started] == ["stopped", "not_started"]
    assert len(memory(world).stopped) == 1
    assert memory(world).list_running() == []


def test_a_cluster_that_cannot_be_asked_leaves_the_record_open(world: MemoryWorld):
    """Nobody knows whether the worker runs, so the command says that; --stop ends it when there is an answer again."""
    run = world.to("approved")
    memory(world).loses_answers, memory(world).silent = True, 1
    with pytest.raises(EngineError, match="no answer") as failed:
        world.client.submit(run, "standalone", as_="ana")
    assert "workers may be running" in (failed.value.state or "")
    assert f"errata submit {run} --stop" in (failed.value.hint or "")
    assert world.ledger.submissions.read_all(run)[0].is_open
    assert [one.outcome for one in world.client.stop_workers(run, as_="ana").started] == ["stopped"]
    assert memory(world).list_running() == []


def test_a_cluster_that_is_silent_for_a_while_is_asked_again(world: MemoryWorld):
    """It is no reason to leave workers alone."""
    run = world.to("approved")
    finish_at_a_look(world, run)
    memory(world).silent = 5
    assert world.client.submit(run, "standalone", as_="ana").state == "staged"
    assert sum("does not answer; asking again" in line for line in world.said) == 5


def test_a_stop_without_an_answer_says_that_workers_may_be_running(world: MemoryWorld):
    """After many questions; a later one that gets its answer stops them."""
    run = world.to("approved")
    with arm("submit.after_record", kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", as_="ana")
    memory(world).silent = 30
    with pytest.raises(EngineError, match="does not answer") as failed:
        world.client.stop_workers(run, as_="ana")
    assert "workers may be running" in (failed.value.state or "")
    memory(world).silent = 5
    assert [one.outcome for one in world.client.stop_workers(run, as_="ana").started] == ["stopped"]


def test_where_workers_cannot_be_seen_nothing_is_started_or_stopped(world: MemoryWorld):
    """On another machine or in another namespace, recorded or not: what is not found there may still be running."""
    run = world.to("approved")
    with arm("submit.after_start", kill), pytest.raises(Killed):
        world.client.submit(run, "standalone", as_="ana")
    memory(world).place = "another machine"
    for refused in (
        lambda: world.client.submit(run, "standalone", as_="ana"),
        lambda: world.client.stop_workers(run, as_="ana"),
    ):
        with pytest.raises(Refused, match="started at in memory and may be running") as error:
            refused()
        assert "repeat the command there" in (error.value.hint or "")
    assert len(memory(world).orders) == 1
    memory(world).place = "in memory"
    assert [one.outcome for one in world.client.stop_workers(run, as_="ana").started] == ["stopped"]


def test_of_two_commands_at_once_one_starts_and_both_follow(world: MemoryWorld):
    """The note can be written once; who comes second follows, and says that its own size does not count."""
    run = world.to("approved")
    finish_at_a_look(world, run)
    told = {"target": "standalone", "workers": 1, "cores": None, "parallel": 2, "starts": 1, "place": "in memory"}

    def be_faster(_release: str | None) -> None:
        world.ledger.submissions.intend(run, 1, {**told, "at": world.ledger.now()}, ANA)

    memory(world).check = be_faster  # type: ignore[method-assign]
    view = world.client.submit(run, "standalone", workers=3, as_="ana")
    assert (view.submission, view.workers, view.joined, view.state) == (1, 1, True, "staged")
    assert len(memory(world).orders) == 1
    assert any("following 1 worker that an earlier command started" in line for line in world.said)
    assert any("too late for --workers" in line for line in world.said)


@pytest.mark.parametrize("end", ["cancelled", "paused"])
def test_a_run_that_ends_otherwise_is_an_error_and_nothing_is_left_running(world: MemoryWorld, end: str):
    """The command promised a computed run; the record does not say that it is computed."""
    run = world.to("approved")
    compute(world, run, 1)

    def stop_it() -> None:
        if world.client.status(run).state == "running":
            if end == "paused":
                world.client.pause(run, as_="ana")
                memory(world).end_all(JobState.SUCCEEDED)
            else:
                world.client.cancel(run, reason="not needed", as_="ana")

    memory(world).work = stop_it
    with pytest.raises(StateRefused, match=f"is {end}; 3 chunks of 4 are not done"):
        world.client.submit(run, "standalone", as_="ana")
    (known,) = world.ledger.submissions.read_all(run)
    assert known.started[0].detail == ("" if end == "paused" else "the run is cancelled")
    assert memory(world).list_running() == []
