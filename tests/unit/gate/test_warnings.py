"""Accepted warnings: which of them a verdict rests on."""

from __future__ import annotations

from pathlib import Path

from errata.canonical import digest_of
from errata.gate.warnings import find_verdict_acceptances
from errata.model.audit import Actor
from support.office import WARNED, office

BO = Actor("bo", "u", "h")


def test_a_verdict_rests_on_the_acceptance_of_its_own_findings(tmp_path: Path):
    """The same person accepted other numbers of the same rule since; what is released is what was judged."""
    made = office(tmp_path)
    found = digest_of([[WARNED["partition"], WARNED["value"], WARNED["message"]]])
    for why, findings in (("known campaign", found), ("the other numbers, too", "f" * 64)):
        made.ledger.approvals.accept_warning(made.run.run_id, "moved", why, "bo", BO, findings)
    made.judged({**WARNED, "accepted_by": "bo"})
    assert [one.why for one in find_verdict_acceptances(made.workspace, made.run)] == ["known campaign"]
    made.ledger.close()
