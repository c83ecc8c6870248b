"""`errata audit gaps`: commits on governed tables that no run and no registered live job made, since adoption.

Reads the ledger and table metadata, and never starts a JVM. A table is adopted with the first plan of its product.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from errata.ledger import RunRecord
from errata.live_writers.foreign_commits import Answer, Gap, find_foreign_commits, find_gaps, is_maintenance
from errata.model.kind import ATTEST
from errata.model.partition import format_partition_list, sort_oldest_first
from errata.model.product import Product
from errata.model.run import PublicationState, RunState
from errata.model.table import Commit
from errata.views.audit import ForeignCommitView, GapsView, GapView, ProductGapsView
from errata.workspace import Workspace


def list_gaps(workspace: Workspace, product: str | None) -> GapsView:
    """The gaps of one product, or of all of them."""
    wanted = [workspace.product(product)] if product else [*workspace.project.products.values()]
    found = tuple(_list_product_gaps(workspace, one) for one in wanted)
    return GapsView(ok=not any(gap.open for one in found for gap in one.gaps), products=found)


def _list_product_gaps(workspace: Workspace, product: Product) -> ProductGapsView:
    target = product.target
    runs = workspace.ledger.runs.list(product=product.name)
    if not runs:
        return ProductGapsView(product.name, target.table, target.grain.value, None, complete=True)
    first = min(runs, key=lambda run: run.planned_at)
    base = workspace.ledger.runs.manifest(first.run_id).target.base_snapshot_id
    history = workspace.engines.history.commits(target.table, target.column, target.grain, None, since=base)
    commits = tuple(find_foreign_commits(history, _read_publications(workspace, target.table), product.live.jobs))
    needs_all = any(commit.touches_everything for commit in commits)
    partitions = tuple(_read_partitions(workspace, product)) if needs_all else ()
    gaps = find_gaps(commits, history.line, partitions, tuple(_iterate_answers(workspace, product, runs)))
    still_open = sort_oldest_first(target.grain, {name for gap in gaps for name in gap.open})
    return ProductGapsView(
        product=product.name,
        table=target.table,
        grain=target.grain.value,
        adopted_at=first.planned_at,
        complete=history.complete,
        gaps=tuple(_gap_view(product, gap) for gap in gaps),
        maintenance=tuple(_commit_view(product, commit) for commit in commits if is_maintenance(commit)),
        next=_format_attest_command(product, still_open) if still_open else "",
    )


def _read_publications(workspace: Workspace, table: str) -> dict[str, str | None]:
    """Publications and rollbacks on the table: those that landed with their snapshot, open ones with None."""
    landed = (workspace.ledger.publications.get(name) for name in workspace.ledger.publications.list_committed(table))
    unsettled = workspace.ledger.publications.list_open(table)
    return {one.pub_id: one.result_snapshot_id for one in (*landed, *unsettled)}


def _read_partitions(workspace: Workspace, product: Product) -> Iterator[str]:
    target = product.target
    yield from workspace.engines.targets.read_target(target.table, target.column, target.grain, ()).partitions


def _iterate_answers(workspace: Workspace, product: Product, runs: tuple[RunRecord, ...]) -> Iterator[Answer]:
    """Attestations of the table, and the corrections that are current in its partitions."""
    ledger, table = workspace.ledger, product.target.table
    for run in runs:
        manifest = ledger.runs.manifest(run.run_id) if run.state is RunState.ATTESTED else None
        if manifest is not None and manifest.kind == ATTEST:
            yield Answer(run.run_id, manifest.target.base_snapshot_id or "", frozenset(run.partitions))
    for name, row in ledger.partitions.accepted(table).items():
        publication = ledger.publications.get(row.origin_pub_id or row.pub_id) if row.run_id else None
        if row.run_id is None or publication is None or publication.state is not PublicationState.COMMITTED:
            continue
        # a merge keeps the rows that it found, those of a foreign commit included
        if ledger.runs.manifest(row.run_id).publish.merge is None:
            yield Answer(row.run_id, publication.result_snapshot_id or "", frozenset({name}))


def _gap_view(product: Product, gap: Gap) -> GapView:
    grain, told = product.target.grain, _commit_view(product, gap.commit)
    return GapView(
        told.snapshot_id,
        told.at,
        told.application,
        told.operation,
        sort_oldest_first(grain, gap.partitions),
        sort_oldest_first(grain, gap.open),
        dict(gap.closed_by),
        gap.is_whole,
    )


def _commit_view(product: Product, commit: Commit) -> ForeignCommitView:
    at = datetime.fromtimestamp(commit.at_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    partitions = sort_oldest_first(product.target.grain, commit.touched)
    return ForeignCommitView(commit.snapshot_id, at, commit.application, commit.operation, partitions)


def _format_attest_command(product: Product, partitions: tuple[str, ...]) -> str:
    scope = format_partition_list(product.target.grain, partitions)
    return f'errata plan {product.name} --partitions {scope} --kind attest --reason "…"'
