"""Diff: the candidate against what main held when it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from errata.errors import StateRefused
from errata.executor.desk import Desk
from errata.executor.scope import chosen
from errata.executor.views import untouched_partitions
from errata.ledger import CandidateState
from errata.model.audit import Actor
from errata.model.partition import fold_text
from errata.validator.diff import Diff
from errata.validator.ports import Measurement

__all__ = ["DiffView", "diff"]


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff with what it is about."""

    run_id: str
    product: str
    snapshot_id: str
    base_snapshot_id: str | None
    grain: str
    untouched_partitions: int
    key: tuple[str, ...]
    diff: Diff


def diff(desk: Desk, actor: Actor, run_id: str, partitions: str | Sequence[str] | None, sample: int) -> DiffView:
    """Old against new, for a run that has a candidate."""
    run = desk.ledger.run(run_id)
    manifest = desk.ledger.manifest(run.run_id, actor)
    # what was made of a canary that passed is no candidate of the run
    made = [one for one in desk.ledger.candidates(run.run_id) if one.state is CandidateState.MADE]
    candidate = made[-1] if made else None
    if candidate is None or candidate.snapshot_id is None:
        raise StateRefused(
            f"diff of {run.run_id} was refused; it has no candidate yet ({run.state})",
            state="nothing was changed",
            hint=f"errata validate {run.run_id}",
        )
    asked, within = chosen(manifest, partitions), candidate.detail["rows"]
    scope = tuple(name for name in asked if name in within)
    if not scope:
        raise StateRefused(
            f"diff of {run.run_id} was refused; {fold_text(manifest.target.grain, asked)} was not computed, expected "
            f"partitions of its canary: {fold_text(manifest.target.grain, within)}",
            state="nothing was changed",
        )
    stored = desk.ledger.measurements(run.run_id, candidate.n)
    found = desk.engines.measurer.diff(
        manifest,
        candidate.snapshot_id,
        candidate.base_snapshot_id,
        scope,
        sample,
        tuple(Measurement(m.scope, m.partition or "", m.name, m.value, m.exact) for m in stored),
    )
    return DiffView(
        run.run_id,
        run.product,
        candidate.snapshot_id,
        candidate.base_snapshot_id,
        manifest.target.grain.value,
        untouched_partitions(manifest),
        manifest.target.key,
        found,
    )
