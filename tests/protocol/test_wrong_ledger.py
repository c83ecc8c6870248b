"""A ledger that does not have the runs of its table: a wrong path, a second ledger, or one restored from a backup."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from errata.errors import NotFound, PlanRefused
from support.memory_world import TABLE, MemoryWorld
from support.terminal import text

Make = Callable[..., MemoryWorld]
RIGHT, WRONG = "sqlite:///.errata/ledger.db", "sqlite:///.errata/typo.db"
QUESTION = "is ledger in errata.yaml right?"


def test_a_first_plan_beside_runs_of_another_ledger_is_refused_until_overridden(make_world: Make):
    """A typo in the path of the ledger is refused with the question; two ledgers on purpose need a reason."""
    world = make_world(days=1)
    run = world.to("staged")
    world.configure(RIGHT, WRONG)
    with pytest.raises(PlanRefused, match=f"ledger: .*1 run that .* does not have.*{run}") as refused:
        world.plan()
    assert QUESTION in refused.value.message
    assert "errata doctor" in str(refused.value.hint)
    assert '--override ledger="WHY"' in str(refused.value.hint)
    made = world.plan(overrides={"ledger": "two teams, two ledgers"})
    assert made.overrides == {"ledger": "two teams, two ledgers"}
    world.client.cancel(made.run_id, reason="no longer needed", as_="ana")
    world.configure(WRONG, RIGHT)


def test_the_doctor_asks_whether_the_ledger_is_the_right_one(make_world: Make):
    """Branches of unknown runs are a problem with the question, and none with the right ledger."""
    world = make_world(days=1)
    world.to("staged")
    assert _check_refs(world).ok
    world.configure(RIGHT, WRONG)
    check = _check_refs(world)
    assert not check.ok
    assert QUESTION in check.found
    world.configure(WRONG, RIGHT)


def test_a_restored_ledger_is_told_and_not_blocked(make_world: Make):
    """Runs younger than the backup give a warning that names the backup; the next plan is made."""
    world = make_world(days=2)
    world.plan(world.days[0])
    place = world.root / ".errata"
    world.client.close()
    shutil.copy(place / "ledger.db", place / "copy.db")
    world.open()
    later = world.plan(world.days[1]).run_id
    world.configure(RIGHT, "sqlite:///.errata/copy.db")
    made = world.plan(world.days[1], reason="once more")
    (told,) = [verdict for verdict in made.verdicts if verdict.rule == "ledger"]
    assert (told.level, later in told.message) == ("warn", True)
    assert "restored from a backup" in told.message
    world.client.cancel(made.run_id, reason="no longer needed", as_="ana")
    world.configure("sqlite:///.errata/copy.db", RIGHT)


def test_a_project_that_only_reads_the_table_raises_no_question(make_world: Make):
    """Another project may have this table as an input, and pins it with a tag of its own."""
    world = make_world(days=1)
    world.table.commit(lambda draft: draft.set_ref("errata_bf-20250101-other-00000000_in", world.snapshot()))
    assert _check_refs(world).ok
    assert {verdict.level for verdict in world.plan().verdicts if verdict.rule == "ledger"} == {"ok"}


def test_why_does_not_take_a_run_of_another_ledger_for_the_live_pipeline(make_world: Make):
    """Without publications in this ledger, the note names the run that published the partition."""
    world = make_world(days=1)
    run = world.to("published")
    world.configure(RIGHT, WRONG)
    world.client.create_ledger()
    note = world.client.why(TABLE, world.days[0]).note
    assert note.startswith(f"no run of this ledger has published this partition; {run} did")
    assert QUESTION in note
    assert "live pipeline" not in note
    world.configure(WRONG, RIGHT)


READING = {
    "status": lambda run: f"errata status {run}",
    "status of all": lambda _: "errata status",
    "runs": lambda _: "errata runs",
    "show": lambda run: f"errata show {run}",
    "diff": lambda run: f"errata diff {run}",
    "report": lambda run: f"errata report {run}",
    "quarantine": lambda run: f"errata quarantine {run}",
    "why": lambda _: f"errata why {TABLE} 2026-01-01",
    "history": lambda _: f"errata history {TABLE} 2026-01-01",
    "live check": lambda _: f"errata live check {TABLE}",
    "audit verify": lambda _: "errata audit verify",
    "audit log": lambda _: "errata audit log",
    "cleanup": lambda _: "errata cleanup --as ana",
    "approve": lambda run: f"errata approve {run} --digest {'0' * 64}",
    "publish": lambda run: f"errata publish {run}",
}


@pytest.mark.parametrize("name", READING)
def test_a_command_about_what_was_recorded_creates_no_ledger(make_world: Make, name: str):
    """It says that there is none at this place, that nothing is recorded there, and what to do; the hint works."""
    world = make_world(days=1)
    run = world.to("staged")
    before = world.rows()
    world.configure(RIGHT, WRONG)
    code, said = text(world, READING[name](run))
    assert code == 3
    assert f"error[not-found]: there is no ledger yet at {world.root}/.errata/typo.db" in said
    assert "nothing has been recorded there, and nothing was created" in said
    assert "correct ledger in errata.yaml; otherwise the first plan creates it" in said
    assert said.endswith(f"hint: errata -C {world.root} doctor")
    assert not _wrong_files(world)
    assert world.rows() == before
    world.configure(WRONG, RIGHT)
    assert text(world, f"errata status {run}")[0] == 0


def test_check_doctor_and_try_need_no_ledger_and_create_none(make_world: Make):
    """A new project is checked and tried before anything is recorded; the doctor says what is not there yet."""
    world = make_world(days=1)
    world.configure(RIGHT, WRONG)
    checks = {check.name: check for check in world.client.doctor()}
    assert (checks["ledger"].ok, checks["ledger"].waiting) == (True, True)
    assert checks["ledger"].found == f"there is no ledger yet at {world.root}/.errata/typo.db"
    assert "correct ledger in errata.yaml" in str(checks["ledger"].hint)
    assert "audit chain" not in checks
    world.client.check()
    assert world.client.try_out("fin.sales", world.days[0], as_="ana").rows
    assert not _wrong_files(world)


@pytest.mark.parametrize("name", ["plan", "live write", "ledger create"])
def test_a_command_that_records_something_creates_the_ledger(make_world: Make, name: str):
    """A plan, the lease of a live job, and the command for it."""
    world = make_world(days=1)
    world.configure(RIGHT, WRONG)
    if name == "plan":
        world.plan()
    elif name == "live write":
        with world.client.writing(TABLE, world.days):
            assert world.client.frozen(TABLE).frozen is False
    else:
        code, said = text(world, "errata ledger create")
        assert (code, said.startswith("created a ledger at")) == (0, True)
        assert text(world, "errata ledger create")[1].startswith("there was a ledger already")
    assert _wrong_files(world)
    assert text(world, "errata status")[0] == 0


def test_an_open_project_sees_the_ledger_that_another_process_creates(make_world: Make):
    """A notebook that was opened before the first plan goes on."""
    world = make_world(days=1)
    world.configure(RIGHT, WRONG)
    waiting = world.another_client()
    with pytest.raises(NotFound, match="no ledger yet"):
        waiting.status()
    run = world.plan().run_id
    assert [one.run_id for one in waiting.status().runs] == [run]
    waiting.close()


def _wrong_files(world: MemoryWorld) -> list[str]:
    return [one.name for one in (world.root / ".errata").iterdir() if one.name.startswith("typo")]


def _check_refs(world: MemoryWorld):
    return {check.name: check for check in world.client.doctor()}[f"refs {TABLE}"]
