"""A ledger that does not have the runs of its table: a wrong path, a second ledger, or one restored from a backup."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from errata.errors import PlanRefused
from support.memory_world import TABLE, MemoryWorld

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
    world.client.cancel(made.run_id, as_="ana")
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
    world.client.cancel(made.run_id, as_="ana")
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
    note = world.client.why(TABLE, world.days[0]).note
    assert note.startswith(f"no run of this ledger has published this partition; {run} did")
    assert QUESTION in note
    assert "live pipeline" not in note
    world.configure(WRONG, RIGHT)


def _check_refs(world: MemoryWorld):
    return {check.name: check for check in world.client.doctor()}[f"refs {TABLE}"]
