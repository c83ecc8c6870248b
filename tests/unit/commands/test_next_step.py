"""The next command of a run is the same on every screen and in the error of a command that came too early."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from errata.cli.app.session import CliEnvironment
from errata.cli.main import main
from errata.commands.next_step import RunSituation, next_step, next_steps
from errata.errors import StateRefused
from errata.model.approval import ApprovalRules
from errata.model.manifest import Chunk
from errata.model.product import Publish, Waves
from errata.model.run import RunState
from errata.model.waves import PAUSED
from support.office import ANA, DAYS, WARNED, Office, office
from unit.ledger.steps import adopt, bring, intend, must_claim, publish, roll_back

S = RunState
PLAN_AGAIN = f'errata plan {{product}} --as ana --partitions {DAYS[0]}..{DAYS[1]} --supersede {{run}} --reason "…"'
WAVES = Publish(waves=Waves("1", "1h"))


def _move(state: RunState) -> Callable[[Office], object]:
    return lambda house: bring(house.ledger, house.run.run_id, state)


def _compute(house: Office) -> None:
    """Every chunk staged."""
    house.approve("bo")
    house.ledger.runs.move(house.run.run_id, S.RUNNING, actor=ANA)
    for _ in DAYS:
        adopt(house.ledger, must_claim(house.ledger, house.run.run_id))
    house.ledger.runs.move(house.run.run_id, S.STAGED, actor=ANA)


def _judge(*, passed: bool) -> Callable[[Office], None]:
    def judge(house: Office) -> None:
        _compute(house)
        for wave in house.ledger.waves.list(house.run.run_id):
            house.candidate(wave.partitions)
            house.verdict(WARNED, passed=passed)

    return judge


def _publish(*days: str) -> Callable[[Office], None]:
    def go(house: Office) -> None:
        _judge(passed=True)(house)
        publish(house.ledger, house.run.run_id, days)

    return go


def _leave_open(house: Office) -> None:
    _judge(passed=True)(house)
    intend(house.ledger, house.run.run_id, DAYS)


def _cap_cost(house: Office) -> None:
    bring(house.ledger, house.run.run_id, S.RUNNING)
    house.ledger.runs.move(house.run.run_id, S.PAUSED, actor=ANA, action="cost.capped")


def _lose_approver(house: Office) -> None:
    house.approve("bo")
    house.staff(bo=None)


def _fail_chunk(code: str) -> Callable[[Office], None]:
    def fail(house: Office) -> None:
        bring(house.ledger, house.run.run_id, S.RUNNING)
        attempt = must_claim(house.ledger, house.run.run_id)
        house.ledger.chunks.fail(attempt, error_code=code, message="told", actor=ANA)
        house.ledger.runs.move(house.run.run_id, S.FAILED, actor=ANA)

    return fail


def _reject_canary(house: Office) -> None:
    bring(house.ledger, house.run.run_id, S.RUNNING)
    house.ledger.runs.move(house.run.run_id, S.REJECTED, actor=ANA, action="canary.rejected")


def _be_overtaken(house: Office) -> None:
    """A live job wrote the first day after planning."""
    _judge(passed=True)(house)
    commit = {"snapshot_id": "71", "at": "", "application": "live", "operation": "append", "partitions": [DAYS[0]]}
    body = {"seen_by": "validate", "partitions": [DAYS[0]], "commits": [commit]}
    house.ledger.audit.note(house.run.run_id, ANA, "conflict.seen", body)


def _stop_waves(house: Office) -> None:
    _publish(DAYS[0])(house)
    house.ledger.audit.note(house.run.run_id, ANA, PAUSED)


def _take_back(house: Office) -> None:
    _publish(*DAYS)(house)
    roll_back(house.ledger, house.run.run_id, DAYS)


SITUATIONS: dict[str, tuple[Callable[[Office], object], str, dict[str, Any]]] = {
    "planned": (lambda _: None, "errata approve {run} --as bo", {}),
    "one approval of two": (
        lambda house: house.approve("bo"),
        "errata approve {run} --as cy",
        {"rules": ApprovalRules(quorum=2)},
    ),
    "declined": (_move(S.DECLINED), "", {}),
    "approved": (lambda house: house.approve("bo"), "errata run {run} --as ana", {}),
    "approved by someone who left": (_lose_approver, "errata approve {run} --as cy", {}),
    "running": (_move(S.RUNNING), "errata run {run} --as ana", {}),
    "paused": (_move(S.PAUSED), "errata resume {run} --as ana", {}),
    "paused at its cost cap": (_cap_cost, PLAN_AGAIN + ' --override cost="…"', {}),
    "failed in its transform, which is sealed": (_fail_chunk("transform-failed"), PLAN_AGAIN, {}),
    "failed because a file changed": (
        _fail_chunk("source-changed"),
        "errata retry {run} --as ana && errata run {run} --as ana",
        {},
    ),
    "failed": (_move(S.FAILED), "errata retry {run} --as ana && errata run {run} --as ana", {}),
    "staged": (_compute, "errata validate {run} --as ana", {}),
    "rejected by its canary": (_reject_canary, PLAN_AGAIN, {}),
    "waiting for a warning to be accepted": (_judge(passed=False), "errata diff {run}", {}),
    "validated": (_judge(passed=True), "errata publish {run} --as bo", {}),
    "overtaken by a live write": (_be_overtaken, f"errata publish {{run}} --as bo --partitions {DAYS[1]}", {}),
    "unsettled publication": (_leave_open, "errata publish {run} --as bo", {}),
    "published in part": (_publish(DAYS[0]), "errata publish {run} --as bo", {}),
    "pause between waves": (_publish(DAYS[0]), "errata publish {run} --as bo", {"publish": WAVES}),
    "waves stopped": (_stop_waves, "errata resume {run} --as ana", {"publish": WAVES}),
    "published": (_publish(*DAYS), "", {}),
    "rolled back": (_take_back, "", {}),
    "cancelled": (_move(S.CANCELLED), "", {}),
    "expired": (_move(S.EXPIRED), PLAN_AGAIN, {}),
}


@pytest.fixture(params=SITUATIONS)
def situation(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A run in one situation, and the command that follows it."""
    arrange, command, options = SITUATIONS[request.param]
    chunks = tuple(Chunk(f"c{n}", (day,), 10, 1) for n, day in enumerate(DAYS))
    house = office(tmp_path, chunks=chunks, **options)
    arrange(house)
    run = house.run
    yield house, command.format(run=run.run_id, product=run.product)
    house.ledger.close()


