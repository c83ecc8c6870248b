"""Every ``next:`` line and the hint of every refusal can be pasted as it is, by someone whom nothing else names."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from errata.errors import ErrataError, NeedsAcceptance
from errata.ledger import current_owner
from errata.model.audit import Actor
from errata.model.consumer.outbox import ItemState
from errata.model.run import RunState
from support import waves
from support.memory_world import MemoryWorld, build
from support.statements import watched_statements
from support.stream_model import MemoryReader
from support.terminal import at_terminal, next_lines, paste, text
from support.waves import in_waves
from support.world import PRODUCT, PRODUCT_FILE

Make = Callable[..., MemoryWorld]
ONE_DAY = "1KiB"
WARNS = PRODUCT_FILE.replace("checks:", "compare:\n  - {metric: sum(gross), warn: 5%}\nchecks:")
BLOCKS = PRODUCT_FILE.replace("checks:", "compare:\n  - {metric: sum(gross), block: 5%}\nchecks:")
ALONE = in_waves("size: 1, release: none", waves.ALONE)
FIRST = in_waves("size: 1, release: first, within: {rows: 10%}")
WAVES = PRODUCT_FILE.replace("rollback_window: 30d", "rollback_window: 30d, waves: {size: 1, pause: 1h}")


def _without_place(said: str) -> str:
    """Commands that are typed elsewhere name the project; these are compared without it."""
    return re.sub(r" -C \S+", "", said)


def _state(world: MemoryWorld, run: str) -> str:
    return str(world.client.status(run).state)


def test_a_correction_is_made_by_pasting_what_each_page_says_next(make_world: Make) -> None:
    """From the plan to the publication: every line works as printed, and each names who may type it."""
    world = make_world(days=2, product=WARNS)
    run, seen = world.plan().id, ["planned"]
    while seen[-1] != "published":
        (line,) = next_lines(world, f"errata status {run[-8:]}")
        if " diff " in line:
            line, again = next_lines(world, line)
            assert again.endswith(f'--partitions {world.days[0]}..{world.days[1]} --supersede {run} --reason "…"')
        code, said = paste(world, line)
        assert code in (0, 4), (line, said)  # 4: validate says that a person has to accept
        seen.append(_state(world, run))
    assert seen == ["planned", "approved", "staged", "needs_acceptance", "validated", "published"]
    assert world.rows() == world.expected()
    assert next_lines(world, f"errata status {run}") == []


OWING = """
channels:
  finance: {file: messages.jsonl}
consumers:
  board: {reads: [fin.sales], tell: {channel: finance, on: [planned]}}
  fraud: {reads: [fin.sales], kind: iceberg-stream, owner: cy, checkpoint: cp, on_replace: rewind}
