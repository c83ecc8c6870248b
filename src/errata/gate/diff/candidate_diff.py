"""Compare a candidate with what main held when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.errors import StateRefused
from errata.gate.diff.kept_diff import KEPT_ROWS, DiffKeeper, KeptDiff
from errata.gate.diff.movements import build_metric_moves
from errata.ledger import CandidateRecord, CandidateState, RunRecord
from errata.ledger.records import covers
from errata.model.diff import SAME, Diff, PartitionDiff, SchemaDiff
from errata.model.manifest import Manifest, count_untouched_partitions
from errata.ports.measure import CANDIDATE, ROW_COUNT, Measurement
from errata.views.diff import DiffView
from errata.workspace import RunContext, Workspace


def require_candidate(workspace: Workspace, run: RunRecord, action: str) -> CandidateRecord:
    """The run's newest candidate; refuses if there is none. A candidate of a canary does not count."""
    made = [one for one in workspace.ledger.candidates.list(run.run_id) if one.state is CandidateState.MADE]
    # a canary that was rejected has not all partitions of its run
    made = [one for one in made if covers(one.detail, run.partitions)] or made
    if not made or made[-1].snapshot_id is None:
        raise StateRefused(
            f"{action} of {run.run_id} was refused; it has no candidate yet ({run.state})",
            state="nothing was changed",
            hint=f"errata validate {run.run_id}",
        )
    return made[-1]


def compare_candidate(context: RunContext, candidate: CandidateRecord, scope: Sequence[str], sample: int) -> DiffView:
    """Compare the candidate with the prior output, or read the diff that an earlier look kept."""
    manifest, target = context.manifest, context.manifest.target
    stored = context.ledger.candidates.measurements(context.run_id, candidate.n)
    found = find_candidate_diff(context, candidate, scope, sample, stored)
    return DiffView(
        context.run_id,
        context.run.product,
        candidate.snapshot_id or "",
        candidate.base_snapshot_id,
        target.grain.value,
        count_untouched_partitions(manifest),
        target.key,
        replace(found.diff, sample=found.diff.sample[:sample]),
        build_metric_moves(manifest, stored, scope),
        found.outside,
    )


def find_candidate_diff(
    context: RunContext,
    candidate: CandidateRecord,
    scope: Sequence[str],
    sample: int,
    stored: tuple[Measurement, ...],
) -> KeptDiff:
    """The kept diff if it has enough sample rows, otherwise a new one; columns classified since are masked as well."""
    if candidate.snapshot_id == candidate.base_snapshot_id:
        return _describe_same(scope, stored)
    masked = list_masked_columns(context.workspace, context.manifest)
    keeper = DiffKeeper(context, candidate, masked, scope)
    kept = keeper.load()
    if kept is not None and kept.has_rows(sample):
        return kept
    masking = replace(context.manifest, classified=masked)
    snapshot, base = candidate.snapshot_id or "", candidate.base_snapshot_id
    rows = max(sample, KEPT_ROWS) if keeper.is_allowed else sample
    context.engines.start_early()
    # table metadata, which is read while Spark starts
    outside = context.engines.outside.outside(masking.target, base, snapshot, masking.partitions)
    diff = context.engines.measurer.diff(masking, snapshot, base, scope, rows, stored)
    if kept is None:
        keeper.keep(KeptDiff(replace(diff, sample=diff.sample[:KEPT_ROWS]), outside))
    return KeptDiff(diff, outside)


def _describe_same(scope: Sequence[str], stored: Sequence[Measurement]) -> KeptDiff:
    """The diff of main with itself, for a run that judged main as it is; nothing needs to be read for it."""
    rows = {one.partition: int(one.value or 0) for one in stored if (one.scope, one.name) == (CANDIDATE, ROW_COUNT)}
    counts = [(name, rows.get(name, 0)) for name in scope]
    partitions = tuple(PartitionDiff(name, count, count, 0, 0, 0, count, SAME) for name, count in counts)
    return KeptDiff(Diff(SchemaDiff(), partitions, {}, notes=("nothing was computed: main is judged as it is",)), None)


def list_masked_columns(workspace: Workspace, manifest: Manifest) -> tuple[str, ...]:
    """Columns to mask: those of the run manifest and those currently in the product file."""
    product = workspace.project.products.get(manifest.product)
    return tuple(sorted({*manifest.classified, *(product.classified if product else ())}))
