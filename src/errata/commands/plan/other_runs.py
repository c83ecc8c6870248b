"""Other runs that a plan has to know: those that may change its table, and those that tell what it will cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from errata.approval.reservations import list_reservations
from errata.ledger import PartitionState, RunRecord
from errata.model.kind import find_kind
from errata.model.product import Product
from errata.model.run import ACTIVE, WITHOUT_RESULT, AttemptState, ChunkState, RunState
from errata.planning.estimate import count_busy_seconds, count_worker_cores
from errata.ports.tables import ActiveRun, PastRun
from errata.text.numbers import format_moment
from errata.workspace import Workspace


def list_reserving(workspace: Workspace, table: str) -> list[ActiveRun]:
    """Campaigns that keep partitions of the table for members that have not started."""
    return [
        ActiveRun(
            one.campaign_id,
            "",
            f"reserved until {format_moment(one.until)} UTC",
            table,
            frozenset(one.partitions),
            "campaign",
        )
        for one in list_reservations(workspace, table)
    ]


def list_active_runs(
    workspace: Workspace, table: str, supersede: str | None, partitions: Sequence[str]
) -> list[ActiveRun]:
    """Active runs that may change the table, as seen by a plan for these partitions that supersedes ``supersede``.

    A superseded run no longer claims the partitions of its successor, so only the last run of a chain must be named.
    It claims them again if its successor ended without a result.
    """
    known = {run.run_id: run for run in workspace.ledger.runs.list()}
    runs = [
        run
        for run in known.values()
        if run.table == table and run.state in ACTIVE and find_kind(run.kind or "").changes_table
    ]
    given_up: dict[str, frozenset[str]] = {}
    replacing = [(supersede, partitions)]
    replacing += [(run.supersedes, run.partitions) for run in known.values() if run.state not in WITHOUT_RESULT]
    for older, scope in replacing:
        for run_id, names in _iterate_replaced_runs(known, older, frozenset(scope)):
            given_up[run_id] = given_up.get(run_id, frozenset()) | names
    return [
        ActiveRun(
            run.run_id, run.manifest_digest, run.state.value, run.table,
            _find_claimed_partitions(workspace, run) - given_up.get(run.run_id, frozenset()),
        )
        for run in runs
    ]  # fmt: skip


def _iterate_replaced_runs(
    known: Mapping[str, RunRecord], older: str | None, scope: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Follow a chain of superseded runs, each with the partitions that it shares with all later ones."""
    while older is not None and older in known:
        scope &= frozenset(known[older].partitions)
        yield older, scope
        older = known[older].supersedes


def _find_claimed_partitions(workspace: Workspace, run: RunRecord) -> frozenset[str]:
    """Partitions that a run will still change; those it has already published are free for other runs."""
    if run.state is not RunState.PART_PUBLISHED:
        return frozenset(run.partitions)
    fates = workspace.ledger.partitions.states(run.run_id)
    return frozenset(name for name, fate in fates.items() if fate is PartitionState.UNPUBLISHED)


def list_past_runs(workspace: Workspace, product: Product) -> list[PastRun]:
    """Measured cost of the last published runs: the time spent on chunks, times the cores of each worker."""
    cores = count_worker_cores(workspace.project, product)
    states = {RunState.PUBLISHED, RunState.PART_PUBLISHED, RunState.SUPERSEDED}
    found = []
    for run in workspace.ledger.runs.list(product=product.name, states=states)[:5]:
        spans: dict[Any, list[tuple[float, float]]] = {}
        for attempt in workspace.ledger.progress.attempts(run.run_id):
            if attempt.state is AttemptState.ADOPTED and attempt.ended_at:
                span = (_parse_instant(attempt.started_at), _parse_instant(attempt.ended_at))
                spans.setdefault((attempt.owner.host, attempt.owner.pid, attempt.owner.started), []).append(span)
        if spans:
            chunks = [chunk for chunk in workspace.ledger.progress.chunks(run.run_id) if chunk.state is ChunkState.DONE]
            busy = sum(count_busy_seconds(each) for each in spans.values())
            found.append(
                PastRun(
                    run.run_id,
                    sum(chunk.bytes for chunk in chunks),
                    busy * cores,
                    sum(chunk.rows for chunk in chunks),
                    len(run.partitions),
                    len(chunks),
                    cores,
                )
            )
    return found


def _parse_instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