"""


def test_what_is_owed_is_paid_by_pasting_what_the_outbox_says_next(make_world: Make) -> None:
    """Also where it is about all runs: somebody who may deliver is named."""
    world = make_world(days=1, project=OWING)
    MemoryReader(world, world.root / "cp").begin()
    run = world.plan().id
    assert run in text(world, "errata outbox")[1], "which of all runs owes it"
    (line,) = next_lines(world, "errata outbox")
    assert line.endswith(" deliver --as ana")
    code, said = paste(world, line)
    assert code == 0, said
    assert next_lines(world, "errata outbox") == []


def test_items_that_failed_are_retried_by_pasting_what_the_outbox_says(make_world: Make) -> None:
    """All of them, by somebody who may."""
    boards = "".join(f"  board{n}: {{reads: [fin.sales], tell: {{channel: finance}}}}\n" for n in range(3))
    world = make_world(days=1, project="channels:\n  finance: {file: messages.jsonl}\nconsumers:\n" + boards)
    world.engines.channels.down.add("finance")
    world.to("published")
    for item in world.ledger.outbox.list_open():
        claimed = world.ledger.outbox.claim(item.queue, current_owner("payer"), lease_seconds=60)
        if claimed is None:
            world.client.retry_outbox([str(item.item_id)], as_="ana")
            claimed = world.ledger.outbox.claim(item.queue, current_owner("payer"), lease_seconds=60)
        assert claimed is not None
        world.ledger.outbox.record_failed(claimed, "gone", Actor("ana", "ana", "host"))
    (line,) = next_lines(world, "errata outbox")
    assert line.endswith("outbox retry 1 2 3 --as ana")
    code, said = paste(world, line)
    assert (code, world.ledger.outbox.count_open()) == (0, {ItemState.OWED: 3}), said


def test_the_steps_of_a_repair_name_the_owner_of_the_reader(make_world: Make) -> None:
    """Nobody else may confirm it."""
    world = make_world(days=1, project=OWING)
    MemoryReader(world, world.root / "cp").begin()
    run = world.to("published")
    waits = f"1. errata deliver {run} --as "
    assert waits in text(world, f"errata consumers check {PRODUCT}", "kim")[1]
    world.live("2026-01-09")
    world.client.retry_outbox([str(one.item_id) for one in world.ledger.outbox.list_open()], as_="ana")
    world.client.deliver(run, timeout="1s", as_="ana")
    assert f"4. errata consumers confirm {run} fraud --as cy" in text(world, f"errata consumers check {PRODUCT}")[1]


def test_who_may_not_speak_for_a_consumer_gets_the_command_of_its_owner(make_world: Make) -> None:
    """The name of the consumer stays whole, whatever it contains, and no second person is added."""
    stops = OWING.replace("fraud:", "fraud-eu_west:").replace("rewind", "stop")
    world = make_world(days=1, project=stops)
    MemoryReader(world, world.root / "cp").begin()
    run = world.to("validated")
    line = f"errata consumers confirm {run} fraud-eu_west --as cy"
    code, said = text(world, f"errata consumers confirm {run} fraud-eu_west --as ana")
    assert code == 3
    assert _without_place(said).endswith(f"hint: {line}")
    assert paste(world, line)[0] == 0


def test_a_publication_that_waits_for_an_owner_says_so_on_every_page(make_world: Make) -> None:
    """Notice and acknowledgement are both missing: the refusal has both, and each command that it prints works."""
    terms = "hold: {before: 1s, acknowledge: true, on_timeout: stop}"
    world = make_world(days=1, project=f"consumers:\n  board: {{reads: [fin.sales], owner: cy, {terms}}}\n")
    run = world.to("validated")
    code, said = text(world, f"errata publish {run} --as bo")
    assert (code, "board has notice until" in said, "and has not acknowledged its hold" in said) == (3, True, True)
    assert f"hint: errata ack {run} board --as cy" in _without_place(said)
    assert "or after" not in said, "with on_timeout: stop it would be refused then"
    (line,) = next_lines(world, f"errata status {run}")
    assert _without_place(line) == f"errata publish {run} --as bo --wait"
    assert paste(world, f"errata ack {run} board --as cy")[0] == 0
    code, said = paste(world, f"errata publish {run} --as bo --wait")
    assert (code, _state(world, run)) == (0, "published"), said


@pytest.mark.parametrize("option", ["--reason", "--note"])
def test_a_plan_is_declined_with_a_reason_and_waits_for_nobody_then(make_world: Make, option: str) -> None:
    """An empty one is refused, and the refusal's command works once it has one."""
    world = make_world(days=1)
    run = world.plan().id
    code, said = text(world, f"errata decline {run} {option} '' --as bo")
    assert (code, _state(world, run), "decline without a reason was refused" in said) == (2, "planned", True)
    assert f'hint: errata decline {run} --as bo --reason "…"' in _without_place(said)
    code, said = text(world, f"errata decline {run} {option} 'books are closed' --as bo")
    assert (code, _state(world, run), "ask bo" in said) == (0, "declined", False)


def test_a_plan_reads_no_manifest_to_find_which_runs_were_superseded(make_world: Make) -> None:
    """However many runs the table has: the ledger knows what each supersedes."""
    world = make_world(days=2, product=BLOCKS)
    last = _reject(world)
    for _ in range(3):
        last = world.plan(supersede=last, reason="again").id
    read: list[str] = []
    with watched_statements(lambda one: read.append(one) if "manifest.content" in one else None):
        world.client.plan("fin.sales", partitions=world.days[0], supersede=last, reason="x", dry_run=True, as_="ana")
    assert len(read) <= 1  # the plan shows the rules that differ from those of the run it supersedes


