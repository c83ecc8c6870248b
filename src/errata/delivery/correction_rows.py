"""Pay ``corrections``: write the rows that say what a publication changed, or the reverse of them for a rollback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.errors import RunExpired
from errata.failpoints import failpoint
from errata.gate.measure.names import content_columns
from errata.ledger import OutboxItem, PublicationRecord
from errata.model.audit import Actor
from errata.model.consumer.outbox import Paid
from errata.model.manifest import Manifest
from errata.model.refs import undo_branch
from errata.ports.publish import Stamp
from errata.publishing.intent import Intent
from errata.workspace import Workspace


def write_corrections(workspace: Workspace, actor: Actor, item: OutboxItem) -> Paid:
    """Write the correction rows; the publication's tag makes sure that they land only once."""
    publication = workspace.ledger.publications.get(item.pub_id or "")
    manifest = workspace.ledger.runs.manifest(item.run_id, actor)
    return Paid(_write_rows(workspace, publication, manifest, item.payload))


def _write_rows(
    workspace: Workspace, publication: PublicationRecord, manifest: Manifest, payload: Mapping[str, Any]
) -> Mapping[str, Any]:
    beside, writer, pub_id = workspace.engines.beside, workspace.engines.writer, publication.pub_id
    table, reverses = payload["table"], payload.get("reverses")
    writer.create(manifest.publish.creates)
    if landed := beside.landed(table, pub_id):
        return {"table": table, "snapshot_id": landed}
    place = (table, beside.open_branch(table, pub_id))
    stamp = Stamp(publication.run_id, pub_id, publication.reason, publication.settled_at or "")
    target = manifest.target
    if reverses is not None:
        writer.reversals(place, target.key, reverses, stamp)
    else:
        after = (target.table, publication.result_snapshot_id or "")
        columns = content_columns(manifest)
        try:
            before = _find_prior_snapshot(workspace, publication)
            writer.corrections(place, target, before, after, publication.partitions, columns, stamp)
        except RunExpired as gone:
            # trying again cannot bring the rows back
            workspace.narrate(f"WARNING: {pub_id} landed without its corrections: {gone.message}")
            return {"table": table, "lost": gone.message}
    failpoint("corrections.before_commit")
    properties = {"errata.publication": pub_id, "errata.run": publication.run_id, "errata.kind": "corrections"}
    return {"table": table, "snapshot_id": beside.land(table, pub_id, place[1], properties)}


def _find_prior_snapshot(workspace: Workspace, publication: PublicationRecord) -> tuple[str, str | None]:
    """Table and snapshot with the rows before the publication: main's base, or the longer-lived undo branch."""
    table, pins = publication.table, workspace.engines.pins
    base = publication.base_snapshot_id
    if base is None or pins.snapshot_exists(table, base):
        return table, base
    kept = pins.refs(table).get(undo_branch(publication.pub_id))
    if kept is None or Intent.from_dict(workspace.ledger.publications.detail(publication.pub_id)).with_deletes:
        raise RunExpired(f"what {publication.pub_id} replaced has expired; its corrections can no longer be computed")
    return table, kept
