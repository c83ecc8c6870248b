"""`errata why`: everything that runs and live jobs did to a partition. Reads only, and never starts a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from errata.approval.break_glass import list_break_glass
from errata.approval.quorum import list_approvals
from errata.approval.release import name_releaser
from errata.commands.look.history import MAX_COMMITS
from errata.commands.look.status import find_release
from errata.commands.look.why_rows import KeyedRows, RowValues, find_keys, find_missing_columns
from errata.delivery.copies.run_copies import list_partition_copies
from errata.gate.diff.candidate_diff import list_masked_columns
from errata.ledger import AcceptanceRecord, PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.diff import mask_pair, mask_row
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import EPOCH, parse_partition
from errata.model.product import Product
from errata.model.refs import WRONG_LEDGER, undo_branch
from errata.model.table import Commit, History, Touch
from errata.ports.measure import CANDIDATE, PRIOR, ROW_COUNT
from errata.ports.tables import Key
from errata.publishing.set_back_detection import find_set_backs
from errata.views import BreakGlassView, HistoryView, RowHistoryView, WhyView
from errata.workspace import Workspace


@dataclass(frozen=True, slots=True)
class _PartitionChange:
    """One publication or rollback of the partition, with its run and manifest."""

    record: AcceptanceRecord
    publication: PublicationRecord
    run: RunRecord
    manifest: Manifest

    @property
    def is_rollback(self) -> bool:
        return self.record.action == "rolled_back"


def explain_partition(
    workspace: Workspace, actor: Actor, table: str, partition: str, key: Mapping[str, str]
) -> WhyView:
    """History of a partition since Errata first published it, and its content before.

    With a key, the history of its row; with a part of a key, the history of each matching row.
    """
    product = workspace.product_of(table)
    target = product.target
    name = parse_partition(target.grain, partition)
    deeds = [
        _load_change(workspace, actor, record) for record in workspace.ledger.partitions.history(target.table, name)
    ]
    commits = _read_commits(workspace, product, name, deeds)
    notes = (
        [] if commits.complete else [f"older live writes are not shown: errata history {target.table} {name} --most N"]
    )
    if not deeds:
        notes.insert(0, _describe_no_publication(commits, name))
    if key and deeds:
        view = _explain_rows(workspace, product, name, deeds, commits, key, notes)
    else:
        view = WhyView(
            target.table, name, dict(key), _build_history(workspace, deeds, commits, name, None), "\n".join(notes)
        )
    set_back = find_set_backs(workspace.ledger, workspace.engines, target.table, (name,))
    copies = list_partition_copies(workspace, target.table, name)
    return replace(view, set_back=set_back[0] if set_back else None, copies=copies)


def _describe_no_publication(commits: History, partition: str) -> str:
    """Who wrote a partition that no run of this ledger has published: the live pipeline, or runs of another ledger."""
    writers = (commit.summary.get("errata.run") for commit in commits.commits if partition in commit.touched)
    unknown = tuple(dict.fromkeys(run for run in writers if run))
    if unknown:
        told = f"{', '.join(unknown)} did, which is not on its record"
        return f"no run of this ledger has published this partition; {told}: {WRONG_LEDGER}"
    if commits.complete and not any(partition in commit.touched for commit in commits.commits):
        return "no run has ever published this partition, and no commit of the table wrote it"
    return "no run has ever published this partition; what it holds was written by the live pipeline"


def _explain_rows(
    workspace: Workspace,
    product: Product,
    partition: str,
    deeds: Sequence[_PartitionChange],
    commits: History,
    asked: Mapping[str, str],
    notes: list[str],
) -> WhyView:
    """History of the row with this key, or of each row that matches a part of a key."""
    target = deeds[-1].manifest.target
    missing = find_missing_columns(product.name, target, asked)
    keys: Sequence[Key] = [asked]
    if missing:
        keys, more = _find_matching_keys(workspace, partition, deeds, commits, asked)
        told = " ".join(f"--key {name}=…" for name in missing)
        notes += [f"only {len(keys)} of the matching rows are shown; {told} narrows them down"] if more else []
    rows = KeyedRows(workspace, target, partition, keys, whole=not missing)
    classified = list_masked_columns(workspace, deeds[-1].manifest)
    found = [
        RowHistoryView(mask_row(key, classified), _build_history(workspace, deeds, commits, partition, (rows, key)))
        for key in keys
    ]
    if rows.repeated:
        notes.append("the key occurs more than once in a snapshot; one of its rows is shown")
    if not found:
        notes.append("no remaining snapshot has a matching row")
    note, single = "\n".join(notes), len(found) == 1
    history = found[0].history if single else ()
    return WhyView(target.table, partition, dict(asked), history, note, () if single else tuple(found))


def _find_matching_keys(
    workspace: Workspace, partition: str, deeds: Sequence[_PartitionChange], commits: History, asked: Mapping[str, str]
) -> tuple[list[Key], bool]:
    """Keys that match, from every state of the partition that can still be read; and whether there may be more."""
    newest = deeds[-1].manifest.target
    snapshots: list[tuple[TargetPin, str | None]] = [(newest, commit.snapshot_id) for commit in commits.commits[:1]]
    corrections: dict[str, TargetPin] = {}
    for deed in reversed(deeds):
        target, table = deed.manifest.target, deed.manifest.publish.corrections
        snapshots += [(target, deed.publication.result_snapshot_id), (target, _find_undo_snapshot(workspace, deed))]
        if table is not None:
            corrections[table] = target
    return find_keys(workspace, partition, asked, snapshots, [(target, table) for table, target in corrections.items()])


def _build_history(
    workspace: Workspace,
    deeds: Sequence[_PartitionChange],
    commits: History,
    partition: str,
    row: tuple[KeyedRows, Key] | None,
) -> tuple[HistoryView, ...]:
    events = [_build_event(workspace, deed, partition, row) for deed in deeds]
    return (
        *_build_origin(workspace, deeds, partition, events),
        *_merge_events(workspace, deeds, events, commits, partition, row),
    )


def _load_change(workspace: Workspace, actor: Actor, record: AcceptanceRecord) -> _PartitionChange:
    publication = workspace.ledger.publications.get(record.pub_id)
    run = workspace.ledger.runs.get(publication.run_id)
    return _PartitionChange(record, publication, run, workspace.ledger.runs.manifest(run.run_id, actor))


def _build_event(
    workspace: Workspace, deed: _PartitionChange, partition: str, row: tuple[KeyedRows, Key] | None
) -> HistoryView:
    """A publication with the people who decided on it, or a rollback with its author: rollbacks need no approval."""
    publication, run, manifest = deed.publication, deed.run, deed.manifest
    before, after = _read_before_after(workspace, deed, partition, row)
    event = HistoryView(
        action=deed.record.action, at=deed.record.at, run_id=run.run_id, reason=publication.reason, requested_by=None,
        approved_by=None, published_at=deed.record.at, before=before, after=after,
        snapshot_id=publication.result_snapshot_id,
        single_user=bool(publication.release.get("single_user", manifest.single_user)),
    )  # fmt: skip
    if deed.is_rollback:
        return replace(event, rolled_back_by=publication.person)
    approvals = [a.person for a in list_approvals(workspace, run) if a.decision == "approved"]
    verdict = workspace.ledger.candidates.latest_verdict(run.run_id, (partition,))
    return replace(
        event,
        reason=run.reason,
        requested_by=run.planned_by,
        approved_by=", ".join(approvals) or None,
        manifest_digest=run.manifest_digest,
        published_by=publication.person,
        checks_passed=sum(1 for c in verdict.checks if c["level"] == "ok") if verdict else None,
        released_by=name_releaser(find_release(publication, workspace.ledger.releases.list(run.run_id))),
        break_glass=_find_break_glass(workspace, publication),
        restored=_name_restored(manifest),
        rebased=_find_rebase(workspace, run, partition),
    )


def _name_restored(manifest: Manifest) -> str | None:
    """What a restore put back: the snapshot, and where it is if not in the target."""
    found = manifest.restored
    if found is None or not found.origin:
        return found.snapshot_id if found else None
    return f"{found.origin} @ {found.snapshot_id}" if found.snapshot_id else found.origin


def _find_rebase(workspace: Workspace, run: RunRecord, partition: str) -> str | None:
    found = [one for one in workspace.ledger.rebases.facts(run.run_id) if partition in one["partitions"]]
    return str(found[-1]["base_snapshot_id"]) if found else None


def _find_break_glass(workspace: Workspace, publication: PublicationRecord) -> BreakGlassView | None:
    """The last break-glass decision up to this publication, if any."""
    until = publication.settled_at or publication.intended_at
    found = [one for one in list_break_glass(workspace, publication.run_id) if one.at <= until]
    return found[-1] if found else None


def _build_origin(
    workspace: Workspace, deeds: Sequence[_PartitionChange], partition: str, events: Sequence[HistoryView]
) -> tuple[HistoryView, ...]:
    """The live write that the first publication replaced."""
    if not deeds:
        return ()
    first = deeds[0]
    origin = workspace.engines.rows.origin(first.manifest.target, first.publication.base_snapshot_id, partition)
    live = HistoryView(
        action="live", at=origin.at if origin else "", run_id=None, reason=None, requested_by=None, approved_by=None,
        published_at=None, before=None, after=events[0].before, snapshot_id=origin.snapshot_id if origin else None,
        application=origin.application if origin else None,
    )  # fmt: skip
    return (live,)


def _read_commits(workspace: Workspace, product: Product, partition: str, deeds: Sequence[_PartitionChange]) -> History:
    """Commits to the partition since the base of the first publication (all commits without one)."""
    target = product.target
    until = deeds[0].publication.base_snapshot_id if deeds else None
    return workspace.engines.history.commits(
        target.table, target.column, target.grain, (partition,), MAX_COMMITS, until
    )  # fmt: skip


def _merge_events(
    workspace: Workspace,
    deeds: Sequence[_PartitionChange],
    events: Sequence[HistoryView],
    commits: History,
    partition: str,
    row: tuple[KeyedRows, Key] | None,
) -> list[HistoryView]:
    """Changes and live writes in the order of main, oldest first; those no longer in main are placed by their time."""
    ours = {deed.publication.pub_id: event for deed, event in zip(deeds, events, strict=True)}
    first = _to_milliseconds(deeds[0].record.at) if deeds else 0
    placed: list[tuple[int, HistoryView]] = []
    at = 0
    for commit in reversed(commits.commits):
        at = max(at, commit.at_ms)  # clocks of writers differ, but the order of commits is certain
        publication = commit.summary.get("errata.publication", "")
        if publication in ours:
            placed.append((at, ours.pop(publication)))
        elif not _is_compaction(commit, partition) and (commits.complete or at >= first):
            placed += [(at, event) for event in _build_live_events(workspace, deeds, commit, partition, row)]
    placed += [(_to_milliseconds(event.at), event) for event in ours.values()]
    return [event for _, event in sorted(placed, key=lambda item: item[0])]


def _to_milliseconds(at: str) -> int:
    return (datetime.fromisoformat(at) - EPOCH) // timedelta(milliseconds=1)


def _is_compaction(commit: Commit, partition: str) -> bool:
    touch = commit.touched.get(partition, Touch())
    return commit.operation == "replace" and touch.added_rows == touch.removed_rows and not touch.added_deletes


def _build_live_events(
    workspace: Workspace,
    deeds: Sequence[_PartitionChange],
    commit: Commit,
    partition: str,
    row: tuple[KeyedRows, Key] | None,
) -> tuple[HistoryView, ...]:
    """Event for a live write; empty if it did not change the requested row."""
    before = after = None
    if row is not None:
        rows, key = row
        newest = deeds[-1].manifest
        old, new = (rows.at(newest.target, snapshot, key) for snapshot in (commit.parent_id, commit.snapshot_id))
        if old == new:
            return ()
        before, after = mask_pair(old, new, list_masked_columns(workspace, newest))
    touch, run = commit.touched.get(partition, Touch()), commit.summary.get("errata.run")
    return (
        HistoryView(
            action="live",
            at=_format_instant(commit.at_ms),
            run_id=None,
            reason=None,
            requested_by=None,
            approved_by=None,
            published_at=None,
            before=before,
            after=after,
            snapshot_id=commit.snapshot_id,
            application=f"errata {run}, which this ledger does not have" if run else commit.application,
            added_rows=touch.added_rows,
            removed_rows=touch.removed_rows,
            deleted_rows=touch.added_deletes,
        ),
    )


def _format_instant(at_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="seconds")


def _find_undo_snapshot(workspace: Workspace, deed: _PartitionChange) -> str | None:
    """The snapshot with the content before the publication, while its undo branch exists."""
    return workspace.engines.pins.refs(deed.run.table).get(undo_branch(deed.publication.pub_id))


def _read_before_after(
    workspace: Workspace, deed: _PartitionChange, partition: str, row: tuple[KeyedRows, Key] | None
) -> tuple[RowValues, RowValues]:
    """Values before and after a change: the row itself, or the partition's row count and compared metrics."""
    publication, manifest, run = deed.publication, deed.manifest, deed.run
    if row is not None:
        rows, key = row
        told = rows.told(manifest.publish.corrections, publication.pub_id, key)
        before, after = told or (
            rows.at(manifest.target, _find_undo_snapshot(workspace, deed), key),
            rows.at(manifest.target, publication.result_snapshot_id, key),
        )
        return mask_pair(before, after, list_masked_columns(workspace, manifest))
    candidate = workspace.ledger.candidates.latest(run.run_id, (partition,))
    stored = workspace.ledger.candidates.measurements(run.run_id, candidate.n) if candidate else ()
    names = {ROW_COUNT, *(f"compare.{rule.name}" for rule in manifest.compare)}
    sides: dict[str, dict[str, Any]] = {PRIOR: {}, CANDIDATE: {}}
    for m in stored:
        if m.partition == partition and m.scope in sides and m.name in names:
            sides[m.scope][m.name.removeprefix("compare.")] = m.value
    prior, candidate_side = sides[PRIOR] or None, sides[CANDIDATE] or None
    return (candidate_side, prior) if deed.is_rollback else (prior, candidate_side)