def test_days_of_a_run_that_was_superseded_are_free_once_its_successor_is_published(make_world: Make) -> None:
    """After a rollback of the successor they can be planned again, without a word about the run before it."""
    world = make_world(days=2, product=BLOCKS)
    rejected = world.to("staged")
    with suppress(ErrataError):
        world.client.validate(rejected, as_="ana")
    (world.root / "products/sales.yaml").write_text(PRODUCT_FILE)
    world.client.close()
    world.open()
    successor = world.to("published", supersede=rejected, reason="with another limit")
    world.client.rollback(successor, partitions=world.days[0], reason="not yet", as_="bo")
    assert world.client.plan("fin.sales", partitions=world.days[0], reason="again", as_="ana").state == "planned"


def test_a_rejected_run_points_to_the_run_that_superseded_it(make_world: Make) -> None:
    """To the last of a chain, on every page; and to its own diff again once its successor was cancelled."""
    world = make_world(days=2, product=BLOCKS)
    rejected = _reject(world)
    own = next_lines(world, f"errata status {rejected}")
    assert own == [f"errata -C {world.root} diff {rejected}"]
    second = world.plan(supersede=rejected, reason="again").id
    third = world.plan(supersede=second, reason="once more").id
    on = [f"errata -C {world.root} status {third}"]
    assert next_lines(world, f"errata status {rejected}") == on
    assert next_lines(world, f"errata diff {rejected}") == on
    assert paste(world, on[0])[0] == 0
    for run in (third, second):
        world.client.cancel(run, reason="no longer needed", as_="ana")
    assert next_lines(world, f"errata status {rejected}") == own
    world.plan(world.days[0], supersede=rejected, reason="one day")
    assert next_lines(world, f"errata status {rejected}") == own


def _run_part(world: MemoryWorld) -> str:
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    return run


def _pause(world: MemoryWorld) -> str:
    run = _run_part(world)
    world.client.pause(run, as_="ana")
    return run


def _fail(world: MemoryWorld) -> str:
    fixed, world.transform = world.transform, _raise
    world.client.close()
    world.open()
    run = world.to("approved")
    with pytest.raises(ErrataError):
        world.client.run(run, as_="ana")
    world.transform = fixed
    return run


def _raise(_ctx: Any, _raw: Any) -> list[dict[str, Any]]:
    raise ValueError("no rate")


def _reject(world: MemoryWorld) -> str:
    run = world.to("staged")
    with suppress(ErrataError):
        world.client.validate(run, as_="ana")
    return run


def _reject_canary(world: MemoryWorld) -> str:
    run = world.to("approved", canary=1)
    with suppress(ErrataError):
        world.client.run(run, as_="ana")
    return run


def _be_overtaken(world: MemoryWorld) -> str:
    run = world.to("validated")
    world.live(world.days[0])
    world.client.status(run)
    return run


def _publish_part(world: MemoryWorld) -> str:
    run = world.to("validated")
    world.client.publish(run, partitions=world.days[0], as_="bo")
    return run


def _stop_waves(world: MemoryWorld) -> str:
    run = world.to("validated")
    world.client.publish(run, as_="bo")
    world.client.pause(run, as_="ana")
    return run


def _stream_part(world: MemoryWorld) -> str:
    run = world.to("approved")
    world.client.run(run, max_chunks=1, publish=True, as_="cy")
    return run


def _stream_until_released(world: MemoryWorld) -> str:
    run = world.to("approved")
    world.client.run(run, publish=True, as_="cy")
    world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
    return run


def _judge_waves(world: MemoryWorld) -> str:
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    world.client.validate(run, as_="ana")
    return run


def _expire(world: MemoryWorld) -> str:
    run = world.to("approved")
    world.live("2026-02-01")
    world.drop_refs(*(ref for ref in world.refs() if ref.endswith("_base")))
    world.expire()
    with suppress(ErrataError):
        world.client.run(run, as_="ana")
    return run


