"""The runbook of a run is ticked from its record, and notes end it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from errata.cli.render.history import render_runbook
from errata.errors import UsageError
from errata.evidence.keys import generate_key_pair
from errata.report.runbook import STEPS
from support.memory_world import MemoryWorld
from support.terminal import paste, text

Make = Callable[..., MemoryWorld]
NAMES = tuple(STEPS)


def states(world: MemoryWorld, run: str) -> dict[str, str]:
    return {name: step.state for name, step in zip(NAMES, world.client.runbook(run).steps, strict=True)}


def test_each_step_is_open_until_the_record_has_it(make_world: Make) -> None:
    """A plan ticks what it seals; approval, staging, gate, release and publication tick one step each."""
    world = make_world(days=2)
    run = world.to("planned")
    sealed = {"reason", "readers", "range", "transform", "estimate", "mutation", "manifest"}
    found = states(world, run)
    assert {name for name, state in found.items() if state == "done"} == sealed
    assert {name for name, state in found.items() if state == "not needed"} == {"reference", "sinks"}
    plan = world.client.show(run)
    world.client.approve(run, digest=plan.manifest_digest, as_="bo")
    assert states(world, run)["approval"] == "done"
    world.client.run(run, as_="ana")
    assert (states(world, run)["staged"], states(world, run)["judged"]) == ("done", "open")
    world.client.validate(run, as_="ana")
    assert (states(world, run)["judged"], states(world, run)["published"]) == ("done", "open")
    world.client.publish(run, as_="bo")
    found = states(world, run)
    assert (found["reviewed"], found["published"]) == ("done", "done")
    assert found["watched"] == "not needed", "nothing follows it, so no command could tick this"
    assert {name for name, state in found.items() if state == "open"} >= {"trial", "trial_judged", "notes"}


def test_open_steps_name_a_command_and_done_ones_who_and_when(make_world: Make) -> None:
    """Nobody has to guess what comes next."""
    world = make_world(days=1)
    steps = dict(zip(NAMES, world.client.runbook(world.to("approved")).steps, strict=True))
    assert (steps["approval"].who, steps["reason"].who) == ("bo", "ana")
    assert all(step.at for step in steps.values() if step.state == "done")
    assert all(step.next.startswith("errata ") for step in steps.values() if step.state == "open")


def test_the_commands_of_open_steps_can_be_pasted(make_world: Make, tmp_path: Path) -> None:
    """Each names a person who may type it, and everything that it needs."""
    generate_key_pair(tmp_path / "key")
    world = make_world(days=2, project=f"evidence: {{key: {tmp_path / 'key'}}}\n")
    run = world.to("published")
    code, page = text(world, f"errata runbook {run}")
    assert code == 0
    assert f" try fin.sales --as ana {world.days[-1]}" in page
    assert f" evidence export {run} -o {run}.errata" in page
    code, said = paste(world, f"errata evidence export {run} -o {tmp_path / run}.errata")
    assert code == 0, said
    assert states(world, run)["evidence"] == "done"


def test_a_consumer_that_was_given_up_is_named_as_that(make_world: Make) -> None:
    """The step is over, and says that it did not reach everybody."""
    board = "consumers:\n  board: {reads: [fin.sales], refresh: [{command: [./slow.sh]}]}\n"
    world = make_world(days=1, project=board + "  app: {reads: [fin.sales], refresh: [{command: [./app.sh]}]}\n")
    world.engines.consumers.broken = "down"
    run = world.to("published")
    for item in world.ledger.outbox.list_open(run_id=run):
        if item.consumer == "board":
            world.client.waive_outbox(str(item.item_id), reason="switched off", as_="bo")
    assert states(world, run)["watched"] == "open"
    world.engines.consumers.broken = ""
    world.client.retry_outbox([str(one.item_id) for one in world.ledger.outbox.list_open()], as_="ana")
    world.client.deliver(run, as_="ana")
    step = world.client.runbook(run).steps[NAMES.index("watched")]
    assert (step.state, step.what) == ("done", "app; given up: board")


def test_notes_are_kept_with_the_run_and_once(make_world: Make) -> None:
    """The same note by the same person is one note; the text is sealed in the log and readable in the runbook."""
    world = make_world(days=1)
    run = world.to("published")
    first = world.client.note(run, "rates came late", as_="ana")
    again = world.client.note(run, "rates came late", as_="ana")
    assert (first.already, again.already, again.at) == (False, True, first.at)
    world.client.note(run, "rates came late", as_="bo")
    view = world.client.runbook(run)
    assert [(note.person, note.note) for note in view.notes] == [("ana", "rates came late"), ("bo", "rates came late")]
    with world.ledger.people.as_stored():
        stored = [entry.body["note"] for entry in world.ledger.audit.entries(run) if entry.action == "run.noted"]
    assert all(text.startswith("sealed:") for text in stored)
    assert world.ledger.audit.verify().ok
    assert "ana: rates came late" in "\n".join(render_runbook(view, {}, 100))


def test_an_empty_note_is_refused(make_world: Make) -> None:
    """Nothing is recorded."""
    world = make_world(days=1)
    run = world.to("planned")
    with pytest.raises(UsageError, match="an empty note was refused"):
        world.client.note(run, "  ", as_="ana")
    assert world.client.runbook(run).notes == ()


def test_a_rollback_is_not_hidden(make_world: Make) -> None:
    """The step stays done, and says how much was rolled back."""
    world = make_world(days=2)
    run = world.to("published")
    world.client.rollback(run, partitions=world.days[0], reason="wrong rate", as_="bo")
    published = world.client.runbook(run).steps[NAMES.index("published")]
    assert published.what == "2 of 2 partitions, 1 rolled back"
