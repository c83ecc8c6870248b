"""`errata runs` and `errata history`: list runs, current runs at a time, and commits to a partition.

Reads only, and never starts a JVM.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from errata.commands.look.run_list import run_lines
from errata.errors import NotFound, UsageError
from errata.ledger import AcceptanceRecord
from errata.model.partition import EPOCH, parse_partition, sort_oldest_first
from errata.model.run import RunState
from errata.model.table import Commit
from errata.views import AcceptedSpan, CommitsView, CommitView, RunsView
from errata.workspace import Workspace

MAX_COMMITS = 20


def list_runs(
    workspace: Workspace, what: str | None, states: Collection[str], person: str | None, since: datetime | None
) -> RunsView:
    """Runs that match the filters, newest first."""
    wanted = {_parse_state(name) for name in states} or None
    table = _resolve_table(workspace, what)
    found = [
        run
        for run in workspace.ledger.runs.list(states=wanted)
        if (table is None or table in (run.table, run.product))
        and (person is None or workspace.project.is_same_person(run.planned_by, person))
        and (since is None or datetime.fromisoformat(run.planned_at) >= since)
    ]
    return RunsView(run_lines(workspace, found))


def find_current_runs(workspace: Workspace, moment: datetime, what: str | None) -> RunsView:
    """The run that was current in each partition at that time, grouped by publication."""
    table = _resolve_table(workspace, what)
    tables = {run.table for run in workspace.ledger.runs.list() if table in (run.table, run.product)} if table else None
    rows = [row for row in workspace.ledger.partitions.accepted_at(moment) if tables is None or row.table in tables]
    by_deed: dict[tuple[str, str, str | None], list[AcceptanceRecord]] = {}
    for row in rows:
        by_deed.setdefault((row.table, row.pub_id, row.run_id), []).append(row)
    spans = [_build_span(workspace, deed) for deed in by_deed.values()]
    spans.sort(key=lambda span: (span.table, span.partitions[0], span.at))
    told = moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return RunsView(accepted_at=told, accepted=tuple(spans))


def _build_span(workspace: Workspace, rows: list[AcceptanceRecord]) -> AcceptedSpan:
    first = rows[0]
    publication = workspace.ledger.publications.get(first.pub_id)
    run = workspace.ledger.runs.get(publication.run_id)
    grain = workspace.ledger.runs.manifest(run.run_id).target.grain
    return AcceptedSpan(
        product=run.product, table=first.table, grain=grain.value,
        partitions=sort_oldest_first(grain, [row.partition for row in rows]), run_id=first.run_id, action=first.action,
        at=first.at, person=publication.person, publication_id=first.pub_id,
    )  # fmt: skip


def list_commits(workspace: Workspace, table: str, partition: str, most: int = MAX_COMMITS) -> CommitsView:
    """Commits to a partition, newest first, each with the snapshot right before it."""
    product = workspace.product_of(table)
    target = product.target
    name = parse_partition(target.grain, partition)
    history = workspace.engines.history.commits(target.table, target.column, target.grain, (name,), most)
    accepted = workspace.ledger.partitions.accepted(target.table, (name,)).get(name)
    truth = workspace.ledger.publications.get(accepted.pub_id).result_snapshot_id if accepted else None
    shown = tuple(replace(_commit_view(one, name), accepted=one.snapshot_id == truth) for one in history.commits)
    return CommitsView(
        target.table, product.name, name, shown, history.complete, _suggest_restore(product.name, name, shown)
    )


def _commit_view(commit: Commit, partition: str) -> CommitView:
    touch = commit.touched.get(partition)
    run = commit.summary.get("errata.run")
    writer = "errata" if run else "compaction" if commit.operation == "replace" else "job"
    return CommitView(
        snapshot_id=commit.snapshot_id,
        at=(EPOCH + timedelta(milliseconds=commit.at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        operation=commit.operation,
        writer=writer,
        application=commit.application,
        added_rows=touch.added_rows if touch else 0,
        removed_rows=touch.removed_rows if touch else 0,
        deleted_rows=touch.added_deletes if touch else 0,
        before=commit.parent_id,
        run_id=run,
        publication_id=commit.summary.get("errata.publication"),
        kind=commit.summary.get("errata.kind"),
    )


def _suggest_restore(product: str, partition: str, shown: tuple[CommitView, ...]) -> str:
    """Command that undoes the newest write if it is by a job outside Errata; otherwise empty."""
    writes = [one for one in shown if one.writer != "compaction"]
    if not writes or writes[0].writer != "job":
        return ""
    newest = writes[0]
    for older in writes[1:]:
        # some writers overwrite with two commits; do not restore the empty partition in between
        if older.operation != "delete" or (older.writer, older.application) != ("job", newest.application):
            break
        newest = older
    if newest.before is None:
        return ""
    return f'errata plan {product} --partitions {partition} --restore {newest.before} --reason "…"'


def _parse_state(name: str) -> RunState:
    known = [state.value for state in RunState]
    text = name.replace("-", "_").replace(" ", "_")
    if text not in known:
        near = get_close_matches(text, known, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"state {name!r} is not known; expected one of {', '.join(known)}{meant}")
    return RunState(text)


def _resolve_table(workspace: Workspace, what: str | None) -> str | None:
    """Check that the project or the ledger knows this product or table; raises ``NotFound`` otherwise."""
    if what is None:
        return None
    known = {name for run in workspace.ledger.runs.list() for name in (run.product, run.table)}
    known |= {name for one in workspace.project.products.values() for name in (one.name, one.target.table)}
    if what not in known:
        near = get_close_matches(what, sorted(known), 1)
        told = f"did you mean {near[0]}?" if near else "errata runs"
        raise NotFound(f"{what!r} is not a product or table of this project", hint=told)
    return what
