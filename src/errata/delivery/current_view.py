"""Pay ``view``: let the view of current output show what is accepted now."""

from __future__ import annotations

from collections.abc import Mapping

from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Paid
from errata.model.manifest import Manifest
from errata.model.side_tables import VERSION_COLUMNS
from errata.publishing.intent import Intent
from errata.publishing.sql.accepted_view import build_accepted_sql, build_swapped_sql
from errata.workspace import Workspace


def refresh_view(workspace: Workspace, actor: Actor, item: OutboxItem) -> Paid:
    """Update the view until it matches the ledger: another publication may land after the ledger was read."""
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    view, shown = item.payload["view"], ""
    while (query := _build_query(workspace, item.table, manifest)) != shown:
        workspace.engines.writer.show(view, query)
        shown = query
    return Paid({"view": view})


def _build_query(workspace: Workspace, table: str, manifest: Manifest) -> str:
    """Query of the view, built from the ledger alone."""
    numbers: dict[str, int] = {}
    details: dict[str, Mapping[str, int]] = {}
    for name, record in workspace.ledger.partitions.accepted(table).items():
        if record.run_id is None:
            continue
        origin = record.origin_pub_id or record.pub_id
        if origin not in details:
            details[origin] = Intent.from_dict(workspace.ledger.publications.detail(origin)).versions or {}
        if name in details[origin]:
            numbers[name] = details[origin][name]
    versions, target = manifest.publish.versions or "", manifest.target
    if manifest.publish.mode == "swap_view":
        return build_swapped_sql(versions, target, tuple(target.columns), numbers)
    return build_accepted_sql(versions, target, (*target.columns, *VERSION_COLUMNS), numbers)