def _screen(house: Office, *words: str) -> str:
    """What ``errata …`` prints."""
    out = io.StringIO()
    opened = SimpleNamespace(status=house.client.status, show=house.client.show, next_steps=house.client.next_steps)
    world = CliEnvironment(open_project=lambda *_, **__: opened, out=out, err=io.StringIO(), environ={}, width=110)
    assert main([*words, house.run.run_id], world) == 0
    return out.getvalue()


def test_every_screen_gives_the_same_next_command(situation: tuple[Office, str]):
    """Status, show and the line after every command about the run agree; a run that has ended has no next command."""
    house, command = situation
    run = house.run.run_id
    assert house.client.status(run).next == command
    assert house.client.next_steps(run) == ((command,) if command else ())
    for words in ("status", "show"):
        text = _screen(house, words)
        assert [line for line in text.splitlines() if line.startswith("next:")] == (
            [f"next: {command}"] if command else []
        )


def test_a_command_that_does_not_fit_the_state_is_answered_with_the_one_that_does(situation: tuple[Office, str]):
    """The refusal by the ledger carries the state, and its hint is the next command of status."""
    house, command = situation
    does_not_fit = house.client.pause if house.state == "failed" else house.client.retry
    with pytest.raises(StateRefused) as refused:
        does_not_fit(house.run.run_id, as_="ana")
    assert refused.value.hint == (command or f"errata status {house.run.run_id}")


def test_where_live_wrote_everything_that_is_left_it_is_planned_again():
    """No part of the run can be published then."""
    run = RunSituation("bf-1", "fin.sales", S.VALIDATED, written=DAYS)
    assert next_step(run) == f'errata plan fin.sales --partitions {DAYS[0]}..{DAYS[1]} --supersede bf-1 --reason "…"'


def test_what_another_tool_removed_from_main_is_brought_back_first():
    """Readers do not see what was published, whatever the state says."""
    run = RunSituation("bf-1", "fin.sales", S.PUBLISHED, restore_command="errata plan fin.sales --restore 7")
    assert next_step(run) == "errata plan fin.sales --restore 7"


def test_whoever_has_seen_the_diff_accepts_its_warnings_or_plans_again():
    """The diff is not named a second time; names of rules are quoted for the shell, and what blocks is not accepted."""
    warned = RunSituation(
        "bf-1", "fin.sales", S.NEEDS_ACCEPTANCE, open_warnings=("sum(gross)", "empty"), is_reviewed=True
    )
    accept, again = next_steps(warned)
    assert shlex.split(accept)[3:] == ["--accept", "sum(gross)=why it is right", "--accept", "empty=why it is right"]
    blocked = RunSituation("bf-1", "fin.sales", S.REJECTED, is_reviewed=True)
    assert next_steps(blocked) == (again,)
    assert again.startswith("errata plan fin.sales … --supersede bf-1")
