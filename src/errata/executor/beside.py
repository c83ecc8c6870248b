"""Publish and roll back where the target is left alone: correction events, and versions side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from errata.executor.desk import Desk
from errata.executor.drift import replacement
from errata.executor.following import origins
from errata.executor.settling import LedgerLog
from errata.failpoints import failpoint
from errata.ledger import CandidateRecord, RunRecord
from errata.model.manifest import Manifest, TargetPin
from errata.publisher.beside import Rows, append_beside
from errata.publisher.ports import Stamp, Told
from errata.publisher.replace import Examined, Replaced, Replacement, detail_of
from errata.validator.names import content_columns

__all__ = ["publish_beside", "take_back_beside"]


def publish_beside(
    desk: Desk, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: tuple[str, ...], log: LedgerLog
) -> Replaced:
    """One append to the table of corrections or of versions."""
    order = replace(replacement(desk, run, manifest, scope), properties={"errata.candidate-digest": candidate.digest})
    desk.engines.writer.create(manifest.publish.creates)
    make = _corrections if manifest.publish.mode == "corrections" else _versions
    return _appended(desk, order, make(desk, run, manifest, candidate, scope), log)


def take_back_beside(
    desk: Desk, run: RunRecord, manifest: Manifest, scope: tuple[str, ...], reason: str, log: LedgerLog
) -> Replaced:
    """The reverse corrections; of versions nothing but what is accepted goes back."""
    order = replace(replacement(desk, run, manifest, scope), kind="rollback")
    if manifest.publish.mode != "corrections":
        return _unaccepted(desk, order, manifest, log)
    publications = origins(desk, run, scope)

    def stage(publication_id: str, branch: str) -> Mapping[str, Any]:
        stamp = Stamp(run.run_id, publication_id, reason, _now(desk))
        table = manifest.publish.corrections or ""
        desk.engines.writer.reversals((table, branch), manifest.target.key, publications, stamp)
        return {}

    return _appended(desk, order, Rows(manifest.publish.corrections or "", stage, adds_up=True), log)


def _appended(desk: Desk, order: Replacement, rows: Rows, log: LedgerLog) -> Replaced:
    engines = desk.engines
    return append_beside(order, rows, engines.publishing, engines.beside, engines.content, log)


def _corrections(
    desk: Desk, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: tuple[str, ...]
) -> Rows:
    table, target = manifest.publish.corrections or "", manifest.target

    def stage(publication_id: str, branch: str) -> Mapping[str, Any]:
        desk.engines.writer.corrections(
            (table, branch),
            target,
            (target.table, target.base_snapshot_id),
            (target.staging.table, candidate.snapshot_id or ""),
            scope,
            content_columns(manifest),
            Stamp(run.run_id, publication_id, manifest.reason, _now(desk)),
            _told(desk, run.table, scope),
        )
        return {}

    return Rows(table, stage, adds_up=True)


def _told(desk: Desk, table: str, scope: tuple[str, ...]) -> Told | None:
    """Corrections that an accepted run told of these partitions while it left the target as it was."""
    accepted = desk.ledger.accepted(table, scope)
    origins = {name: record.origin_pub_id or "" for name, record in accepted.items() if record.run_id is not None}
    is_beside = {pub_id: _wrote_corrections(desk, pub_id) for pub_id in set(origins.values())}
    held = tuple(name for name, pub_id in origins.items() if is_beside[pub_id])
    return Told(held, desk.ledger.committed_on(table)) if held else None


def _wrote_corrections(desk: Desk, pub_id: str) -> bool:
    publish = desk.ledger.manifest(desk.ledger.publication(pub_id).run_id).publish
    return publish.mode == "corrections"


def _versions(
    desk: Desk, run: RunRecord, manifest: Manifest, candidate: CandidateRecord, scope: tuple[str, ...]
) -> Rows:
    table = manifest.publish.versions or ""

    def stage(_publication_id: str, branch: str) -> Mapping[str, Any]:
        # nobody else gets one meanwhile: the partitions are locked
        numbers = _next_numbers(desk, run.table, table, manifest.target, scope)
        snapshot = candidate.snapshot_id or ""
        desk.engines.writer.versions((table, branch), manifest.target, snapshot, numbers, run.run_id)
        return {"versions": numbers}

    return Rows(table, stage)


def _next_numbers(desk: Desk, table: str, versions: str, target: TargetPin, scope: Sequence[str]) -> dict[str, int]:
    """One more than any the partition has had, by the ledger and by the table, which remembers what a ledger put back
    from a copy does not."""
    before = desk.ledger.times_published(table, scope)
    there = desk.engines.writer.newest_versions(versions, target, scope)
    return {name: max(before.get(name, 0), there.get(name, 0)) + 1 for name in scope}


def _unaccepted(desk: Desk, order: Replacement, manifest: Manifest, log: LedgerLog) -> Replaced:
    """A ledger entry alone: rows stay, and the view follows what is accepted."""
    head = desk.engines.beside.head(manifest.publish.versions or "")
    publication_id = log.intend(detail_of(order, Examined("", (), ())))
    failpoint("rollback.after_intent")
    log.committed(publication_id, head)
    failpoint("rollback.after_record")
    return Replaced(publication_id, head, "", 0, 0, (), 0)


def _now(desk: Desk) -> str:
    return desk.now().isoformat()
