"""The command to type next for a run: decided here alone, for every screen and for errors about a wrong state. Pure.

:mod:`errata.commands.situation` reads what decides it.
"""

from __future__ import annotations

from dataclasses import dataclass

from errata.gate.verdict.acceptance import format_accept_command
from errata.model.kind import ATTEST, find_kind
from errata.model.partition import Grain, format_partition_list
from errata.model.run import RunState
from errata.publishing.messages import plan_again_command, publish_rest_command

S = RunState
_DEAD_END_MOVES = {"cost.capped": ' --override cost="…"', "determinism.refuted": ""}
"""Moves after which continuing would fail in the same way, with the options that a new plan needs."""


@dataclass(frozen=True, slots=True)
class RunSituation:
    """Everything that decides the next command of a run."""

    run_id: str
    product: str
    state: RunState
    grain: Grain = Grain.DAY
    last_move: str = ""  # the action that led to the state, for a run that was paused or failed
    needs_new_plan: bool = False  # a chunk failed in a way that no retry can help
    is_computed: bool = True  # every chunk is done; not so for a run that its canary rejected
    open_warnings: tuple[str, ...] = ()  # rules that warned, if accepting them is all that is missing
    lacks_approvals: bool = False
    waves_stopped: bool = False
    goes_by_itself: bool = False  # `run --publish` computes, judges and publishes the next wave without a person
    written: tuple[str, ...] = ()  # unpublished partitions that others wrote, where that ends as a conflict
    free: tuple[str, ...] = ()  # the other unpublished partitions
    restore_command: str = ""  # brings back what another tool removed from main
    waits_for_consumers: bool = False  # some are held, and their notice or acknowledgement is waited for
    is_reviewed: bool = False  # the reader has the diff on the screen
    successor: str = ""  # the run that was planned in place of this one, for a run that needs a decision or a new plan
    kind: str = "restate"
    partitions: tuple[str, ...] = ()
    campaign: str = ""  # that it is a member of
    decide_command: str = ""  # a person types it for an item of the run that failed
    pay_command: str = ""  # pays what is owed because of it, or lets what failed be tried again


def next_step(run: RunSituation) -> str:
    """The command to type next; empty if the run has ended and there is nothing to do."""
    return _find_step(run) or run.pay_command


def _find_step(run: RunSituation) -> str:
    if run.restore_command:
        return run.restore_command
    if run.successor:
        return f"errata status {run.successor}"
    if run.state is S.RUNNING and find_kind(run.kind).only_copies and run.decide_command:
        return run.decide_command
    if run.lacks_approvals and run.state in (S.APPROVED, S.VALIDATED, S.PART_PUBLISHED):
        return _approve_command(run)
    if run.waves_stopped:
        return f"errata resume {run.run_id}"
    if run.written and run.state in (S.VALIDATED, S.PART_PUBLISHED):
        if run.free:
            return publish_rest_command(run.run_id, run.grain, run.free)
        return plan_again_command(run.product, run.run_id, run.grain, run.written)
    if run.last_move in _DEAD_END_MOVES or (run.state is S.REJECTED and not run.is_computed):
        return _plan_again_command(run) + _DEAD_END_MOVES.get(run.last_move, "")
    if run.goes_by_itself:
        return f"errata run {run.run_id} --publish"
    return _step_by_state(run)


def _step_by_state(run: RunSituation) -> str:
    match run.state:
        case S.PLANNED:
            return _approve_command(run) if find_kind(run.kind).changes_table else f"errata run {run.run_id}"
        case S.DIFFERS:
            return _correct_main(run) if run.is_reviewed or run.kind != ATTEST else f"errata diff {run.run_id}"
        case S.APPROVED | S.RUNNING:
            return f"errata run {run.run_id}"
        case S.PAUSED:
            return f"errata resume {run.run_id}"
        case S.FAILED if run.needs_new_plan:
            return _plan_again_command(run)
        case S.FAILED:
            return f"errata retry {run.run_id} && errata run {run.run_id}"
        case S.STAGED:
            return f"errata validate {run.run_id}"
        case S.REJECTED | S.NEEDS_ACCEPTANCE:
            return _decide_step(run) if run.is_reviewed else f"errata diff {run.run_id}"
        case S.VALIDATED | S.PART_PUBLISHED | S.PUBLISHING:
            return f"errata publish {run.run_id}{' --wait' if run.waits_for_consumers else ''}"
        case S.EXPIRED:
            return _plan_again_command(run)
        case S.PUBLISHED if run.campaign:
            return f"errata status {run.campaign}"
        case _:
            return ""


def next_steps(run: RunSituation) -> tuple[str, ...]:
    """The next command, and the other way on for a run that did not pass and was reviewed: a new plan."""
    steps = [next_step(run)]
    if run.state in (S.REJECTED, S.NEEDS_ACCEPTANCE) and run.is_reviewed and not run.successor:
        steps.append(_plan_again_command(run))
    return tuple(dict.fromkeys(filter(None, steps)))


def _decide_step(run: RunSituation) -> str:
    """What follows a look at the diff of a candidate that did not pass."""
    if run.open_warnings:
        return format_accept_command(run.run_id, run.open_warnings)
    return _plan_again_command(run)


def _correct_main(run: RunSituation) -> str:
    """A correction of what an attestation or reconciliation found; it does not supersede a run that changes nothing."""
    return f'errata plan {run.product} --partitions {format_partition_list(run.grain, run.partitions)} --reason "…"'


def _approve_command(run: RunSituation) -> str:
    # without the digest: the approver takes it from the plan
    return f"errata approve {run.campaign or run.run_id}"


def _plan_again_command(run: RunSituation) -> str:
    return f'errata plan {run.product} … --supersede {run.run_id} --reason "…"'
