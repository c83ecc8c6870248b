"""Quorum of a plan: distinct people, the product's owner, current roles and unexpired approvals. Pure.

A plan seals ``ApprovalRules``; ``count_approvals`` evaluates the approvals given under them. An approval applies to one
digest, so a different manifest starts without approvals. Names are those of the project file: the caller resolves
aliases first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from errata.model.duration import subtract_duration
from errata.model.file_keys import Key
from errata.model.file_values import Count, Duration, YesNo

APPROVED = "approved"


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """Approvals that a plan needs."""

    quorum: Annotated[Count, Key("Number of different people who have to approve.")] = 1
    owner: Annotated[YesNo, Key("Require one of the team that owns the product, if it has members.")] = True
    valid: Annotated[Duration, Key("How long a decision is valid.")] = "30d"


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """One person's decision on one manifest digest, as the ledger stores it."""

    run_id: str
    person: str
    decision: str  # approved | declined
    digest: str
    note: str
    at: str
    audit_seq: int
    break_glass: str = ""  # why the person approved alone; empty for an ordinary decision


@dataclass(frozen=True, slots=True)
class Voters:
    """People who count, according to the current project file."""

    approvers: frozenset[str] = frozenset()
    breakers: frozenset[str] = frozenset()  # people with the role break_glass
    owner: str = ""  # the team that owns the product; empty if it has no members
    team: frozenset[str] = frozenset()
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """Quorum status of a run at one moment."""

    quorum: int = 1
    counted: tuple[str, ...] = ()  # distinct people, in the order they approved
    void: Mapping[str, str] = field(default_factory=dict)  # person → why that approval does not count
    lacks_owner: str = ""  # the team that has to approve and has not
    may: tuple[str, ...] = ()  # people who could give the missing approvals
    broken_by: str = ""  # the person whose break-glass approval replaces all others
    standing: str = ""  # the standing approval that covers the run

    @property
    def is_full(self) -> bool:
        """Whether enough people have approved, regardless of team."""
        return len(self.counted) >= self.quorum

    @property
    def is_met(self) -> bool:
        """Whether the plan may run."""
        return bool(self.broken_by or self.standing) or (self.is_full and not self.lacks_owner)

    @property
    def told(self) -> str:
        """Short text: approvals given of approvals needed, and the team that is missing.

        >>> QuorumStatus(quorum=2, counted=("bo",), lacks_owner="finance-data").told
        '1 of 2 approvals, one of finance-data is missing'
        """
        if self.broken_by:
            return f"break-glass approval by {self.broken_by}"
        if self.standing:
            return f"covered by the standing approval {self.standing[:12]}"
        noun = "approval" if self.quorum == 1 else "approvals"
        owner = f", one of {self.lacks_owner} is missing" if self.lacks_owner else ""
        return f"{min(len(self.counted), self.quorum)} of {self.quorum} {noun}{owner}"

    @property
    def missing(self) -> tuple[str, ...]:
        """Why the plan may not run; empty if it may."""
        if self.is_met:
            return ()
        lost = "".join(f"; that of {person} {why}" for person, why in self.void.items())
        return (f"{self.told}{lost}",)


def is_expired(at: str, valid: str, now: datetime) -> bool:
    """Whether a decision made at that instant is too old to count."""
    return datetime.fromisoformat(at) < subtract_duration(valid, now)


def count_approvals(
    rules: ApprovalRules, voters: Voters, given: Iterable[ApprovalRecord], *, digest: str, requester: str, now: datetime
) -> QuorumStatus:
    """Quorum status from these approvals; each person counts once, by their newest approval."""
    # a break-glass approval does not replace the same person's ordinary approval
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
    # only one approval is missing, so it must come from the owning team
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


def _explain_void(one: ApprovalRecord, rules: ApprovalRules, voters: Voters, requester: str, now: datetime) -> str:
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
