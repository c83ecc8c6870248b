"""Outbox: work to do after a commit, such as writing correction rows and refreshing the view of current output.

The work is recorded before the commit and marked done after it, and every part is idempotent. If a process dies in
between, the next command on the table does the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from errata.errors import EngineError, RunExpired
from errata.failpoints import failpoint
from errata.gate.measure.names import content_columns
from errata.ledger import PublicationRecord, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.refs import undo_branch
from errata.model.side_tables import VERSION_COLUMNS, is_side_table_mode
from errata.ports.publish import Stamp
from errata.publishing.intent import Intent
from errata.publishing.sql.accepted_view import build_accepted_sql, build_swapped_sql
from errata.text.exceptions import first_line
from errata.workspace import Workspace


def build_outbox(
    workspace: Workspace, run: RunRecord, manifest: Manifest, kind: str, scope: Sequence[str]
) -> dict[str, Any]:
    """Outbox entry of a publication or rollback of these partitions; empty for most products."""
    publish = manifest.publish
    owed: dict[str, Any] = {}
    if publish.corrections and not is_side_table_mode(publish):
        owed["corrections"] = publish.corrections
        if kind == "rollback":
            owed["reverses"] = find_origins(workspace, run, scope)
    if publish.view:
        owed["view"] = publish.view
    return owed


def find_origins(workspace: Workspace, run: RunRecord, scope: Sequence[str]) -> dict[str, list[str]]:
    """Publications whose rows these partitions hold, each with its partitions."""
    accepted = workspace.ledger.partitions.accepted(run.table, scope)
    found: dict[str, list[str]] = {}
    for name in scope:
        found.setdefault(accepted[name].origin_pub_id or accepted[name].pub_id, []).append(name)
    return found


def process_outbox(workspace: Workspace, actor: Actor, table: str | None = None) -> tuple[str, ...]:
    """Process the open outbox entries of committed publications; returns warnings about those that failed.

    A failed entry stays open. Entries are processed oldest first.
    """
    warnings = []
    unpaid: set[str] = set()
    for run_id, pub_id, owed in workspace.ledger.facts.list_outbox(table):
        publication = workspace.ledger.publications.get(pub_id)
        try:
            _require_corrections_first(workspace, owed, unpaid)
            paid = _process_entry(workspace, actor, publication, owed)
        except Exception as error:  # noqa: BLE001  whatever it is, the publication is done
            unpaid.add(pub_id)
            warnings.append(
                f"{pub_id} landed, but what follows it is not done ({', '.join(owed)}): {first_line(error)}; "
                "the next command on the table does it"
            )
            continue
        if lost := paid.get("corrections", {}).get("lost"):
            warnings.append(f"{pub_id} landed without its corrections: {lost}")
        workspace.ledger.facts.record(run_id, f"done.{pub_id}", paid, actor)
    return tuple(warnings)


def _require_corrections_first(workspace: Workspace, owed: Mapping[str, Any], unpaid: Collection[str]) -> None:
    """Refuse a reversal before the corrections it reverses: without their rows it would write nothing and be done."""
    table, reverses = owed.get("corrections", ""), owed.get("reverses") or {}
    first = [pub_id for pub_id in reverses if pub_id in unpaid and not workspace.engines.beside.landed(table, pub_id)]
    if first:
        raise EngineError(f"the corrections of {', '.join(first)} come first")


def _process_entry(
    workspace: Workspace, actor: Actor, publication: PublicationRecord, owed: Mapping[str, Any]
) -> dict[str, Any]:
    manifest = workspace.ledger.runs.manifest(publication.run_id, actor)
    paid: dict[str, Any] = {}
    if corrections := owed.get("corrections"):
        paid["corrections"] = _write_corrections(workspace, publication, manifest, corrections, owed.get("reverses"))
    if view := owed.get("view"):
        _refresh_view(workspace, publication.table, manifest, view)
        paid["view"] = view
    failpoint("follow.after_commit")
    return paid


def _write_corrections(
    workspace: Workspace,
    publication: PublicationRecord,
    manifest: Manifest,
    table: str,
    reverses: Mapping[str, Sequence[str]] | None,
) -> Mapping[str, Any]:
    """Write the correction rows; the publication's tag makes sure that they land only once."""
    beside, writer, pub_id = workspace.engines.beside, workspace.engines.writer, publication.pub_id
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
            return {"table": table, "lost": gone.message}
    failpoint("follow.before_commit")
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


def _refresh_view(workspace: Workspace, table: str, manifest: Manifest, view: str) -> None:
    """Update the view until it matches the ledger: another publication may land after the ledger was read."""
    shown = ""
    while (query := _build_view_query(workspace, table, manifest)) != shown:
        workspace.engines.writer.show(view, query)
        shown = query


def _build_view_query(workspace: Workspace, table: str, manifest: Manifest) -> str:
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
