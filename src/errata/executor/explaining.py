"""Why a number changed: what happened to a partition, by runs and by live jobs. Reading only, and never a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from errata.executor.desk import Desk
from errata.executor.differing import classified_in
from errata.executor.glass import broken_in
from errata.executor.histories import MOST_COMMITS, governed
from errata.executor.judged import released_by
from errata.executor.rebases import rebases_told
from errata.executor.reporting import release_of
from errata.ledger import AcceptanceRecord, PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.partition import EPOCH, parse
from errata.model.product import Product
from errata.model.refs import undo_branch
from errata.model.table import Commit, History, Touch
from errata.model.views import BreakGlassView, HistoryView, WhyView
from errata.validator.diff import masked_pair
from errata.validator.ports import CANDIDATE, PRIOR, ROW_COUNT

__all__ = ["why"]

Values = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Deed:
    """One publication or rollback of the partition, with what it belongs to."""

    record: AcceptanceRecord
    publication: PublicationRecord
    run: RunRecord
    manifest: Manifest

    @property
    def is_rollback(self) -> bool:
        return self.record.action == "rolled_back"


def why(desk: Desk, actor: Actor, table: str, partition: str, key: Mapping[str, str]) -> WhyView:
    """Everything that happened to a partition since Errata first published it, and what it was before."""
    product = governed(desk, table)
    target = product.target
    name = parse(target.grain, partition)
    deeds = [_deed(desk, actor, record) for record in desk.ledger.acceptance_history(target.table, name)]
    commits = _commits(desk, product, name, deeds)
    events = [_event(desk, deed, name, key) for deed in deeds]
    history = [*_origin(desk, deeds, name, events), *_in_order(desk, deeds, events, commits, name, key)]
    note = "" if deeds else "no run has ever published this partition; what it holds was written by the live pipeline"
    if not commits.complete:
        note = f"{note}\n".lstrip() + f"older live writes are not shown: errata history {target.table} {name} --most N"
    return WhyView(target.table, name, dict(key), tuple(history), note)


def _deed(desk: Desk, actor: Actor, record: AcceptanceRecord) -> _Deed:
    publication = desk.ledger.publication(record.pub_id)
    run = desk.ledger.run(publication.run_id)
    return _Deed(record, publication, run, desk.ledger.manifest(run.run_id, actor))


def _event(desk: Desk, deed: _Deed, partition: str, key: Mapping[str, str]) -> HistoryView:
    """A publication with those who decided over it, or a rollback with whoever did it: nobody approved that one."""
    publication, run, manifest = deed.publication, deed.run, deed.manifest
    before, after = _values(desk, deed, partition, key)
    event = HistoryView(
        action=deed.record.action, at=deed.record.at, run_id=run.run_id, reason=publication.reason, requested_by=None,
        approved_by=None, published_at=deed.record.at, before=before, after=after,
        snapshot_id=publication.result_snapshot_id,
        single_user=bool(publication.release.get("single_user", manifest.single_user)),
    )  # fmt: skip
    if deed.is_rollback:
        return replace(event, rolled_back_by=publication.person)
    approvals = [a.person for a in desk.ledger.approvals(run.run_id) if a.decision == "approved"]
    verdict = desk.ledger.latest_verdict(run.run_id)
    return replace(
        event,
        reason=run.reason,
        requested_by=run.planned_by,
        approved_by=", ".join(approvals) or None,
        manifest_digest=run.manifest_digest,
        published_by=publication.person,
        checks_passed=sum(1 for c in verdict.checks if c["level"] == "ok") if verdict else None,
        released_by=released_by(release_of(publication, desk.ledger.releases(run.run_id))),
        break_glass=_broken(desk, publication),
        restored=manifest.restored.snapshot_id if manifest.restored else None,
        rebased=_rebased(desk, run, partition),
    )


def _rebased(desk: Desk, run: RunRecord, partition: str) -> str | None:
    found = [one for one in rebases_told(desk, run.run_id) if partition in one["partitions"]]
    return str(found[-1]["base_snapshot_id"]) if found else None


def _broken(desk: Desk, publication: PublicationRecord) -> BreakGlassView | None:
    """Whether someone decided alone, up to this publication."""
    until = publication.settled_at or publication.intended_at
    found = [one for one in broken_in(desk, publication.run_id) if one.at <= until]
    return found[-1] if found else None


def _origin(
    desk: Desk, deeds: Sequence[_Deed], partition: str, events: Sequence[HistoryView]
) -> tuple[HistoryView, ...]:
    """What live had written when the first run came."""
    if not deeds:
        return ()
    first = deeds[0]
    origin = desk.engines.rows.origin(first.manifest.target, first.publication.base_snapshot_id, partition)
    live = HistoryView(
        action="live", at=origin.at if origin else "", run_id=None, reason=None, requested_by=None, approved_by=None,
        published_at=None, before=None, after=events[0].before, snapshot_id=origin.snapshot_id if origin else None,
        application=origin.application if origin else None,
    )  # fmt: skip
    return (live,)


def _commits(desk: Desk, product: Product, partition: str, deeds: Sequence[_Deed]) -> History:
    """Commits to the partition since main stood where the first publication found it; all of them without one."""
    target = product.target
    until = deeds[0].publication.base_snapshot_id if deeds else None
    return desk.engines.history.commits(
        target.table, target.column, target.grain, (partition,), MOST_COMMITS, until
    )  # fmt: skip


def _in_order(
    desk: Desk,
    deeds: Sequence[_Deed],
    events: Sequence[HistoryView],
    commits: History,
    partition: str,
    key: Mapping[str, str],
) -> list[HistoryView]:
    """Deeds and live writes, oldest first, as main has them; what main has no more stands at its time."""
    ours = {deed.publication.pub_id: event for deed, event in zip(deeds, events, strict=True)}
    first = _milliseconds(deeds[0].record.at) if deeds else 0
    placed: list[tuple[int, HistoryView]] = []
    at = 0
    for commit in reversed(commits.commits):
        at = max(at, commit.at_ms)  # clocks of writers differ, the order of their commits is certain
        publication = commit.summary.get("errata.publication", "")
        if publication in ours:
            placed.append((at, ours.pop(publication)))
        elif not _is_compaction(commit, partition) and (commits.complete or at >= first):
            placed += [(at, event) for event in _live(desk, deeds, commit, partition, key)]
    placed += [(_milliseconds(event.at), event) for event in ours.values()]
    return [event for _, event in sorted(placed, key=lambda item: item[0])]


def _milliseconds(at: str) -> int:
    return (datetime.fromisoformat(at) - EPOCH) // timedelta(milliseconds=1)


def _is_compaction(commit: Commit, partition: str) -> bool:
    touch = commit.touched.get(partition, Touch())
    return commit.operation == "replace" and touch.added_rows == touch.removed_rows and not touch.added_deletes


def _live(
    desk: Desk, deeds: Sequence[_Deed], commit: Commit, partition: str, key: Mapping[str, str]
) -> tuple[HistoryView, ...]:
    """A write of someone else; nothing where it left the row alone that was asked for."""
    before = after = None
    if key and deeds:
        newest = deeds[-1].manifest
        old = desk.engines.rows.row(newest.target, commit.parent_id, partition, key)
        new = desk.engines.rows.row(newest.target, commit.snapshot_id, partition, key)
        if old == new:
            return ()
        before, after = masked_pair(old, new, classified_in(desk, newest))
    touch, run = commit.touched.get(partition, Touch()), commit.summary.get("errata.run")
    return (
        HistoryView(
            action="live", at=_instant(commit.at_ms), run_id=None, reason=None, requested_by=None, approved_by=None,
            published_at=None, before=before, after=after, snapshot_id=commit.snapshot_id,
            application=f"errata {run}, which this ledger does not have" if run else commit.application,
            added_rows=touch.added_rows, removed_rows=touch.removed_rows, deleted_rows=touch.added_deletes,
        ),
    )  # fmt: skip


def _instant(at_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="seconds")


def _told(desk: Desk, deed: _Deed, partition: str, key: Mapping[str, str]) -> tuple[Values, Values] | None:
    """What the table of corrections says of this key; it outlives every snapshot. None: nothing, so rows are asked."""
    table = deed.manifest.publish.corrections
    if table is None or not set(key) <= set(deed.manifest.target.key):
        return None
    return desk.engines.rows.corrections(table, partition, key).get(deed.publication.pub_id)


def _values(desk: Desk, deed: _Deed, partition: str, key: Mapping[str, str]) -> tuple[Values, Values]:
    """With a key, the row itself; without, the row count and the compared metrics of the partition."""
    publication, manifest, run = deed.publication, deed.manifest, deed.run
    if key and (told := _told(desk, deed, partition, key)):
        return masked_pair(*told, classified_in(desk, manifest))
    if key:
        refs = desk.engines.pins.refs(run.table)
        undo, target = refs.get(undo_branch(publication.pub_id)), manifest.target
        before = desk.engines.rows.row(target, undo, partition, key) if undo else None
        after = desk.engines.rows.row(target, publication.result_snapshot_id, partition, key)
        return masked_pair(before, after, classified_in(desk, manifest))
    candidate = desk.ledger.latest_candidate(run.run_id)
    stored = desk.ledger.measurements(run.run_id, candidate.n) if candidate else ()
    names = {ROW_COUNT, *(f"compare.{rule.name}" for rule in manifest.compare)}
    sides: dict[str, dict[str, Any]] = {PRIOR: {}, CANDIDATE: {}}
    for m in stored:
        if m.partition == partition and m.scope in sides and m.name in names:
            sides[m.scope][m.name.removeprefix("compare.")] = m.value
    prior, candidate_side = sides[PRIOR] or None, sides[CANDIDATE] or None
    return (candidate_side, prior) if deed.is_rollback else (prior, candidate_side)
