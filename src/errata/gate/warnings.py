"""Accepted warnings: an approver accepts specific findings, not a rule by name.

An acceptance holds the digest of its findings: partitions, values and messages, which contain the thresholds. It counts
for a verdict only while the rule gives exactly those warnings; a new candidate with other numbers, or another
threshold, has to be accepted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from errata.canonical import digest_of
from errata.errors import UsageError
from errata.gate.verdict.acceptance import format_accept_command
from errata.gate.verdict.findings import BLOCK, WARN

if TYPE_CHECKING:
    from errata.gate.verdict.judge import Verdict
    from errata.ledger import RunRecord, VerdictRecord, WarningAcceptance
    from errata.model.audit import Actor
    from errata.workspace import Workspace


def accept_warnings(
    workspace: Workspace, actor: Actor, run: RunRecord, accept: Mapping[str, str], unaided: Verdict
) -> None:
    """Record accepted warnings. Only an existing warning can be accepted, with a reason; a block never can."""
    warned = sorted({check.name for check in unaided.checks if check.level == WARN})
    for check, why in accept.items():
        if check not in warned:
            raise _not_a_warning_error(run, check, warned, unaided)
        if not why.strip():
            raise UsageError(f"acceptance of {check!r} was refused; expected CHECK=WHY, because the reason is kept")
    for check, why in accept.items():
        workspace.ledger.approvals.accept_warning(
            run.run_id, check, why, actor.person, actor, _digest_findings(unaided, check, run.wave)
        )


def _not_a_warning_error(run: RunRecord, check: str, warned: list[str], unaided: Verdict) -> UsageError:
    look = f"look at it: errata diff {run.run_id}"
    if any(one.name == check and one.level == BLOCK for one in unaided.checks):
        return UsageError(
            f"acceptance of {check!r} was refused; this check blocks, and only a warning can be accepted",
            state="nothing was changed",
            hint=f"{look}\nthen correct the cause and plan again: "
            f'errata plan {run.product} … --supersede {run.run_id} --reason "…"',
        )
    return UsageError(
        f"acceptance of {check!r} was refused; expected a warning of this candidate: "
        f"{', '.join(warned) or 'there is none'}",
        state="nothing was changed",
        hint=format_accept_command(run.run_id, warned) if warned else look,
    )


def find_valid_acceptances(workspace: Workspace, run: RunRecord, unaided: Verdict) -> dict[str, str]:
    """Rules whose current findings were accepted exactly → the person who accepted them."""
    return {
        one.check: one.person
        for one in workspace.ledger.approvals.accepted_warnings(run.run_id)
        if one.findings and one.findings == _digest_findings(unaided, one.check, run.wave)
    }


def find_verdict_acceptances(workspace: Workspace, run: RunRecord) -> tuple[WarningAcceptance, ...]:
    """Acceptances that the newest verdict is based on."""
    # most runs have none, and a verdict has thousands of checks
    if not workspace.ledger.approvals.accepted_warnings(run.run_id):
        return ()
    verdict = workspace.ledger.candidates.latest_verdict(run.run_id, run.partitions)
    return () if verdict is None else list_acceptances_of(workspace, run, verdict)


def list_acceptances_of(workspace: Workspace, run: RunRecord, verdict: VerdictRecord) -> tuple[WarningAcceptance, ...]:
    """Acceptances that a verdict on the run, or on its wave, is based on."""
    accepted = workspace.ledger.approvals.accepted_warnings(run.run_id)
    if not accepted:
        return ()
    used = {(check["name"], check.get("accepted_by")) for check in verdict.checks}
    found = {
        name: _digest_warnings((_read_finding(check) for check in verdict.checks if check["name"] == name), run.wave)
        for name, _ in used
    }
    given = [one for one in accepted if (one.check, one.person) in used]
    # the same person may have accepted other findings of this rule before or since: the last match counts
    given.sort(key=lambda one: one.findings == found[one.check])
    return tuple({(one.check, one.person): one for one in given}.values())


def _read_finding(check: Mapping[str, Any]) -> tuple[str, list[Any]]:
    return str(check.get("level")), [check.get("partition"), check.get("value"), check.get("message")]


def _digest_findings(unaided: Verdict, name: str, wave: int | None) -> str:
    found = ((c.level, [c.partition, c.value, c.message]) for c in unaided.checks if c.name == name)
    return _digest_warnings(found, wave)


def _digest_warnings(checks: Iterable[tuple[str, list[Any]]], wave: int | None) -> str:
    """Digest of a rule's warnings; empty when it has none. The same words about another wave are other warnings."""
    warned = [told for level, told in checks if level == WARN]
    if not warned:
        return ""
    return digest_of(warned if wave is None else {"wave": wave, "warned": warned})
