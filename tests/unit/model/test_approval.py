"""When approvals are enough, whatever order they come in."""

from __future__ import annotations

import doctest
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errata.model import approval
from errata.model.approval import ApprovalRules, QuorumStatus, Voters, count_approvals

NOW = datetime(2026, 3, 1, tzinfo=UTC)
VOTERS = Voters(approvers=frozenset({"bo", "cy", "dana"}), breakers=frozenset({"dana"}))


@dataclass(frozen=True)
class Said:
    """An approval."""

    person: str
    days_ago: float = 1
    digest: str = "d"
    decision: str = "approved"
    break_glass: str = ""

    @property
    def at(self) -> str:
        return (NOW - timedelta(days=self.days_ago)).isoformat()


def stands(
    *said: Said, rules: ApprovalRules | None = None, voters: Voters = VOTERS, requester: str = "ana"
) -> QuorumStatus:
    return count_approvals(rules or ApprovalRules(), voters, said, digest="d", requester=requester, now=NOW)


def test_examples_in_the_module_hold():
    """Its doctests run."""
    assert doctest.testmod(approval).failed == 0


@pytest.mark.parametrize(
    "said",
    [
        Said("ana"),
        Said("ANA"),
        Said("eve"),
        Said("bo", digest="other"),
        Said("bo", decision="declined"),
        Said("bo", days_ago=31),
        Said("bo", break_glass="now"),
    ],
    ids=["requester", "requester in capitals", "no approver", "other digest", "a no", "too old", "no breaker"],
)
def test_what_does_not_count(said: Said):
    """The requester in any spelling, strangers, another digest, a no, and what is too old."""
    voters = Voters(approvers=VOTERS.approvers | {"ana", "ANA"})
    assert not stands(said, voters=voters).is_met


def test_a_person_counts_once_by_the_newest_approval():
    """Twice by one person is one; approving again renews what had grown old."""
    two = ApprovalRules(quorum=2)
    assert stands(Said("bo"), Said("bo"), rules=two).counted == ("bo",)
    assert stands(Said("bo", days_ago=40), Said("bo")).is_met
    assert stands(Said("bo"), Said("cy"), rules=two).is_met


def test_an_approval_counts_until_its_last_moment():
    """The age is a limit that belongs to the time in which it counts."""
    assert stands(Said("bo", days_ago=30)).is_met
    assert not stands(Said("bo", days_ago=30.001)).is_met
    assert stands(Said("bo", days_ago=0.9), rules=ApprovalRules(valid="24h")).is_met


def test_breaking_the_glass_is_enough_alone_while_the_role_is_there():
    """It stands for any quorum and any owner, and even for the requester; not for age."""
    rules = ApprovalRules(quorum=3)
    owned = Voters(VOTERS.approvers, VOTERS.breakers, "finance", frozenset({"cy"}))
    broken = Said("dana", break_glass="market opens")
    assert stands(broken, rules=rules, voters=owned, requester="dana").broken_by == "dana"
    assert not stands(Said("dana", days_ago=31, break_glass="market opens")).is_met


def test_single_user_mode_counts_anyone_once():
    """One approval, by the requester too."""
    assert stands(Said("ana"), rules=ApprovalRules(quorum=2), voters=Voters(single_user=True)).is_met


@given(
    people=st.lists(st.sampled_from(["ana", "bo", "cy", "dana", "eve"]), max_size=8),
    quorum=st.integers(1, 3),
    team=st.frozensets(st.sampled_from(["ana", "bo", "cy", "dana"])),
    owner=st.booleans(),
)
def test_met_means_enough_others_and_the_owner(people: list[str], quorum: int, team: frozenset[str], owner: bool):
    """In any order: so many distinct approvers but the requester, and one of the team where there is one."""
    voters = Voters(VOTERS.approvers, owner="finance" if team else "", team=team)
    found = stands(*map(Said, people), rules=ApprovalRules(quorum, owner), voters=voters)
    able = set(people) & VOTERS.approvers
    assert set(found.counted) == able
    assert found.is_met == (len(able) >= quorum and (not owner or not team or bool(able & team)))
    assert bool(found.missing) != found.is_met
    if not found.is_met:
        assert not set(found.may) & able
        assert "ana" not in found.may
