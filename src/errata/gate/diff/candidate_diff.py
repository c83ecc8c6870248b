"""Compare a candidate with what main held when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.errors import StateRefused
from errata.gate.diff.movements import build_metric_moves
from errata.ledger import CandidateRecord, CandidateState, RunRecord
from errata.model.manifest import Manifest, count_untouched_partitions
from errata.views.diff import DiffView
from errata.workspace import Workspace


def require_candidate(workspace: Workspace, run: RunRecord, action: str) -> CandidateRecord:
    """The run's newest candidate; refuses if there is none. A candidate of a canary does not count."""
    made = [one for one in workspace.ledger.candidates.list(run.run_id) if one.state is CandidateState.MADE]
    if not made or made[-1].snapshot_id is None:
        raise StateRefused(
            f"{action} of {run.run_id} was refused; it has no candidate yet ({run.state})",
            state="nothing was changed",
            hint=f"errata validate {run.run_id}",
        )
    return made[-1]


def compare_candidate(
    workspace: Workspace,
    run: RunRecord,
    manifest: Manifest,
    candidate: CandidateRecord,
    scope: Sequence[str],
    sample: int,
) -> DiffView:
    """Compare the candidate with the prior output; columns classified after the plan are masked as well."""
    snapshot, base, target = candidate.snapshot_id or "", candidate.base_snapshot_id, manifest.target
    stored = workspace.ledger.candidates.measurements(run.run_id, candidate.n)
    masking = replace(manifest, classified=list_masked_columns(workspace, manifest))
    return DiffView(
        run.run_id,
        run.product,
        snapshot,
        base,
        target.grain.value,
        count_untouched_partitions(manifest),
        target.key,
        workspace.engines.measurer.diff(masking, snapshot, base, scope, sample, stored),
        build_metric_moves(manifest, stored, scope),
        workspace.engines.outside.outside(target, base, snapshot, manifest.partitions),
    )


def list_masked_columns(workspace: Workspace, manifest: Manifest) -> tuple[str, ...]:
    """Columns to mask: those of the run manifest and those currently in the product file."""
    product = workspace.project.products.get(manifest.product)
    return tuple(sorted({*manifest.classified, *(product.classified if product else ())}))
