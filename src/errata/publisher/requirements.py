"""What must hold at the moment of publication, whatever was true before. Pure; answers every failure at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from errata.model.approval import Standing
from errata.publisher.releases import Accepted

__all__ = ["Facts", "unmet"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Read again, right before the intent."""

    manifest_digest: str
    requested_by: str
    approvals: Standing
    approvers: frozenset[str]  # who may approve, and accept warnings, today
    accepted: tuple[Accepted, ...]
    verdict_passed: bool  # the latest verdict, over the latest candidate
    candidate_digest: str
    found_digest: str  # of the files the candidate holds now
    unreleased: str = ""  # why nothing lets it out; empty when a person does, or a clean gate
    single_user: bool = False
    breaks_glass: bool = False  # stands for the second person and the quorum, and for nothing else


def unmet(facts: Facts) -> tuple[str, ...]:
    """Why this may not be published; empty when it may."""
    problems: list[str] = []
    if not facts.approvals.is_met and not facts.breaks_glass:
        problems.append(_approvals(facts))
    problems += _acceptances(facts.accepted, facts)
    if not facts.verdict_passed:
        problems.append("the latest verdict does not pass the latest candidate")
    if facts.candidate_digest != facts.found_digest:
        problems.append(
            f"the candidate is not what was judged: expected {facts.candidate_digest}, found {facts.found_digest}"
        )
    if facts.unreleased:
        problems.append(facts.unreleased)
    return tuple(problems)


def _approvals(facts: Facts) -> str:
    lacking = "; ".join(facts.approvals.missing)
    if facts.approvals.counted or facts.approvals.quorum > 1:
        return f"manifest {facts.manifest_digest} has {lacking}"
    return (
        f"no valid approval of manifest {facts.manifest_digest} by someone other than {facts.requested_by}: {lacking}"
    )


def _acceptances(accepted: Iterable[Accepted], facts: Facts) -> list[str]:
    """Whoever answers for a warning still has to be allowed to."""
    if facts.single_user:
        return []
    return [
        f"the warning {one.check} was accepted by {one.person}, who may no longer do so"
        for one in accepted
        if one.person not in facts.approvers
    ]
