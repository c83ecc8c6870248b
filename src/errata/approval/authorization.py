"""Authorise a publication: check every precondition again, with current roles and a release that is still valid.

A person who publishes without a release gives one implicitly. A service account needs a release, or a product that
publishes unattended when its gate is clean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from errata.approval.break_glass import owe_alarm, require_break_glass
from errata.approval.permissions import has_role, is_requester, is_single_user, refuse_requester, require_role
from errata.approval.quorum import evaluate_quorum, format_approve_hint
from errata.approval.release import (
    PUBLISHABLE_STATES,
    JudgedCandidate,
    SignedWarning,
    audit_refusal,
    explain_void_release,
    find_release_cutoff,
    find_valid_release,
    load_judged_candidate,
    not_validated_error,
    publishes_itself,
    refuse_checking_run,
)
from errata.approval.standing import is_standing_valid
from errata.approval.suggestion import complete_commands
from errata.approval.wave_release import explain_person_needed
from errata.errors import ApprovalRefused
from errata.failpoints import failpoint
from errata.gate.candidate import digest_candidate
from errata.ledger import CandidateRecord, ReleaseRecord, RunRecord
from errata.model.approval import QuorumStatus
from errata.model.audit import Actor
from errata.model.product import Role
from errata.model.run import RunState, is_clean
from errata.model.table import DataFile
from errata.model.waves import list_waves
from errata.workspace import RunContext, Workspace


@dataclass(frozen=True, slots=True)
class Authorization:
    """What may be published, and the release that allows it."""

    candidate: CandidateRecord
    files: tuple[DataFile, ...]
    release: ReleaseRecord
    told: dict[str, Any]  # recorded with the intent


def require_publisher(workspace: Workspace, actor: Actor, run: RunRecord, break_glass: str | None) -> None:
    """Require someone who may publish this run: a publisher who did not ask for it, or one who breaks the glass."""
    if break_glass is not None:
        require_break_glass(workspace, actor, break_glass, "publish", run.run_id)
        return
    require_role(workspace, actor, (Role.PUBLISHER,), "publish", run.run_id)
    # a standing approval is the decision of others, so that the account that planned the run may publish it
    if workspace.ledger.standing.find_used(run.run_id) is None:
        refuse_requester(workspace, actor, run.planned_by, "publish", run.run_id)


def can_publish_unattended(workspace: Workspace, actor: Actor, run_id: str) -> bool:
    """Whether the actor may publish this validated run without a release.

    Narrates the reason when the product allows it but this run or this actor does not qualify.
    """
    run = workspace.ledger.runs.get(run_id)
    found = load_judged_candidate(workspace, run)
    if run.state is not RunState.VALIDATED or found is None:
        return False
    if not publishes_itself(workspace, workspace.ledger.runs.manifest(run.run_id, actor)):
        return False
    if not is_clean(found.verdict.checks):
        workspace.narrate("not published by itself: the gate warned, so a person releases it")
        return False
    may = has_role(workspace.project, actor.person, (Role.PUBLISHER,))
    if not may or is_requester(workspace.project, actor.person, run.planned_by):
        why = "asked for it" if may else "is no publisher"
        told = f"not published by itself: {actor.person} {why}; next: errata publish {run.run_id}"
        workspace.narrate(complete_commands(workspace, actor, told))
        return False
    return True


def require_unattended(workspace: Workspace, actor: Actor, run_id: str) -> None:
    """Refuse, before any work, an actor who may not publish this run or a product that needs a release by a person."""
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.PUBLISHER,), "run --publish", run.run_id)
    manifest = workspace.ledger.runs.manifest(run.run_id, actor)
    refuse_checking_run(workspace, actor, run, manifest, "run --publish")
    refuse_requester(workspace, actor, run.planned_by, "publish", run.run_id)
    if publishes_itself(workspace, manifest) or len(list_waves(manifest)) > 1:
        return  # a wave that is not released waits, while later ones are computed
    error = ApprovalRefused(
        f"run --publish of {run.run_id} was refused; expected a product with publish.manual false, as it was planned "
        "and as it is now; found one that a person releases",
        state="nothing was changed",
        hint=f"errata run {run.run_id} --validate; then a person: errata release {run.run_id}",
    )
    raise audit_refusal(workspace, actor, run, "run --publish", error)


def explain_unreleased(context: RunContext) -> str:
    """Why this judged run or wave would not be published without a person now; empty if it would. Reads only."""
    found = load_judged_candidate(context.workspace, context.run)
    if found is None or context.run.state not in PUBLISHABLE_STATES:
        return "it has not passed its gate"
    standing = find_valid_release(context.workspace, context.run, context.manifest, found)
    return _find_authority(context, found, standing, breaks_glass=False, by_itself=True)[1]


@dataclass(frozen=True, slots=True)
class _Authority:
    """What could be published now, and by which release; nothing of it is recorded yet."""

    found: JudgedCandidate
    files: tuple[DataFile, ...]
    release: ReleaseRecord | None  # a valid one that was given before
    kind: Literal["publish", "automatic"]


def require_authority(
    context: RunContext, *, looked_at: str | None = None, break_glass: str = "", by_itself: bool = False
) -> _Authority:
    """Refuse a publication with all unmet preconditions at once; refusals are audited, and nothing else is recorded."""
    refuse_checking_run(context.workspace, context.actor, context.run, context.manifest, "publish")
    found = load_judged_candidate(context.workspace, context.run)
    if context.run.state not in PUBLISHABLE_STATES or found is None or found.candidate.snapshot_id is None:
        raise audit_refusal(
            context.workspace, context.actor, context.run, "publish", not_validated_error(context.run, "publish", found)
        )
    if looked_at is not None and looked_at != found.subject.digest:
        raise audit_refusal(
            context.workspace, context.actor, context.run, "publish", _stale_digest_error(context.run, looked_at)
        )
    files = context.engines.publishing.files_of(
        context.manifest.target.staging, found.candidate.snapshot_id, context.manifest.partitions
    )  # fmt: skip
    standing = find_valid_release(context.workspace, context.run, context.manifest, found)
    kind, unreleased = _find_authority(context, found, standing, breaks_glass=bool(break_glass), by_itself=by_itself)
    _require_preconditions(context, found, files, unreleased, breaks_glass=bool(break_glass))
    return _Authority(found, files, standing, kind)


def authorize_publication(
    context: RunContext, *, looked_at: str | None = None, break_glass: str = "", by_itself: bool = False
) -> Authorization:
    """Authorise a publication now, and record the release that it rests on; refused as by ``require_authority``."""
    # nothing is recorded until every precondition holds: a refused publication must not leave a release behind
    found = require_authority(context, looked_at=looked_at, break_glass=break_glass, by_itself=by_itself)
    candidate, record = found.found.candidate, found.release
    if record is None or break_glass:
        record, _ = context.ledger.releases.record(
            context.run_id, found.found.subject.content, candidate_n=candidate.n, person=context.actor.person,
            kind=found.kind, actor=context.actor, break_glass=break_glass,
            since=find_release_cutoff(context.workspace, context.manifest),
            owes=owe_alarm(context.workspace, break_glass),
        )  # fmt: skip
        failpoint("publish.after_release")
    return Authorization(candidate, found.files, record, _intent_fields(record, found.found, context.actor))


def _require_preconditions(
    context: RunContext, found: JudgedCandidate, files: tuple[DataFile, ...], unreleased: str, *, breaks_glass: bool
) -> None:
    """Check every precondition against the current state; refuse with all that fail, and audit the refusal."""
    stands = evaluate_quorum(context.workspace, context.run, context.manifest)
    problems = find_unmet(
        Preconditions(
            manifest_digest=context.run.manifest_digest,
            requested_by=context.manifest.requested_by,
            approvals=stands,
            approvers=frozenset(context.workspace.project.list_with_role(Role.APPROVER)),
            accepted=found.accepted,
            verdict_passed=found.verdict.passed,
            candidate_digest=found.candidate.digest,
            found_digest=digest_candidate(context.manifest, files),
            unreleased=unreleased,
            single_user=is_single_user(context.workspace.project, context.manifest),
            breaks_glass=breaks_glass,
        )
    )
    if not problems:
        return
    hint = f"errata show {context.run_id}"
    if unreleased:
        hint = f"errata release {context.run_id}"
    if not stands.is_met:
        hint = format_approve_hint(context.workspace, context.run, stands)
    error = ApprovalRefused(
        f"publish of {context.run_id} was refused: {'; '.join(problems)}",
        state="main is unchanged; the staged output is kept",
        hint=hint,
        problems=list(problems),
    )
    raise audit_refusal(context.workspace, context.actor, context.run, "publish", error)


def _stale_digest_error(run: RunRecord, looked_at: str) -> ApprovalRefused:
    """Publishing releases implicitly, so the publisher must have seen the current report."""
    return ApprovalRefused(
        f"publish of {run.run_id} was refused; {looked_at} is not the digest of what would be published: it was judged "
        "or assembled again meanwhile",
        state="main is unchanged; the staged output is kept",
        hint=f"errata show {run.run_id}; then errata publish {run.run_id}",
    )


def _find_authority(
    context: RunContext, found: JudgedCandidate, standing: ReleaseRecord | None, *, breaks_glass: bool, by_itself: bool
) -> tuple[Literal["publish", "automatic"], str]:
    """The kind of release this publication rests on, and why it is not sufficient (empty when it is)."""
    is_person = not context.workspace.project.is_service(context.actor.person)
    is_person = is_person and not is_requester(context.workspace.project, context.actor.person, context.run.planned_by)
    if breaks_glass or standing is not None or (is_person and not by_itself):
        return "publish", ""
    itself = publishes_itself(context.workspace, context.manifest) or is_standing_valid(
        context.workspace, context.run, context.manifest
    )
    if itself and is_clean(found.verdict.checks):
        return "automatic", ""
    waves = context.manifest.publish.waves
    if waves is not None and waves.release == "first" and context.wave is not None and context.wave.n > 1:
        why = explain_person_needed(context, found)
        return "automatic", f"wave {context.wave.n} waits for a person: {why}" if why else ""
    # a release of another wave is none of this one
    mine = list(context.run.partitions)
    rows = [row for row in context.ledger.releases.list(context.run_id) if list(row.subject["partitions"]) == mine]
    if rows:
        said = (
            f"the release by {rows[-1].person} no longer counts: "
            f"{explain_void_release(context.workspace, context.run, context.manifest, found, rows[-1])}"
        )
    else:
        said = "no person has released this candidate"
    if itself:
        said += "; it does not publish by itself, because the gate warned"
    return "automatic", said


def _intent_fields(record: ReleaseRecord, found: JudgedCandidate, actor: Actor) -> dict[str, Any]:
    # the release holds who and why; the intent only refers to it
    return {
        "release": record.release_id,
        "release_digest": record.digest,
        "verdict": found.verdict.audit_seq,
        "single_user": actor.single_user,
    }


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Everything a publication depends on, read again right before the intent."""

    manifest_digest: str
    requested_by: str
    approvals: QuorumStatus
    approvers: frozenset[str]  # people who may currently approve and accept warnings
    accepted: tuple[SignedWarning, ...]
    verdict_passed: bool  # the latest verdict, over the latest candidate
    candidate_digest: str
    found_digest: str  # of the files that the candidate holds now
    unreleased: str = ""  # why no release allows it; empty when a person or a clean gate does
    single_user: bool = False
    breaks_glass: bool = False  # replaces the second person and the quorum, nothing else