def _wrong(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    return [{**row, "gross": row["gross"] + 1} for row in build(ctx, raw)]


SITUATIONS: dict[str, tuple[Callable[[MemoryWorld], str], str, dict[str, Any]]] = {
    "running": (_run_part, "staged", {"chunk_bytes": ONE_DAY}),
    "paused": (_pause, "running", {"chunk_bytes": ONE_DAY}),
    "failed in its transform": (_fail, "failed", {}),
    "rejected": (_reject, "rejected", {"product": BLOCKS}),
    "rejected by its canary": (_reject_canary, "rejected", {"chunk_bytes": ONE_DAY, "transform": _wrong}),
    "overtaken by a live write": (_be_overtaken, "part_published", {}),
    "published in part": (_publish_part, "published", {}),
    "waves stopped": (_stop_waves, "part_published", {"product": WAVES}),
    "waves that go by themselves, under way": (_stream_part, "published", {"chunk_bytes": ONE_DAY, "product": ALONE}),
    "waves that go by themselves, judged": (_judge_waves, "published", {"chunk_bytes": ONE_DAY, "product": ALONE}),
    "waves after a release": (_stream_until_released, "published", {"chunk_bytes": ONE_DAY, "product": FIRST}),
    "a wave that waits for a person": (_judge_waves, "running", {"chunk_bytes": ONE_DAY, "product": WAVES}),
    "expired": (_expire, "expired", {}),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_next_command_of_every_situation_is_accepted(make_world: Make, name: str) -> None:
    """It ends well and leaves the run in the state it is for; a plan in place of a run makes another run."""
    arrange, state, options = SITUATIONS[name]
    world = make_world(days=2, **options)
    run = arrange(world)
    lines = next_lines(world, f"errata status {run}")
    if " diff " in lines[0]:
        lines = next_lines(world, lines[0])
    (line,) = lines
    code, said = paste(world, line)
    assert code == 0, (line, said)
    assert _state(world, run) == state
    if " plan " in line:
        (new,) = [one.run_id for one in world.client.status().runs if one.run_id != run]
        assert world.client.show(new).supersedes == run


def test_publish_before_acceptance_prints_the_line_that_accepts(make_world: Make) -> None:
    """Names of rules are quoted for the shell; whoever may accept is named, and the line works as it is."""
    world = make_world(days=1, product=WARNS)
    run = _reject(world)
    code, said = text(world, f"errata publish {run}", "bo")
    assert code == 3
    diff, accept = (f"errata {one.strip()}" for one in said.partition("hint: ")[2].split("errata ")[1:])
    assert diff == f"errata -C {world.root} diff {run} then"
    assert accept == f"errata -C {world.root} validate {run} --as bo --accept 'sum(gross)=why it is right'"
    assert paste(world, accept)[0] == 0
    assert _state(world, run) == "validated"


def test_a_warning_that_waits_is_its_own_answer(make_world: Make) -> None:
    """Exit 4 with the code needs-acceptance; a block is a rejection, with warnings or without."""
    waits, blocks = make_world(days=1, product=WARNS), make_world(days=1, product=BLOCKS)
    for world, state, error in (
        (waits, "needs_acceptance", "needs-acceptance"),
        (blocks, "rejected", "validation-rejected"),
    ):
        run = world.to("staged")
        code, said = text(world, f"errata validate {run}", "ana")
        assert (code, _state(world, run)) == (4, state)
        assert f"{state.replace('_', ' ')} {run}" in said
        assert f"error[{error}]" in said
        assert [one.run_id for one in world.client.runs(states=[state]).runs] == [run]


def test_a_run_that_earlier_code_rejected_for_warnings_alone_can_be_accepted(make_world: Make) -> None:
    """Its state stays as recorded until it is judged again; the way on is the same."""
    world = make_world(days=1, product=WARNS)
    run = _reject(world)
    world.ledger.runs.move(run, RunState.REJECTED, actor=Actor("ana", "ana-os", "here"))
    accept, _ = world.client.next_steps(run, is_reviewed=True)
    assert "--accept 'sum(gross)=why it is right'" in accept
    with pytest.raises(NeedsAcceptance):
        world.client.validate(run, as_="ana")
    assert _state(world, run) == "needs_acceptance"
    assert paste(world, accept)[0] == 0
    assert _state(world, run) == "validated"


@pytest.mark.parametrize("typed", ["", "00000000", "{digest:.7}", "{digest:.6}zz"])
def test_an_approval_needs_the_beginning_of_the_digest(make_world: Make, typed: str) -> None:
    """Nothing typed changes nothing; what does not fit is refused and audited, without the right digest."""
    world = make_world(days=1)
    plan = world.plan()
    code, out, err = at_terminal(world, f"errata approve {plan.id} --as bo", typed.format(digest=plan.digest))
    shown, _, after = err.partition("characters of the digest:")
    assert f"manifest {plan.digest}" in shown
    assert plan.digest not in out + after
    assert (code, _state(world, plan.id)) == (3 if typed else 1, "planned")
    assert [one.action for one in world.client.audit_log(plan.id)].count("refused") == bool(typed)


def test_a_plan_is_approved_by_the_first_eight_characters_of_its_digest(make_world: Make) -> None:
    """The plan is on the screen before the question, and once; elsewhere the whole digest has to be given."""
    world = make_world(days=1)
    plan = world.plan()
    code, said = text(world, f"errata approve {plan.id}", "bo")
    assert (code, _state(world, plan.id)) == (2, "planned")
    assert "expected the manifest digest" in said
    code, out, err = at_terminal(world, f"errata approve {plan.id[-8:]} --as bo", plan.digest[:8].upper())
    assert (code, _state(world, plan.id)) == (0, "approved")
    assert err.count("doubled") == 1
    assert "doubled" not in out
    assert [one.digest for one in world.client.status(plan.id).approvals] == [plan.digest]


def test_whoever_may_not_approve_is_told_before_the_question(make_world: Make) -> None:
    """The requester reads no plan to the end in order to be refused."""
    world = make_world(days=1)
    code, _, err = at_terminal(world, f"errata approve {world.plan().id} --as ana", "0" * 8)
    assert code == 3
    assert "type the first" not in err


def test_a_release_is_signed_like_an_approval(make_world: Make) -> None:
    """On a terminal by the beginning of what is shown; a refusal does not name the right digest, also not in JSON."""
    world = make_world(days=1)
    run = world.to("validated")
    digest = world.client.show(run).release_digest or ""
    for line in (f"errata release {run} --digest {'0' * 64}", f"errata release {run} --digest {'0' * 64} --json"):
        code, said = text(world, line, "bo")
        assert code == 3
        assert digest not in said
    code, out, err = at_terminal(world, f"errata release {run} --as bo", "0" * 8)
    assert code == 3
    assert digest not in out + err.partition("characters of the digest:")[2]
    assert at_terminal(world, f"errata release {run} --as bo", digest[:8])[0] == 0
    released = world.client.status(run).release
    assert released is not None
    assert (released.person, released.digest, released.valid) == ("bo", digest, True)


def test_a_short_id_is_enough_wherever_a_run_is_taken(make_world: Make) -> None:
    """Commands, options and the Python client take the end of an id; records and answers have the whole one."""
    world = make_world(days=2)
    run = world.to("validated")
    end = run[-8:]
    for line in (
        f"show {end}",
        f"status {end}",
        f"diff {end}",
        f"report {end}",
        f"quarantine {end}",
        f"audit log --run {end}",
    ):
        assert text(world, f"errata {line}", "ana")[0] == 0, line
    assert text(world, f"errata publish {end} --dark", "bo")[0] == 0
    assert world.client.publish(end, wait=True, as_="bo").run_id == run
    assert world.client.rollback(end, partitions=world.days[0], reason="undo", as_="bo").run_id == run
    again = world.plan(supersede=end)
    assert again.supersedes == run
    assert world.client.cancel(again.id[-8:], reason="no longer needed", as_="ana").run_id == again.id
    world.client.cleanup(again.id[-8:], as_="ana")
    assert {entry.run_id for entry in world.client.audit_log()} <= {None, run, again.id}
