"""Decides from the status of a run whether what a task waits for has happened. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

UNDECIDED = frozenset({"planned"})
COMPUTING = frozenset({"approved", "running", "paused"})
PUBLISHED = frozenset({"publishing", "part_published", "published", "superseded"})
GIVEN_UP = frozenset({"declined", "cancelled", "expired", "rolled_back"})
"""The run has ended without a result that readers have."""
STUCK = frozenset({"failed", "rejected"})
"""A person has to do something about the run, or plan again."""
ANSWERED = frozenset({"attested", "differs"})
"""A run that changes nothing has ended with its answer."""


class Progress(Enum):
    """Whether something has happened."""

    WAITING = "waiting"
    REACHED = "reached"
    ENDED = "ended"  # it will not happen any more


def judge_approval(status: Mapping[str, Any]) -> Progress:
    """Whether people have approved the plan."""
    state = status.get("state")
    if state in UNDECIDED:
        return Progress.WAITING
    return Progress.ENDED if state in GIVEN_UP else Progress.REACHED


def judge_computed(status: Mapping[str, Any]) -> Progress:
    """Whether every chunk is staged."""
    state = status.get("state")
    if state in UNDECIDED | COMPUTING:
        return Progress.WAITING
    return Progress.ENDED if state in GIVEN_UP | STUCK else Progress.REACHED


def judge_release(status: Mapping[str, Any]) -> Progress:
    """Whether a person has released the candidate, or published it."""
    state, release = status.get("state"), status.get("release") or {}
    if state in PUBLISHED:
        return Progress.REACHED
    if state in GIVEN_UP | STUCK | ANSWERED:
        return Progress.ENDED
    return Progress.REACHED if state == "validated" and release.get("valid") else Progress.WAITING


AIMS: dict[str, Callable[[Mapping[str, Any]], Progress]] = {
    "approval": judge_approval,
    "computed": judge_computed,
    "release": judge_release,
}
"""What a task may wait for, by name, because a trigger is stored as names and values."""


def describe_status(status: Mapping[str, Any]) -> str:
    """State of the run and the command that Errata suggests."""
    told = f"{status.get('run_id')} is {status.get('state')}"
    return f"{told}; next: {status['next']}" if status.get("next") else told


_MADE_ELSEWHERE = (
    "This decision is made in Errata, by a person, and recorded in its ledger. An answer here changes nothing: "
    "the task continues once the ledger has the decision."
)


def describe_decision(aim: str, status: Mapping[str, Any], project: str) -> tuple[str, str]:
    """Headline and text that show an open decision, with the command that a person types."""
    quorum = status.get("quorum") or {}
    people = ", ".join(quorum.get("may") or ()) if aim == "approval" else ""
    digest = status.get("release_digest") if aim == "release" else None
    lines = [
        f"{status.get('product')}, {len(status.get('partitions') or ())} partitions, state `{status.get('state')}`.",
        _MADE_ELSEWHERE,
        f"In `{project}`, look with `errata show {status.get('run_id')}`, then type:",
        f"`{status.get('next')}`",
        *([f"It may be decided by: {people}."] if people else []),
        *([f"Release digest: `{digest}`"] if digest else []),
    ]
    return f"Errata waits for the {aim} of {status.get('run_id')}", "\n\n".join(lines)


def mark_reason(reason: str, dag_id: str, dag_run_id: str, task_id: str) -> str:
    """The reason of a plan with the DAG run that asked for it, by which a later attempt finds the plan."""
    return f"{reason} [airflow {dag_id} {dag_run_id} {task_id}]"


def find_planned(runs: list[Mapping[str, Any]], product: str, marked_reason: str) -> Mapping[str, Any] | None:
    """The newest run that this DAG run has planned, unless it was given up."""
    mine = [one for one in runs if one.get("product") == product and one.get("reason") == marked_reason]
    newest = max(mine, key=lambda one: str(one.get("planned_at")), default=None)
    return newest if newest and newest.get("state") not in GIVEN_UP else None
