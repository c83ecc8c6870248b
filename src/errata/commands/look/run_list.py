"""Runs as lines of a list, for ``errata status`` and ``errata runs``.

Apart from the status of one run, because a list needs a fraction of the modules.
"""

from __future__ import annotations

from collections.abc import Iterable

from errata.ledger import ChunkCounts, RunRecord
from errata.views import RunCounts, RunLine, StatusView
from errata.workspace import Workspace


def list_runs(workspace: Workspace) -> StatusView:
    """All runs of the ledger."""
    runs = workspace.ledger.read_together(lambda: run_lines(workspace, workspace.ledger.runs.list()))
    return StatusView(runs=runs, single_user=workspace.project.single_user)


def run_lines(workspace: Workspace, runs: Iterable[RunRecord]) -> tuple[RunLine, ...]:
    """Runs as lines of a list."""
    counts = workspace.ledger.progress.counts_by_run()
    return tuple(_run_line(run, counts.get(run.run_id, ChunkCounts())) for run in runs)


def _run_line(run: RunRecord, counts: ChunkCounts) -> RunLine:
    ordered = run.partitions
    return RunLine(
        run.run_id, run.product, run.state.value, len(ordered), ordered[0], ordered[-1], run.planned_by, run.reason,
        run.planned_at, counts_view(counts),
    )  # fmt: skip


def counts_view(counts: ChunkCounts) -> RunCounts:
    """Number of chunks by state."""
    return RunCounts(counts.total, counts.done, counts.running, counts.failed, counts.quarantined, counts.pending)
