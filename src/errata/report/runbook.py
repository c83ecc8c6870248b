"""The twenty steps of a correction, each ticked from the record of the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from errata.views.runbook import DONE, NOT_NEEDED, OPEN, RunbookStep


@dataclass(frozen=True, slots=True)
class StepAction:
    """What the record says about a step: who did it, when, and what came of it."""

    who: str
    at: str
    what: str


STEPS = {
    "reason": "Say why",
    "readers": "Find what is affected",
    "range": "Fix the input and output range",
    "transform": "Fix the transform's version",
    "reference": "Fix the version of reference data",
    "estimate": "Estimate cost and duration",
    "mutation": "Choose how main changes",
    "sinks": "Choose what happens to side effects",
    "manifest": "Seal the plan",
    "approval": "Get the owner's approval",
    "trial": "Try a part of it",
    "trial_judged": "Judge that part",
    "staged": "Compute and stage everything",
    "judged": "Judge the whole output",
    "reviewed": "Review the changes and release them",
    "published": "Publish",
    "watched": "Follow it to the consumers",
    "evidence": "Archive the evidence",
    "told": "Tell the people who use it",
    "notes": "Write down what was learnt",
}
"""Every step by name, in the order in which a careful team does them."""


def list_steps(
    actions: Mapping[str, StepAction], not_needed: Mapping[str, str], commands: Mapping[str, str]
) -> tuple[RunbookStep, ...]:
    """The steps in order: a step is done if somebody did it, even where it was not needed.

    >>> [step.state for step in list_steps({"reason": StepAction("ana", "", "")}, {"sinks": "none"}, {})].count(OPEN)
    18
    """
    found = []
    for n, (name, text) in enumerate(STEPS.items(), start=1):
        if action := actions.get(name):
            found.append(RunbookStep(n, text, DONE, action.who, action.at, action.what))
        elif name in not_needed:
            found.append(RunbookStep(n, text, NOT_NEEDED, what=not_needed[name]))
        else:
            found.append(RunbookStep(n, text, OPEN, next=commands.get(name, "")))
    return tuple(found)
