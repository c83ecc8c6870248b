"""`errata diff`: compare the candidate with the content of main that it was assembled against."""

from __future__ import annotations

from collections.abc import Sequence

from errata.errors import StateRefused
from errata.gate.diff.candidate_diff import compare_candidate, require_candidate
from errata.model.audit import Actor
from errata.model.partition import format_partition_list, format_ranges
from errata.publishing.selection import select_partitions
from errata.publishing.waves import narrow_to
from errata.views.diff import DiffView
from errata.workspace import Workspace


def diff(
    workspace: Workspace,
    actor: Actor,
    run_id: str,
    partitions: str | Sequence[str] | None,
    sample: int,
    wave: int | None = None,
) -> DiffView:
    """Compare old and new rows of a run, or of its next wave, that has a candidate."""
    context = narrow_to(workspace.open_run(run_id, actor), partitions, wave)
    run, manifest = context.run, context.manifest
    candidate = require_candidate(workspace, run, "diff")
    asked, within = select_partitions(manifest, partitions), candidate.detail["rows"]
    scope = tuple(name for name in asked if name in within)
    if not scope:
        raise StateRefused(
            f"diff of {run.run_id} was refused; {format_ranges(manifest.target.grain, asked)} was not "
            "computed, expected "
            f"partitions of its canary: {format_ranges(manifest.target.grain, within)}",
            state="nothing was changed",
            hint=f"errata diff {run.run_id} --partitions {format_partition_list(manifest.target.grain, within)}",
        )
    return compare_candidate(context, candidate, scope, sample)
