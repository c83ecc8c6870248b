"""`errata report`: everything a controller needs to decide: plan, verdict, accepted warnings, diff, next command."""

from __future__ import annotations

from collections.abc import Sequence

from errata.approval.release import find_release_digest
from errata.commands.look.status import build_status
from errata.commands.plan.show import show_plan
from errata.commands.publish.validate import recorded_verdict_view
from errata.commands.situation import suggest_steps
from errata.commands.upkeep.note import list_notes
from errata.delivery.copies.run_copies import summarize_run_copies
from errata.errors import RunExpired, StateRefused
from errata.gate.diff.candidate_diff import compare_candidate, require_candidate
from errata.gate.origin_counts import read_origin_counts
from errata.gate.warnings import find_verdict_acceptances
from errata.ledger import CandidateRecord, PublicationRecord, RunRecord, VerdictRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.run import PublicationState
from errata.publishing.selection import select_partitions
from errata.publishing.waves import narrow_to
from errata.views.report import AcceptedWarning, ReportedPublication, ReportView
from errata.workspace import Workspace


def build_report(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    partitions: str | Sequence[str] | None,
    sample: int,
    wave: int | None = None,
) -> ReportView:
    """Report on a judged run; no table is changed."""
    context = narrow_to(workspace.open_run(run_id, actor), partitions, wave)
    run, manifest = context.run, context.manifest
    candidate = require_candidate(workspace, run, "report")
    verdict = workspace.ledger.candidates.latest_verdict(run.run_id, run.partitions)
    if verdict is None:
        raise StateRefused(
            f"report of {run.run_id} was refused; its candidate is not judged yet ({run.state})",
            state="nothing was changed",
            hint=f"errata validate {run.run_id}",
        )
    scope = tuple(name for name in select_partitions(manifest, partitions) if name in candidate.detail["rows"])
    status_view = build_status(workspace, actor, run.run_id)
    notes = list(status_view.noticed)
    try:
        found = compare_candidate(context, candidate, scope, sample)
    except RunExpired as gone:
        found = None
        notes.append(f"rows can no longer be compared: {gone.message}")
    return ReportView(
        run_id=run.run_id,
        state=run.state.value,
        plan=show_plan(workspace, actor, run.run_id),
        verdict=recorded_verdict_view(workspace, run, verdict, candidate),
        judged_by=verdict.person,
        judged_at=verdict.at,
        partitions=scope,
        accepted=tuple(
            AcceptedWarning(one.check, one.why, one.person, one.at) for one in find_verdict_acceptances(workspace, run)
        ),
        releases=tuple(
            _report_publication(p) for p in workspace.ledger.publications.list(run.run_id) if _is_committed(p)
        ),
        diff=found,
        next=suggest_steps(workspace, actor, run.run_id, is_reviewed=True),
        undo=manifest.rollback_window,
        digests={
            **_collect_digests(run, manifest, candidate, verdict),
            "release": find_release_digest(workspace, run) or "",
        },
        made_at=workspace.now().isoformat(timespec="seconds"),
        notes=tuple(notes),
        kept_notes=list_notes(workspace, run),
        waves=status_view.waves,
        turn=status_view.turn,
        copies=summarize_run_copies(workspace, run.run_id),
        origins=read_origin_counts(workspace, run.run_id, manifest, scope),
    )


def _is_committed(publication: PublicationRecord) -> bool:
    return publication.state is PublicationState.COMMITTED


def _report_publication(publication: PublicationRecord) -> ReportedPublication:
    return ReportedPublication(
        publication.kind,
        publication.partitions,
        publication.person,
        publication.reason,
        publication.settled_at or publication.intended_at,
        publication.result_snapshot_id,
    )


def _collect_digests(
    run: RunRecord, manifest: Manifest, candidate: CandidateRecord, verdict: VerdictRecord
) -> dict[str, str]:
    """Digests of everything the report is based on; they no longer match if any of it changes."""
    return {
        "run manifest": run.manifest_digest,
        "candidate": candidate.digest,
        "candidate snapshot": candidate.snapshot_id or "",
        "compared with snapshot": candidate.base_snapshot_id or "",
        "rules and acceptances": verdict.thresholds_digest,
        "code": manifest.code.zip_digest,
        "audit entry of the verdict": f"{verdict.audit_seq}",
    }
