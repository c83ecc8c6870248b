"""Runs: recorded once per manifest; state changes only as the model allows, each with its audit entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from errata.canonical import from_plain, parse_strict_json, sha256
from errata.errors import ManifestTampered, StateRefused, UsageError
from errata.ledger.audit.chain import (
    append_entry,
)
from errata.ledger.db.database import Tx
from errata.ledger.outbox.items import list_happened, write_owed
from errata.ledger.privacy.pseudonyms import current_registry, is_as_stored, is_pseudonym
from errata.ledger.records import RunRecord
from errata.ledger.schema.definition import chunk as chunk_table
from errata.ledger.schema.definition import manifest as manifest_table
from errata.ledger.schema.definition import run as run_table
from errata.ledger.store.base import Refusal, Store, find_run, move_run, require_state, run_from_row, to_json_text
from errata.ledger.store.parts import digest_content, save_parts
from errata.ledger.store.run_lookup import resolve_run
from errata.model.audit import Actor
from errata.model.consumer.outbox import Owed
from errata.model.manifest import Chunk, Manifest
from errata.model.run import RunState


class Runs(Store):
    """Runs and their manifests."""

    def record(
        self,
        run_id: str,
        manifest_bytes: bytes,
        *,
        product: str,
        table: str,
        partitions: Sequence[str],
        chunks: Sequence[Chunk],
        parts: Mapping[str, bytes],
        actor: Actor,
        body: Mapping[str, Any] | None = None,
        cover: Callable[[Tx, RunRecord], RunRecord] | None = None,
        owes: Sequence[Owed] = (),
    ) -> tuple[RunRecord, bool]:
        """Record a sealed manifest as a run in one transaction; True with the run if it was recorded before.

        ``cover`` approves the new run in the same transaction, or refuses, and then nothing is recorded.
        ``owes`` is what follows from the plan, and from its approval if ``cover`` approves it.
        """
        digest = sha256(manifest_bytes)
        content = _parse_manifest(manifest_bytes)
        for name, part in parts.items():
            if sha256(part) != name:
                raise UsageError(f"the run was not recorded; part {name} has another digest")

        def work(tx: Tx) -> tuple[RunRecord, bool]:
            known = tx.conn.execute(select(run_table).where(run_table.c.manifest_digest == digest)).first()
            if known is not None:
                return run_from_row(known), True
            save_parts(tx, parts.values())
            scope = RunScope(product, table, tuple(partitions), tuple(chunks))
            insert_run(tx, run_id, manifest_bytes, scope, actor.person, actor, body or {})
            # after the entry, which gives the actor a pseudonym
            _require_requester(str(content.get("requested_by", "")), actor)
            made = find_run(tx.conn, run_id)
            covered = cover(tx, made) if cover else made
            write_owed(tx, covered, run_id, list_happened(owes, covered), actor)
            return covered, False

        return self._write(actor, work)

    def get(self, run_id: str) -> RunRecord:
        """The run with this id, or the only one whose id contains this text."""
        return self._read(lambda conn: resolve_run(conn, run_id))

    def list(self, product: str | None = None, states: Collection[RunState] | None = None) -> tuple[RunRecord, ...]:
        """Runs, newest first."""
        query = select(run_table).order_by(run_table.c.planned_at.desc(), run_table.c.run_id)
        if product is not None:
            query = query.where(run_table.c.product == product)
        if states is not None:
            query = query.where(run_table.c.state.in_(sorted(state.value for state in states)))
        return self._read(lambda conn: tuple(run_from_row(row) for row in conn.execute(query)))

    def list_successors(self, run_id: str) -> tuple[RunRecord, ...]:
        """Runs that were planned to supersede this one, newest first."""
        query = select(run_table).where(run_table.c.supersedes == run_id)
        newest = query.order_by(run_table.c.planned_at.desc(), run_table.c.run_id)
        return self._read(lambda conn: tuple(run_from_row(row) for row in conn.execute(newest)))

    def manifest_bytes(self, run_id: str, actor: Actor | None = None) -> bytes:
        """The sealed bytes; raises and audits when their hash is not the run's digest."""
        who = actor or Actor("errata", "", "")

        def work(conn: Connection) -> bytes | Refusal:
            try:
                return load_verified_manifest(conn, find_run(conn, run_id))
            except Refusal as refusal:
                return refusal

        found = self._read(work)
        if isinstance(found, Refusal):
            self._audit_refusal(who, found)
            raise found.error
        return found

    def manifest(self, run_id: str, actor: Actor | None = None) -> Manifest:
        """The sealed plan, from verified bytes."""
        sealed = _build_manifest(self.manifest_bytes(run_id, actor))
        if is_as_stored():
            return sealed
        return replace(sealed, requested_by=self._read(lambda _: current_registry().name(sealed.requested_by)))

    def move(
        self,
        run_id: str,
        to: RunState,
        *,
        actor: Actor,
        action: str | None = None,
        body: Mapping[str, Any] | None = None,
        expect: Collection[RunState] | None = None,
        owes: Sequence[Owed] = (),
    ) -> RunRecord:
        """Change the state with an audit entry, and owe what follows; what the model does not allow is refused."""
        name = action or f"run.{to.value}"

        def work(tx: Tx) -> RunRecord:
            run = find_run(tx.conn, run_id)
            if expect is not None:
                require_state(run, expect, name)
            moved = move_run(tx, run, to, actor, name, body)
            write_owed(tx, moved, run_id, owes, actor)
            return moved

        return self._write(actor, work)


