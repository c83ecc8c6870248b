"""Find publications that are on main but not recorded as landed in the ledger, and close intents left open.

Either the ledger was restored from a backup, or the process died before it recorded the outcome. The table decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errata.errors import RunExpired
from errata.failpoints import failpoint
from errata.model.manifest import TargetPin
from errata.model.table import Commit, DataFile, History, group_by_partition
from errata.ports.publish import SCOPE_PROPERTY, IntentLog, Outcome, PublishTable, TableVersion, scope_digest
from errata.publishing.carry_over import shares_files
from errata.publishing.conflict import find_changed_partitions
from errata.publishing.intent import Intent

if TYPE_CHECKING:
    from errata.publishing.replacement import Replacement


@dataclass(frozen=True, slots=True)
class UnrecordedPublication:
    """A publication or rollback that the ledger lacks, and the files it removed."""

    publication_id: str
    snapshot_id: str
    base_snapshot_id: str
    removed: tuple[DataFile, ...]


def find_unrecorded(
    order: Replacement, version: TableVersion, table: PublishTable, log: IntentLog
) -> UnrecordedPublication | None:
    """The newest commit in these partitions, if it did exactly what is ordered and the ledger lacks it."""
    live = group_by_partition(version.live(order.partitions), order.partitions)
    # the order does not name the files of rewritten or carried-over rows, so they cannot be compared
    if order.rewrite or shares_files(order.target) or find_changed_partitions(order.add, live):
        return None
    history = version.history(order.base_snapshot_id, order.partitions)
    n = next((n for n, commit in enumerate(history.commits) if _is_in_scope(commit)), None)
    if n is None:
        return None
    commit, base = history.commits[n], _find_parent(history, n, order.base_snapshot_id)
    publication_id = commit.summary.get("errata.publication", "")
    ordered = {"errata.run": order.run_id, "errata.kind": order.kind, SCOPE_PROPERTY: scope_digest(order.partitions)}
    if not base or log.is_recorded(publication_id) or any(commit.summary.get(key) != ordered[key] for key in ordered):
        return None
    try:
        removed = table.files_of(order.target, base, order.partitions)
    except RunExpired:
        return None
    return UnrecordedPublication(publication_id, commit.snapshot_id, base, removed)


def find_landed_by_files(
    version: TableVersion, publication_id: str, partitions: Sequence[str], intent: Intent
) -> str | None:
    """Main's head, if it has every file the intent adds and none that it removes; else None."""
    added, removed = (
        {file.path for files in sets.values() for file in files if file.content == "data"}
        for sets in (intent.add, intent.remove)
    )
    live = {file.path for file in version.live(partitions)}
    if not added or not added <= live or removed & live:
        return None
    # a later publication of the run may have added the same files, unknown to a ledger restored from a backup
    history = version.history(intent.base_snapshot_id or None, partitions)
    found = {commit.summary.get("errata.publication") for commit in history.commits if _is_in_scope(commit)}
    return version.snapshot_id if found <= {None, publication_id} else None


def close_intent(
    target: TargetPin,
    publication_id: str,
    partitions: Sequence[str],
    table: PublishTable,
    log: IntentLog,
    *,
    reason: str,
    intent: Intent | None = None,
) -> str | None:
    """Close an open intent: read the table, fence, read again, record. Returns the snapshot if it had landed.

    ``intent`` is one that was left open for long: its tag and snapshot may have expired, and then
    the live files decide.
    """
    found = table.find_outcome(target, publication_id)
    if found.outcome is Outcome.ABSENT:
        # without the fence a commit still in flight could land after it was recorded as abandoned
        table.fence(target, publication_id)
        failpoint("settle.after_fence")
        found = table.find_outcome(target, publication_id)
    landed = found.snapshot_id if found.outcome is Outcome.LANDED else None
    if landed is None and intent is not None:
        version = table.version(target)
        # a table that was dropped and created again has nothing that was published before
        is_same_table = version.table_uuid == target.table_uuid
        landed = find_landed_by_files(version, publication_id, partitions, intent) if is_same_table else None
    if landed is None:
        log.record_abandoned(publication_id, reason)
    else:
        log.record_committed(publication_id, landed)
    return landed


def _is_in_scope(commit: Commit) -> bool:
    return commit.touches_everything or bool(commit.touched)


def _find_parent(history: History, n: int, base: str | None) -> str | None:
    if n + 1 < len(history.commits):
        return history.commits[n + 1].snapshot_id
    return base if history.complete else None
