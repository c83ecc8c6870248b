"""Runs as lines of a list, for ``errata status`` and ``errata runs``.

Apart from the status of one run, because a list needs a fraction of the modules.
"""

from __future__ import annotations

from collections.abc import Iterable

from errata.ledger import CampaignRecord, ChunkCounts, RunRecord
from errata.model.consumer.outbox import ItemState
from errata.views import RunCounts, RunLine, StatusView
from errata.views.status import CampaignLine, ReservationView
from errata.workspace import Workspace


def list_runs(workspace: Workspace) -> StatusView:
    """All runs of the ledger."""
    return workspace.ledger.read_together(lambda: _list_runs(workspace))


def _list_runs(workspace: Workspace) -> StatusView:
    campaigns, items = workspace.ledger.campaigns.list(), workspace.ledger.outbox.count_open()
    return StatusView(
        runs=run_lines(workspace, workspace.ledger.runs.list()),
        campaigns=tuple(_campaign_line(workspace, one) for one in campaigns),
        reserved=_list_reservations(workspace) if campaigns else (),
        single_user=workspace.project.single_user,
        owed_items=items.get(ItemState.OWED, 0),
        failed_items=items.get(ItemState.FAILED, 0),
    )


def _campaign_line(workspace: Workspace, record: CampaignRecord) -> CampaignLine:
    state = "expired" if record.state == "open" and record.is_expired else record.state
    members = len(workspace.ledger.campaigns.manifest(record.campaign_id).members)
    return CampaignLine(
        record.campaign_id, record.product, state, members, record.planned_by, record.reason, record.planned_at
    )


def _list_reservations(workspace: Workspace) -> tuple[ReservationView, ...]:
    # imported here: most projects have no campaign, and a list needs a fraction of the modules
    from errata.approval.reservations import list_reservations

    return list_reservations(workspace)


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
