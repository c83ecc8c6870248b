"""`errata release`: a person's decision on candidate, verdict and accepted warnings. It touches no table."""

from __future__ import annotations

from collections import Counter

from errata.approval.permissions import refuse_requester, require_person, require_role
from errata.approval.release import (
    PUBLISHABLE_STATES,
    JudgedCandidate,
    audit_refusal,
    find_release_cutoff,
    load_judged_candidate,
    not_validated_error,
    refuse_checking_run,
    released_view,
)
from errata.canonical import parse_digest
from errata.commands.situation import hint_next_step
from errata.errors import ApprovalRefused
from errata.model.audit import Actor
from errata.model.product import Role
from errata.publishing.waves import focus_on_wave
from errata.views import ReleaseView
from errata.workspace import RunContext, Workspace


@hint_next_step
def release_run(
    workspace: Workspace, actor: Actor, run_id: str, digest: str | None, note: str, wave: int | None = None
) -> ReleaseView:
    """Release the judged candidate of the run, or of its next wave; without a digest, refuse and show what it signs."""
    run = workspace.ledger.runs.get(run_id)
    require_role(workspace, actor, (Role.PUBLISHER,), "release", run.run_id, persons=True)
    require_person(workspace, actor, (Role.PUBLISHER,), "release", run.run_id)
    refuse_requester(workspace, actor, run.planned_by, "release", run.run_id)
    context = focus_on_wave(workspace.open_run(run.run_id, actor), wave)
    run, manifest = context.run, context.manifest
    refuse_checking_run(workspace, actor, run, manifest, "release")
    found = load_judged_candidate(workspace, run)
    if run.state not in PUBLISHABLE_STATES or found is None or not found.verdict.passed:
        raise audit_refusal(workspace, actor, run, "release", not_validated_error(run, "release", found))
    given = parse_digest(digest or "")
    if not given:
        # the person only asks what would be signed, so the refusal is not audited
        raise ApprovalRefused(
            f"release of {run.run_id} was refused; expected the digest of what is signed, found none",
            state="nothing was changed; above is what would be signed",
            hint=f"look at it, then on a terminal: errata release {run.run_id}; a program passes --digest",
            release=_release_view(context, found),
        )
    if given != found.subject.digest:
        # without the right digest: the person takes it from what it covers
        error = ApprovalRefused(
            f"release of {run.run_id} was refused; {given} is not the digest of what a release covers now",
            state="nothing was changed",
            hint=f"look at what it covers: errata show {run.run_id}",
            run_id=run.run_id,
        )
        raise audit_refusal(workspace, actor, run, "release", error)
    _, already = workspace.ledger.releases.record(
        run.run_id, found.subject.content, candidate_n=found.candidate.n, person=actor.person, kind="release",
        actor=actor, note=note, since=find_release_cutoff(workspace, manifest),
    )  # fmt: skip
    return _release_view(context, found, already=already)


def _release_view(context: RunContext, found: JudgedCandidate, *, already: bool = False) -> ReleaseView:
    return ReleaseView(
        run_id=context.run_id,
        state=context.widen().run.state.value,
        already=already,
        release_digest=found.subject.digest,
        manifest_digest=context.run.manifest_digest,
        candidate=found.candidate.branch,
        candidate_digest=found.candidate.digest,
        snapshot_id=found.candidate.snapshot_id or "",
        partitions=context.run.partitions,
        checks=dict(Counter(str(check.get("level")) for check in found.verdict.checks)),
        accepted=tuple({"check": a.check, "why": a.why, "person": a.person} for a in found.accepted),
        release=released_view(context.workspace, context.run, context.manifest),
        grain=context.manifest.target.grain.value,
        product=context.run.product,
        requested_by=context.run.planned_by,
        single_user=context.actor.single_user,
    )
