"""Decides from exit code and answer of a command what its task does next. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

USAGE, REFUSED, REJECTED, CONFLICT, NOT_YET = 2, 3, 4, 5, 7
"""Exit codes of Errata with a meaning of their own; 1 is any other failure."""

WAITING_CODES = frozenset({"frozen", "publish-held", "scope-locked"})
"""Refusals that end by themselves: repeating the command later may succeed."""


class Course(Enum):
    """What a task does after a command."""

    DONE = "done"
    SKIP = "skip"
    FAIL = "fail"  # whatever retries the task has: the same command would end in the same way
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended: its exit code, and the JSON that it printed."""

    exit_code: int
    answer: Mapping[str, Any]

    @property
    def error(self) -> Mapping[str, Any]:
        """The error of the answer; empty if it has none."""
        found = self.answer.get("error")
        return found if isinstance(found, Mapping) else {}


def read_outcome(exit_code: int, printed: str) -> Outcome:
    """Read what a command printed; anything but a JSON object is no answer."""
    try:
        answer = json.loads(printed)
    except ValueError:
        answer = {}
    return Outcome(exit_code, answer if isinstance(answer, dict) else {})


def choose_course(outcome: Outcome) -> Course:
    """What a task does after this outcome.

    A refusal, a rejected candidate and a conflict need a person, so they are not retried. A command that was killed or
    interrupted is: Errata continues where it ended.
    """
    code, error = outcome.exit_code, outcome.error
    if code == 0:
        return Course.DONE
    if error.get("nothing_stale"):
        return Course.SKIP
    if code == NOT_YET or error.get("code") in WAITING_CODES:
        return Course.RETRY
    if code in {USAGE, REFUSED, REJECTED, CONFLICT}:
        return Course.FAIL
    if code == 1 and error and not error.get("retryable") and error.get("code") != "internal":
        return Course.FAIL
    return Course.RETRY


def describe_outcome(command: str, outcome: Outcome) -> str:
    """What happened, the state of the data, and the next command, for the log of the task."""
    error = outcome.error
    if not error:
        how = (
            f"was ended by signal {-outcome.exit_code}" if outcome.exit_code < 0 else f"ended with {outcome.exit_code}"
        )
        return f"errata {command} {how}; what it finished is recorded, and repeating it is safe"
    lines = [f"errata {command}: {error.get('message')} [{error.get('code')}]", error.get("state"), error.get("hint")]
    return "\n".join(str(line) for line in lines if line)


def list_findings(answer: Mapping[str, Any]) -> list[str]:
    """The findings of a verdict that are not ok, one line each, also those inside an error."""
    error = answer.get("error")
    verdict = error.get("validation") if isinstance(error, Mapping) else answer
    checks = verdict.get("checks", ()) if isinstance(verdict, Mapping) else ()
    return [
        f"{check.get('level')}: {check.get('name')} {check.get('partition') or ''} {check.get('message')}"
        for check in checks
        if isinstance(check, Mapping) and check.get("level") != "ok"
    ]
