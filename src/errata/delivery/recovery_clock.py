"""The clock of ``recover_within``, which starts with the snapshot of a publication or rollback."""

from __future__ import annotations

from datetime import datetime

from errata.ledger import OutboxItem, PublicationRecord
from errata.model.consumer.recovery_state import RecoveryClock
from errata.model.manifest import Manifest
from errata.model.side_tables import find_landing_pin
from errata.workspace import Workspace


def find_commit_time(workspace: Workspace, publication: PublicationRecord, manifest: Manifest) -> int:
    """When a publication was committed, in milliseconds; when it was settled, if its snapshot has expired."""
    snapshot, table = publication.result_snapshot_id, find_landing_pin(manifest).table
    commits = workspace.engines.history.find_commits(table, [snapshot]) if snapshot else {}
    if snapshot and snapshot in commits:
        return commits[snapshot].at_ms
    return int(datetime.fromisoformat(publication.settled_at or publication.intended_at).timestamp() * 1000)


def find_clock(workspace: Workspace, item: OutboxItem, manifest: Manifest, within_seconds: int) -> RecoveryClock:
    """The clock of an item."""
    publication = workspace.ledger.publications.get(item.pub_id or "")
    return RecoveryClock(find_commit_time(workspace, publication, manifest), within_seconds)
