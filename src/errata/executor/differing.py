"""Diff: the candidate against what main held when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from errata.errors import StateRefused
from errata.executor.candidates import stored_measurements
from errata.executor.desk import Desk
from errata.executor.scope import chosen
from errata.executor.views import untouched_partitions
from errata.ledger import CandidateRecord, CandidateState, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.partition import fold_text
from errata.validator.diffview import DiffView
from errata.validator.movements import metric_moves

__all__ = ["DiffView", "classified_in", "compare", "diff", "judged_candidate"]


def diff(desk: Desk, actor: Actor, run_id: str, partitions: str | Sequence[str] | None, sample: int) -> DiffView:
    """Old against new, for a run that has a candidate."""
    run = desk.ledger.run(run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    candidate = judged_candidate(desk, run, "diff")
    asked, within = chosen(manifest, partitions), candidate.detail["rows"]
    scope = tuple(name for name in asked if name in within)
    if not scope:
        raise StateRefused(
            f"diff of {run.run_id} was refused; {fold_text(manifest.target.grain, asked)} was not computed, expected "
            f"partitions of its canary: {fold_text(manifest.target.grain, within)}",
            state="nothing was changed",
        )
    return compare(desk, run, manifest, candidate, scope, sample)


def judged_candidate(desk: Desk, run: RunRecord, action: str) -> CandidateRecord:
    """The candidate of the run; what was made of a canary that passed is none."""
    made = [one for one in desk.ledger.candidates(run.run_id) if one.state is CandidateState.MADE]
    if not made or made[-1].snapshot_id is None:
        raise StateRefused(
            f"{action} of {run.run_id} was refused; it has no candidate yet ({run.state})",
            state="nothing was changed",
            hint=f"errata validate {run.run_id}",
        )
    return made[-1]


def compare(
    desk: Desk, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: Sequence[str], sample: int
) -> DiffView:
    """The diff itself; columns that were classified after the plan are masked as well."""
    snapshot, base, target = candidate.snapshot_id or "", candidate.base_snapshot_id, manifest.target
    stored = stored_measurements(desk, run, candidate)
    masking = replace(manifest, classified=classified_in(desk, manifest))
    return DiffView(
        run.run_id,
        run.product,
        snapshot,
        base,
        target.grain.value,
        untouched_partitions(manifest),
        target.key,
        desk.engines.measurer.diff(masking, snapshot, base, scope, sample, stored),
        metric_moves(manifest, stored, scope),
        desk.engines.outside.outside(target, base, snapshot, manifest.partitions),
    )


def classified_in(desk: Desk, manifest: Manifest) -> tuple[str, ...]:
    """Columns to mask: those of the run manifest, and those of the product file as it is now."""
    product = desk.project.products.get(manifest.product)
    return tuple(sorted({*manifest.classified, *(product.classified if product else ())}))
