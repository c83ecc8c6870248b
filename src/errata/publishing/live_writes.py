"""Live writes into the partitions of a run, noticed between plan and publication from table metadata; no JVM.

What is noticed refuses nothing: ``publish`` decides, on the version that it commits on. It is recorded once for each
commit, so that a person who approves, or asks for the status, knows early that work may be in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from errata.canonical import plain, typed
from errata.ledger import PartitionState, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import oldest_first
from errata.model.run import FINAL, RunState
from errata.model.side_tables import is_beside
from errata.model.table import Commit
from errata.publishing.carry_over import shares_files
from errata.publishing.conflict import Judgement, differing, judge
from errata.publishing.expected_files import replacement
from errata.publishing.replacement import Replacement, first_line
from errata.views import LiveWriteView
from errata.workspace import Desk

SEEN = "conflict.seen"


def notice_live_writes(
    desk: Desk, actor: Actor, run: RunRecord, manifest: Manifest, seen_by: str, *, known_head: str | None = None
) -> str | None:
    """Look for live writes and record new ones; answers main's head, which need not be looked at again.

    Trouble is said and stops nothing: the look is a courtesy, and the check before the commit is not.
    """
    if run.state in FINAL or run.state is RunState.PUBLISHING or is_beside(manifest.publish):
        return None
    try:
        head = desk.engines.pins.refs(run.table).get("main")
        if head == known_head or head is None:
            return head
        _record(desk, actor, run, seen_by, find_live_writes(desk, run, manifest, head))
    except Exception as error:  # noqa: BLE001  metadata that cannot be read must not hide the state of the run
        desk.narrate(f"live writes into {run.table} were not looked for: {first_line(error)}")
        return None
    return head


def find_live_writes(desk: Desk, run: RunRecord, manifest: Manifest, head: str) -> tuple[LiveWriteView, ...]:
    """Commits of others, newest first, into partitions that are still to be published; compaction is none."""
    states, target = desk.ledger.partition_states(run.run_id), manifest.target
    scope = tuple(name for name in manifest.partitions if states[name] is PartitionState.UNPUBLISHED)
    order = replacement(desk, run, manifest, scope)
    if not scope or {order.rebased.get(name, order.base_snapshot_id) for name in scope} == {head}:
        return ()
    facts = desk.engines.targets.read_target(target.table, target.column, target.grain, scope)
    verdict = _judged(desk, run, order, differing(order.expected, facts.expected))
    found: dict[str, list[str]] = {}
    commits: dict[str, Commit] = {}
    for name, written in verdict.written.items():
        for commit in written:
            commits[commit.snapshot_id] = commit
            found.setdefault(commit.snapshot_id, []).append(name)
    told = [_view(commit, found[number], target) for number, commit in commits.items()]
    # where partitions share files, a commit to those files says nothing, and compaction even less
    unclear = [name for name in verdict.unclear if not shares_files(target) or verdict.suspects.get(name)]
    if unclear:
        told.append(LiveWriteView(head, "", "", "", oldest_first(target.grain, unclear)))
    return tuple(sorted(told, key=lambda one: one.at, reverse=True))


def _judged(desk: Desk, run: RunRecord, order: Replacement, changed: Sequence[str]) -> Judgement:
    target, verdict = order.target, Judgement()
    own = frozenset(one.pub_id for one in desk.ledger.publications(run.run_id))
    for base, names in order.by_base(changed).items():
        history = desk.engines.history.commits(target.table, target.column, target.grain, names, since=base)
        verdict = verdict.and_of(judge(names, history, own, shares_files=shares_files(target)))
    return verdict


def _view(commit: Commit, names: Sequence[str], target: TargetPin) -> LiveWriteView:
    at = datetime.fromtimestamp(commit.at_ms / 1000, UTC).isoformat(timespec="seconds")
    partitions = oldest_first(target.grain, names)
    return LiveWriteView(commit.snapshot_id, at, commit.application, commit.operation, partitions)


def _record(desk: Desk, actor: Actor, run: RunRecord, seen_by: str, found: Sequence[LiveWriteView]) -> None:
    """Put on the record what was not seen before; once for each commit, whoever sees it."""
    known = {one.snapshot_id for one in _recorded(desk, run)}
    new = [one for one in found if one.snapshot_id not in known]
    if new:
        names = sorted({name for one in new for name in one.partitions})
        commits = [{key: value for key, value in plain(one).items() if not key.startswith("seen")} for one in new]
        desk.ledger.note(run.run_id, actor, SEEN, {"seen_by": seen_by, "partitions": names, "commits": commits})


def live_writes_of(desk: Desk, run: RunRecord) -> tuple[LiveWriteView, ...]:
    """What was noticed of this run so far, oldest first; what a rebase has taken in is no concern any more."""
    taken_in = {number for rebase in desk.ledger.rebase_facts(run.run_id) for number in rebase["snapshots"]}
    return tuple(one for one in _recorded(desk, run) if one.snapshot_id not in taken_in)


def _recorded(desk: Desk, run: RunRecord) -> list[LiveWriteView]:
    return [
        replace(typed(LiveWriteView, commit), seen_at=entry.at, seen_by=str(entry.body["seen_by"]))
        for entry in desk.ledger.audit_log(run.run_id, actions=(SEEN,))
        for commit in entry.body.get("commits", ())  # entries of before have only partitions
    ]
