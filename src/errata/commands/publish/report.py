"""Report: all that a controller decides by, gathered once: plan, verdict, acceptances, diff, what happens next."""

from __future__ import annotations

from collections.abc import Sequence

from errata.approval.release import release_digest
from errata.commands.look.status import show, status
from errata.commands.publish.validate import recorded_verdict
from errata.errors import RunExpired, StateRefused
from errata.gate.diff.candidate_diff import compare, judged_candidate
from errata.gate.warnings import accepted_in_verdict
from errata.ledger import CandidateRecord, PublicationRecord, RunRecord, VerdictRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.run import PublicationState, RunState
from errata.publishing.selection import chosen
from errata.views import StatusView
from errata.views.report import AcceptedWarning, Release, ReportView
from errata.workspace import Desk


def review(desk: Desk, actor: Actor, run_id: str, partitions: str | Sequence[str] | None, sample: int) -> ReportView:
    """Everything about a run that has been judged. The diff is computed once, here; nothing is changed."""
    run = desk.ledger.run(run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    candidate = judged_candidate(desk, run, "report")
    verdict = desk.ledger.latest_verdict(run.run_id)
    if verdict is None:
        raise StateRefused(
            f"report of {run.run_id} was refused; its candidate is not judged yet ({run.state})",
            state="nothing was changed",
            hint=f"errata validate {run.run_id}",
        )
    scope = tuple(name for name in chosen(manifest, partitions) if name in candidate.detail["rows"])
    status_view = status(desk, actor, run.run_id)
    notes = list(status_view.noticed)
    try:
        found = compare(desk, run, manifest, candidate, scope, sample)
    except RunExpired as gone:
        found = None
        notes.append(f"rows can no longer be compared: {gone.message}")
    return ReportView(
        run_id=run.run_id,
        state=run.state.value,
        plan=show(desk, actor, run.run_id),
        verdict=recorded_verdict(desk, run, verdict, candidate),
        judged_by=verdict.person,
        judged_at=verdict.at,
        partitions=scope,
        accepted=tuple(
            AcceptedWarning(one.check, one.why, one.person, one.at) for one in accepted_in_verdict(desk, run)
        ),
        releases=tuple(_release(p) for p in desk.ledger.publications(run.run_id) if _landed(p)),
        diff=found,
        next=_next(run, status_view),
        undo=manifest.rollback_window,
        digests={**_digests(run, manifest, candidate, verdict), "release": release_digest(desk, run) or ""},
        made_at=desk.now().isoformat(timespec="seconds"),
        notes=tuple(notes),
        groups=status_view.groups,
    )


def _landed(publication: PublicationRecord) -> bool:
    return publication.state is PublicationState.COMMITTED


def _release(publication: PublicationRecord) -> Release:
    return Release(
        publication.kind,
        publication.partitions,
        publication.person,
        publication.reason,
        publication.settled_at or publication.intended_at,
        publication.result_snapshot_id,
    )


def _next(run: RunRecord, status: StatusView) -> tuple[str, ...]:
    if run.state is RunState.REJECTED:
        return (
            f'errata validate {run.run_id} --accept CHECK="why it is right"',
            f'errata plan {run.product} … --supersede {run.run_id} --reason "…"',
        )
    return (status.next,) if status.next else ()


def _digests(run: RunRecord, manifest: Manifest, candidate: CandidateRecord, verdict: VerdictRecord) -> dict[str, str]:
    """What the page is bound to: change any of it and the digests no longer fit."""
    return {
        "run manifest": run.manifest_digest,
        "candidate": candidate.digest,
        "candidate snapshot": candidate.snapshot_id or "",
        "compared with snapshot": candidate.base_snapshot_id or "",
        "rules and acceptances": verdict.thresholds_digest,
        "code": manifest.code.zip_digest,
        "audit entry of the verdict": f"{verdict.audit_seq}",
    }