def find_unmet(facts: Preconditions) -> tuple[str, ...]:
    """Why this may not be published; empty when it may."""
    problems: list[str] = []
    if not facts.approvals.is_met and not facts.breaks_glass:
        problems.append(_describe_missing_approvals(facts))
    problems += _find_void_acceptances(facts.accepted, facts)
    if not facts.verdict_passed:
        problems.append("the latest verdict does not pass the latest candidate")
    if facts.candidate_digest != facts.found_digest:
        problems.append(
            f"the candidate is not what was judged: expected {facts.candidate_digest}, found {facts.found_digest}"
        )
    if facts.unreleased:
        problems.append(facts.unreleased)
    return tuple(problems)


def _describe_missing_approvals(facts: Preconditions) -> str:
    lacking = "; ".join(facts.approvals.missing)
    if facts.approvals.counted or facts.approvals.quorum > 1:
        return f"manifest {facts.manifest_digest} has {lacking}"
    return (
        f"no valid approval of manifest {facts.manifest_digest} by someone other than {facts.requested_by}: {lacking}"
    )


def _find_void_acceptances(accepted: Iterable[SignedWarning], facts: Preconditions) -> list[str]:
    """Warnings accepted by a person who may no longer accept them."""
    if facts.single_user:
        return []
    return [
        f"the warning {one.check} was accepted by {one.person}, who may no longer do so"
        for one in accepted
        if one.person not in facts.approvers
    ]
