"""What must hold at the moment of publication; every failure is answered at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from errata.publisher.requirements import Facts, unmet

GOOD = Facts("d1", "ana", single_user=False, approvals=(("bo", "approved", "d1"),), approvers=frozenset({"bo"}),
             verdict_passed=True, candidate_digest="c", found_digest="c")  # fmt: skip


def test_all_is_well() -> None:
    """An approval of this digest by another approver, a passed verdict, the judged files."""
    assert unmet(GOOD) == ()


@pytest.mark.parametrize(
    "approvals",
    [
        (),
        (("ana", "approved", "d1"),),
        (("bo", "approved", "d0"),),
        (("bo", "declined", "d1"),),
        (("ANA", "approved", "d1"),),
    ],
)
def test_an_approval_counts_only_by_another_person_over_this_digest(
    approvals: tuple[tuple[str, str, str], ...],
) -> None:
    """Nobody, the requester in any spelling, another digest and a no do not count."""
    assert len(unmet(replace(GOOD, approvals=approvals, approvers=frozenset({"bo", "ana", "ANA"})))) == 1


def test_an_approver_who_lost_the_role_does_not_count_any_more() -> None:
    """Roles are today's."""
    assert unmet(replace(GOOD, approvers=frozenset()))


def test_single_user_mode_needs_an_approval_all_the_same() -> None:
    """One person may give it, but it has to be given."""
    assert unmet(replace(GOOD, single_user=True, approvals=(("ana", "approved", "d1"),))) == ()
    assert unmet(replace(GOOD, single_user=True, approvals=()))


def test_every_failure_is_answered() -> None:
    """Approval, verdict and files."""
    assert len(unmet(replace(GOOD, approvals=(), verdict_passed=False, found_digest="x"))) == 3