@lru_cache(maxsize=4)  # commands ask for the same ones again and again
def _build_manifest(content: bytes) -> Manifest:
    return from_plain(Manifest, json.loads(content))


def load_verified_manifest(conn: Connection, run: RunRecord) -> bytes:
    """The manifest's bytes, verified by hashing them again."""
    query = select(manifest_table.c.content).where(manifest_table.c.digest == run.manifest_digest)
    content = conn.execute(query).scalar()
    found = digest_content(content)
    if not isinstance(content, bytes) or found != run.manifest_digest:
        error = ManifestTampered(
            f"run {run.run_id} was refused; expected a manifest with SHA-256 {run.manifest_digest}, found {found}",
            state="nothing was changed; the run cannot continue",
            hint="errata audit verify; then plan again",
            run_id=run.run_id,
        )
        body = {"expected": run.manifest_digest, "found": found}
        raise Refusal(error, run_id=run.run_id, action="manifest.read", body=body, code="manifest.tampered")
    return content


def _require_requester(sealed: str, actor: Actor) -> None:
    if is_pseudonym(sealed) and sealed != current_registry().pseudonym(actor.person):
        raise StateRefused(
            f"the plan was not recorded; {actor.person} became known by another pseudonym meanwhile",
            state="nothing was planned",
            hint="plan again",
        )


def _parse_manifest(manifest_bytes: bytes) -> dict[str, Any]:
    try:
        content = parse_strict_json(manifest_bytes)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UsageError("the run was not recorded; expected a manifest as JSON object bytes")
    return content


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run is about, as its manifest says."""

    product: str
    table: str
    partitions: tuple[str, ...]
    chunks: tuple[Chunk, ...]


def insert_run(
    tx: Tx, run_id: str, content: bytes, scope: RunScope, planned_by: str, actor: Actor, body: Mapping[str, Any]
) -> None:
    """Add a planned run with its manifest and chunks; ``actor`` records it, ``planned_by`` asked for it."""
    digest, sealed = sha256(content), _parse_manifest(content)
    tx.conn.execute(manifest_table.insert(), {"digest": digest, "content": content, "at": tx.at})
    planned = {**body, "product": scope.product, "table": scope.table, "manifest_digest": digest}
    if estimate := sealed.get("estimate"):
        planned["estimated_usd"] = estimate["usd"]  # metrics read it here, because manifests are long
    entry = append_entry(tx, actor, "run.planned", run_id, planned, move=(None, RunState.PLANNED.value))
    row = {
        "run_id": run_id,
        "manifest_digest": digest,
        "product": scope.product,
        "table_name": scope.table,
        "partitions": to_json_text(list(scope.partitions)),
        "planned_by": planned_by,
        "reason": str(sealed.get("reason", "")),
        "planned_at": tx.at,
        "state": RunState.PLANNED.value,
        "updated_at": tx.at,
        "audit_seq": entry.seq,
        "supersedes": sealed.get("supersedes"),
        "kind": sealed.get("kind"),
    }
    tx.conn.execute(run_table.insert(), row)
    if scope.chunks:
        tx.conn.execute(chunk_table.insert(), _build_chunk_rows(run_id, scope.chunks, entry.seq))


def _build_chunk_rows(run_id: str, chunks: Sequence[Chunk], seq: int) -> list[dict[str, Any]]:
    return [
        {
            "run_id": run_id,
            "chunk_id": chunk.chunk_id,
            "position": position,
            "partitions": to_json_text(list(chunk.partitions)),
            "rows": chunk.rows,
            "bytes": chunk.bytes,
            "state": "pending",
            "fence": 0,
            "tries": 0,
            "wave": chunk.wave,
            "audit_seq": seq,
        }
        for position, chunk in enumerate(chunks)
    ]
