"""Detect live writes into the partitions of a run between plan and publication, from table metadata; starts no JVM.

A detected write refuses nothing: ``publish`` decides, on the version that it commits on. Each commit is recorded once,
so that approvers and ``errata status`` show early that work may be in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from errata.canonical import from_plain, to_plain
from errata.ledger import PartitionState, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import sort_oldest_first
from errata.model.run import FINAL, RunState
from errata.model.side_tables import is_side_table_mode
from errata.model.table import Commit, FileSets, History, Touch
from errata.publishing.carry_over import shares_files
from errata.publishing.conflict import PartitionChanges, classify_changes, find_changed_partitions, find_writers
from errata.publishing.expected_files import build_replacement
from errata.publishing.replacement import Replacement
from errata.text.exceptions import first_line
from errata.views import LiveWriteView
from errata.workspace import RunContext, Workspace

LIVE_WRITE_SEEN = "conflict.seen"


def notice_live_writes(context: RunContext, seen_by: str, *, known_head: str | None = None) -> str | None:
    """Look for live writes and record new ones; returns main's head, to pass as ``known_head`` next time.

    Errors are reported and stop nothing: this is early notice only, and publish checks again before its commit.
    """
    if (
        context.run.state in FINAL
        or context.run.state is RunState.PUBLISHING
        or is_side_table_mode(context.manifest.publish)
    ):
        return None
    try:
        head = context.engines.pins.refs(context.run.table).get("main")
        if head == known_head or head is None:
            return head
        _record_new(
            context.workspace,
            context.actor,
            context.run,
            seen_by,
            find_live_writes(context.workspace, context.run, context.manifest, head),
        )
    except Exception as error:  # noqa: BLE001  metadata that cannot be read must not hide the state of the run
        context.workspace.narrate(f"live writes into {context.run.table} were not looked for: {first_line(error)}")
        return None
    return head


def find_live_writes(workspace: Workspace, run: RunRecord, manifest: Manifest, head: str) -> tuple[LiveWriteView, ...]:
    """Commits of other writers into partitions still to be published, newest first, without compaction."""
    states, target = workspace.ledger.partitions.states(run.run_id), manifest.target
    scope = tuple(name for name in manifest.partitions if states[name] is PartitionState.UNPUBLISHED)
    order = build_replacement(workspace, run, manifest, scope)
    if not scope or {order.rebased.get(name, order.base_snapshot_id) for name in scope} == {head}:
        return ()
    facts = workspace.engines.targets.read_target(target.table, target.column, target.grain, scope)
    verdict = _classify_live_changes(workspace, run, order, facts.expected)
    found: dict[str, list[str]] = {}
    commits: dict[str, Commit] = {}
    for name, written in verdict.written.items():
        for commit in written:
            commits[commit.snapshot_id] = commit
            found.setdefault(commit.snapshot_id, []).append(name)
    told = [_live_write_view(commit, found[number], target) for number, commit in commits.items()]
    # where partitions share files, a changed file alone proves no write to this partition
    unclear = [name for name in verdict.unclear if not shares_files(target) or verdict.suspects.get(name)]
    if unclear:
        told.append(LiveWriteView(head, "", "", "", sort_oldest_first(target.grain, unclear)))
    return tuple(sorted(told, key=lambda one: one.at, reverse=True))


def _classify_live_changes(
    workspace: Workspace, run: RunRecord, order: Replacement, live: FileSets
) -> PartitionChanges:
    target, verdict = order.target, PartitionChanges()
    read = partial(workspace.engines.history.commits, target.table, target.column, target.grain)
    own = frozenset(one.pub_id for one in workspace.ledger.publications.list(run.run_id))
    for base, names in order.group_by_base(find_changed_partitions(order.expected, live)).items():
        history = read(names, since=base)
        found = classify_changes(names, history, order.expected, live, own, shares_files=shares_files(target))
        verdict = verdict.combine_with(found)
    # a delete file is a write even where it applies to no live file, so that no file set differs
    deleted: dict[str, tuple[Commit, ...]] = {}
    for base, names in order.group_by_base(order.partitions).items():
        history = read(names, since=base, only_deletes=True)
        deleted |= {name: commits for name in names if (commits := _find_deleting_commits(name, history, own))}
    return verdict.mark_written(deleted)


def _find_deleting_commits(partition: str, history: History, own: frozenset[str]) -> tuple[Commit, ...]:
    return tuple(
        commit
        for commit in find_writers(partition, history, own)
        if commit.operation != "replace" and commit.touched.get(partition, Touch()).added_deletes
    )


def _live_write_view(commit: Commit, names: Sequence[str], target: TargetPin) -> LiveWriteView:
    at = datetime.fromtimestamp(commit.at_ms / 1000, UTC).isoformat(timespec="seconds")
    partitions = sort_oldest_first(target.grain, names)
    run = commit.summary.get("errata.run")  # a publication of another run
    return LiveWriteView(
        commit.snapshot_id, at, f"errata {run}" if run else commit.application, commit.operation, partitions
    )


def _record_new(
    workspace: Workspace, actor: Actor, run: RunRecord, seen_by: str, found: Sequence[LiveWriteView]
) -> None:
    """Record the live writes that were not recorded before, once per commit."""
    known = {one.snapshot_id for one in _read_recorded(workspace, run)}
    new = [one for one in found if one.snapshot_id not in known]
    if new:
        names = sorted({name for one in new for name in one.partitions})
        commits = [{key: value for key, value in to_plain(one).items() if not key.startswith("seen")} for one in new]
        workspace.ledger.audit.note(
            run.run_id, actor, LIVE_WRITE_SEEN, {"seen_by": seen_by, "partitions": names, "commits": commits}
        )


def read_live_writes(workspace: Workspace, run: RunRecord) -> tuple[LiveWriteView, ...]:
    """Live writes recorded for this run, oldest first, without those that a rebase has taken in."""
    taken_in = {number for rebase in workspace.ledger.rebases.facts(run.run_id) for number in rebase["snapshots"]}
    return tuple(one for one in _read_recorded(workspace, run) if one.snapshot_id not in taken_in)


def _read_recorded(workspace: Workspace, run: RunRecord) -> list[LiveWriteView]:
    return [
        replace(from_plain(LiveWriteView, commit), seen_at=entry.at, seen_by=str(entry.body["seen_by"]))
        for entry in workspace.ledger.audit.readable_entries(run.run_id, actions=(LIVE_WRITE_SEEN,))
        for commit in entry.body.get("commits", ())  # older entries have only partitions
    ]
