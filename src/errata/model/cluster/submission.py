"""What was started for a run: one submission at a time, its workers, and what became of each. Pure.

A submission is a run note that is written before anything is started. Its workers have names that follow from it, so
that a process which finds the note finds what was started, too, even if nobody was left to record it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from errata.canonical import digest_of

SUBMISSION = "submission."
"""Prefix of the run notes; the number of the submission follows, then ``.started.W`` or ``.ended.W``."""


@dataclass(frozen=True, slots=True)
class StartedWorker:
    """One thing that was started: a job run, a cluster, a Job or a process."""

    name: str
    token: str  # equal for equal names, so that a repeated start is recognised
    job_id: str | None = None  # None: the start is not recorded
    log: str = ""
    outcome: str | None = None  # succeeded | failed | stopped | not_started; None: it is not known to have ended
    detail: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it may be running."""
        return self.outcome is None


@dataclass(frozen=True, slots=True)
class Submission:
    """Workers that were started together."""

    n: int
    target: str
    workers: int
    cores: int | None  # of each worker; None: no cap
    parallel: int
    at: str
    place: str  # where its workers can be found and stopped
    started: tuple[StartedWorker, ...]

    @property
    def is_open(self) -> bool:
        """Whether something that it started may be running."""
        return any(one.is_open for one in self.started)


def name_worker(run_id: str, n: int, worker: int) -> str:
    """Name of one worker, unique among all that are ever started.

    >>> name_worker("bf-20260214-sales-7f3a21c0", 2, 1)
    'errata-bf-20260214-sales-7f3a21c0-2-1'
    """
    return f"errata-{run_id}-{n}-{worker}"


def build_token(ledger_id: str, name: str) -> str:
    """Token with which a repeated start is recognised; differs between ledgers that name their runs alike."""
    return digest_of([ledger_id, name])[:32]


def read_submissions(run_id: str, ledger_id: str, facts: Mapping[str, Mapping[str, Any]]) -> tuple[Submission, ...]:
    """The submissions of a run, oldest first, from its notes."""
    found: list[Submission] = []
    while (value := facts.get(f"{SUBMISSION}{len(found) + 1}")) is not None:
        found.append(_read_submission(run_id, ledger_id, len(found) + 1, value, facts))
    return tuple(found)


def _read_submission(
    run_id: str, ledger_id: str, n: int, value: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]]
) -> Submission:
    started = []
    for number in range(1, int(value["starts"]) + 1):
        name = name_worker(run_id, n, number)
        one = StartedWorker(name, build_token(ledger_id, name))
        if (begun := facts.get(f"{SUBMISSION}{n}.started.{number}")) is not None:
            one = replace(one, job_id=begun["id"], log=begun["log"])
        if (ended := facts.get(f"{SUBMISSION}{n}.ended.{number}")) is not None:
            one = replace(one, outcome=ended["outcome"], detail=ended["detail"], log=ended["log"] or one.log)
        started.append(one)
    size = (value["workers"], value["cores"], value["parallel"])
    return Submission(n, value["target"], *size, value["at"], value["place"], tuple(started))
