"""When approvals are enough: distinct people, the product's owner, today's roles, and not too long ago. Pure.

``ApprovalRules`` is what a plan seals; ``count_approvals`` counts what people have given by it. Approvals are over a
digest, so another manifest has none. Names are those of the project file: whoever calls this has put aliases right
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from errata.model.duration import subtract_duration

APPROVED = "approved"


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """What it takes before a plan may run: so many people, one of the product's owner, no longer ago than ``valid``."""

    quorum: int = 1
    owner: bool = True  # one of them belongs to the team that owns the product, where people name that team
    valid: str = "30d"


class GivenApproval(Protocol):
    """One person's decision, as the ledger keeps it."""

    @property
    def person(self) -> str: ...

    @property
    def decision(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def at(self) -> str: ...

    @property
    def break_glass(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Voters:
    """Who counts, by the project file as it is now."""

    approvers: frozenset[str] = frozenset()
    breakers: frozenset[str] = frozenset()  # who may break the glass
    owner: str = ""  # the team that owns the product; empty when nobody belongs to it
    team: frozenset[str] = frozenset()
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """What the approvals of a run amount to at one moment."""

    quorum: int = 1
    counted: tuple[str, ...] = ()  # distinct people, in the order they approved
    void: Mapping[str, str] = field(default_factory=dict)  # person → why that approval does not count
    lacks_owner: str = ""  # the team that has to agree and has not
    may: tuple[str, ...] = ()  # who could give what is missing
    broken_by: str = ""  # whose break-glass approval stands for all others

    @property
    def is_full(self) -> bool:
        """Whether so many people have agreed, whoever they are."""
        return len(self.counted) >= self.quorum

    @property
    def is_met(self) -> bool:
        """Whether the plan may run."""
        return bool(self.broken_by) or (self.is_full and not self.lacks_owner)

    @property
    def told(self) -> str:
        """In a few words: how many of how many, and who is missing.

        >>> QuorumStatus(quorum=2, counted=("bo",), lacks_owner="finance-data").told
        '1 of 2 approvals, one of finance-data is missing'
        """
        if self.broken_by:
            return f"break-glass approval by {self.broken_by}"
        noun = "approval" if self.quorum == 1 else "approvals"
        owner = f", one of {self.lacks_owner} is missing" if self.lacks_owner else ""
        return f"{min(len(self.counted), self.quorum)} of {self.quorum} {noun}{owner}"

    @property
    def missing(self) -> tuple[str, ...]:
        """Why the plan may not run; empty when it may."""
        if self.is_met:
            return ()
        lost = "".join(f"; that of {person} {why}" for person, why in self.void.items())
        return (f"{self.told}{lost}",)


def is_expired(at: str, valid: str, now: datetime) -> bool:
    """Whether a decision of that instant is too old to count."""
    return datetime.fromisoformat(at) < subtract_duration(valid, now)


def count_approvals(
    rules: ApprovalRules, voters: Voters, given: Iterable[GivenApproval], *, digest: str, requester: str, now: datetime
) -> QuorumStatus:
    """What these approvals amount to; each person counts once, by the newest approval."""
    newest = {
        (one.person.casefold(), bool(one.break_glass)): one
        for one in given
        if one.decision == APPROVED and one.digest == digest
    }
    counted: list[str] = []
    void: dict[str, str] = {}
    broken_by = ""
    for one in newest.values():
        why = _explain_void(one, rules, voters, requester, now)
        if why:
            void[one.person] = why
        elif one.break_glass:
            broken_by = one.person
        else:
            counted.append(one.person)
    team = voters.team if rules.owner and not voters.single_user else frozenset[str]()
    quorum = 1 if voters.single_user else rules.quorum
    lacks_owner = voters.owner if team and not team.intersection(counted) else ""
    may = voters.approvers - set(counted) - {name for name in voters.approvers if _is_same_name(name, requester)}
    if lacks_owner and len(counted) >= quorum - 1:
        may &= team
    return QuorumStatus(
        quorum=quorum,
        counted=tuple(counted),
        void={person: why for person, why in void.items() if person not in counted},
        lacks_owner=lacks_owner,
        may=tuple(sorted(may)),
        broken_by=broken_by,
    )


def _explain_void(one: GivenApproval, rules: ApprovalRules, voters: Voters, requester: str, now: datetime) -> str:
    if is_expired(one.at, rules.valid, now):
        return f"is of {one.at[:10]} and counts for {rules.valid}"
    if one.break_glass:
        return "" if voters.single_user or one.person in voters.breakers else "needs the role break_glass, now gone"
    if voters.single_user:
        return ""
    if _is_same_name(one.person, requester):
        return "is the requester's own"
    return "" if one.person in voters.approvers else "needs the role approver, now gone"


def _is_same_name(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
