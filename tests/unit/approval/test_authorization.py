"""What must hold at the moment of publication; every failure is answered at once."""

from __future__ import annotations

from dataclasses import replace

from errata.approval.authorization import Preconditions, find_unmet
from errata.approval.release import SignedWarning
from errata.model.approval import QuorumStatus

ENOUGH = QuorumStatus(counted=("bo",))
GOOD = Preconditions("d1", "ana", approvals=ENOUGH, approvers=frozenset({"bo"}), accepted=(),
             verdict_passed=True, candidate_digest="c", found_digest="c")  # fmt: skip
KNOWN = SignedWarning("moved", "f", "known", "bo")


def test_all_is_well() -> None:
    """Enough approvals, a passed verdict, the judged files, and something that lets it out."""
    assert find_unmet(GOOD) == ()


def test_too_few_approvals_say_how_many_are_there() -> None:
    """One of one in the words of before; of more, how many of how many and why one no longer counts."""
    (none,) = find_unmet(replace(GOOD, approvals=QuorumStatus()))
    assert none == "no valid approval of manifest d1 by someone other than ana: 0 of 1 approval"
    (one,) = find_unmet(replace(GOOD, approvals=QuorumStatus(2, ("bo",), {"cy": "needs the role approver, now gone"})))
    assert one == "manifest d1 has 1 of 2 approvals; that of cy needs the role approver, now gone"


def test_breaking_the_glass_stands_for_approvals_alone() -> None:
    """Verdict and files are asked as ever."""
    broken = replace(GOOD, approvals=QuorumStatus(), breaks_glass=True)
    assert find_unmet(broken) == ()
    assert len(find_unmet(replace(broken, verdict_passed=False, found_digest="x"))) == 2


def test_breaking_the_glass_does_not_replace_an_acceptance_that_is_void() -> None:
    """It replaces the second person and the quorum; a warning still needs someone who may accept it."""
    broken = replace(GOOD, approvals=QuorumStatus(), breaks_glass=True, accepted=(KNOWN,))
    assert find_unmet(broken) == ()
    assert find_unmet(replace(broken, approvers=frozenset())) == (
        "the warning moved was accepted by bo, who may no longer do so",
    )


def test_whoever_answers_for_a_warning_still_has_to_be_allowed_to() -> None:
    """Today's roles; in single-user mode anyone."""
    accepted = replace(GOOD, accepted=(KNOWN,))
    assert find_unmet(accepted) == ()
    assert find_unmet(replace(accepted, approvers=frozenset())) == (
        "the warning moved was accepted by bo, who may no longer do so",
    )
    assert find_unmet(replace(accepted, approvers=frozenset(), single_user=True)) == ()


def test_every_failure_is_answered() -> None:
    """Approval, acceptance, verdict, files and release."""
    bad = replace(GOOD, approvals=QuorumStatus(), accepted=(KNOWN,), approvers=frozenset(), verdict_passed=False,
                  found_digest="x", unreleased="no person has released this candidate")  # fmt: skip
    assert len(find_unmet(bad)) == 5
