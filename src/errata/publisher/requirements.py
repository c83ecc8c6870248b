"""What must hold at the moment of publication, whatever was true before. Pure; answers every failure at once."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Facts", "unmet"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Read again, right before the intent."""

    manifest_digest: str
    requested_by: str
    single_user: bool
    approvals: tuple[tuple[str, str, str], ...]  # person, decision, digest
    approvers: frozenset[str]  # who may approve today
    verdict_passed: bool  # the latest verdict, over the latest candidate
    candidate_digest: str
    found_digest: str  # of the files the candidate holds now


def unmet(facts: Facts) -> tuple[str, ...]:
    """Why this may not be published; empty when it may."""
    problems = []
    if not any(_counts(facts, *approval) for approval in facts.approvals):
        problems.append(
            f"no valid approval of manifest {facts.manifest_digest} by someone other than {facts.requested_by}"
        )
    if not facts.verdict_passed:
        problems.append("the latest verdict does not pass the latest candidate")
    if facts.candidate_digest != facts.found_digest:
        problems.append(
            f"the candidate is not what was judged: expected {facts.candidate_digest}, found {facts.found_digest}"
        )
    return tuple(problems)


def _counts(facts: Facts, person: str, decision: str, digest: str) -> bool:
    if decision != "approved" or digest != facts.manifest_digest:
        return False
    if facts.single_user:
        return True
    return person in facts.approvers and person.casefold() != facts.requested_by.casefold()
