"""Every command begins here: open intents are settled by looking at the table, and the guard is watched.

An intent whose owner still works on it is left alone; one whose lease is over, whose process on this host is gone, or
which this very process gave up, is closed behind a fence. While a rollback's hazard is open, a missing guard is put
back and said aloud.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from errata.errors import EngineError, ErrataError, NotFound
from errata.executor.desk import Desk
from errata.executor.following import follow_up
from errata.executor.witnessing import need_witness, witness
from errata.failpoints import failpoint
from errata.ledger import PublicationRecord, owner_is_dead, this_owner
from errata.model.audit import Actor
from errata.model.beside import beside_table, landing
from errata.model.manifest import Manifest, TargetPin
from errata.model.refs import GUARD
from errata.publisher.replace import settle

__all__ = ["LEASE_SECONDS", "LedgerLog", "settle_open", "watch_guard"]

LEASE_SECONDS = 120.0
_at_work: set[str] = set()
"""Runs that this process publishes or rolls back at this moment."""


@dataclass(frozen=True, slots=True)
class LedgerLog:
    """The ledger as the publisher's log of intents, for one publication or rollback."""

    desk: Desk
    actor: Actor
    run_id: str
    kind: str
    table: str
    partitions: tuple[str, ...]
    reason: str
    release: Mapping[str, Any]
    owes: Mapping[str, Any] = field(default_factory=dict)  # what will follow on other tables
    last_look: Callable[[], object] = lambda: None  # right before a commit; raises when it may not be
    _open: list[str] = field(default_factory=list)

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Renew the lease of the intent while Spark may work for longer than it lasts."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(LEASE_SECONDS / 4):
                for publication_id in self._open:
                    with suppress(EngineError):
                        self.desk.ledger.renew_publication(publication_id, LEASE_SECONDS)

        thread = threading.Thread(target=beat, name=f"lease-{self.run_id}", daemon=True)
        thread.start()
        _at_work.add(self.run_id)
        try:
            yield
        finally:
            _at_work.discard(self.run_id)
            over.set()
            thread.join()

    def intend(self, detail: Mapping[str, object]) -> str:
        """Open the intent and take the locks."""
        return self._intend(detail, None)

    def knows(self, publication_id: str) -> bool:
        """Whether it is on the record."""
        return self.desk.ledger.knows_publication(publication_id)

    def restore(self, publication_id: str, snapshot_id: str, detail: Mapping[str, object]) -> None:
        """Intent and outcome at once: the table has it, the ledger lost it."""
        self._intend({**detail, "found_on_table": True}, publication_id)
        failpoint(f"{self.kind}.after_intent")
        self.committed(publication_id, snapshot_id)
        self.desk.narrate(
            f"{publication_id} is on the table as snapshot {snapshot_id} and was not in this ledger, which was put "
            "back from an older copy; it is on the record now, and nothing was committed"
        )

    def _intend(self, detail: Mapping[str, object], found_id: str | None) -> str:
        if self.kind == "publish":
            need_witness(self.desk)
        made = self.desk.ledger.intend_publication(
            self.run_id,
            self.kind,  # type: ignore[arg-type]
            self.partitions,
            table=self.table,
            person=self.actor.person,
            reason=self.reason,
            detail=detail,
            lease_seconds=LEASE_SECONDS,
            actor=self.actor,
            release=self.release,
            base_snapshot_id=str(detail.get("base_snapshot_id") or "") or None,
            owner=this_owner(),
            found_id=found_id,
        )
        self._open.append(made.pub_id)
        if self.owes:
            self.desk.ledger.record_fact(self.run_id, f"owed.{made.pub_id}", self.owes, self.actor)
        return made.pub_id

    def update(self, publication_id: str, detail: Mapping[str, object]) -> None:
        """What the next try will do."""
        ledger = self.desk.ledger
        if ledger.publication_detail(publication_id) != detail:
            base = str(detail.get("base_snapshot_id") or "") or None
            ledger.update_intent(publication_id, detail, actor=self.actor, base_snapshot_id=base)
        ledger.renew_publication(publication_id, LEASE_SECONDS)

    def committed(self, publication_id: str, snapshot_id: str) -> None:
        """It landed; only rows that had to be written anew cost data files."""
        stored = self.desk.ledger.publication_detail(publication_id)
        names = [name for names in stored["rewrite"].values() for name in names]
        anew = {file[1] for name in names for file in stored["add"].get(name, ())}
        self.desk.ledger.settle_publication(
            publication_id,
            "committed",
            actor=self.actor,
            snapshot_id=snapshot_id,
            data_files_written=len(anew) + len(stored.get("carried", ())) + stored.get("data_files", 0),
        )
        witness(self.desk)

    def abandoned(self, publication_id: str, reason: str) -> None:
        """It did not land, and no longer can."""
        self.desk.ledger.settle_publication(publication_id, "abandoned", actor=self.actor, body={"why": reason})


def settle_open(desk: Desk, actor: Actor, table: str | None = None) -> None:
    """Close the open intents of a table that nobody works on any more, and see to the guard."""
    for publication in desk.ledger.open_publications(table=table):
        if not _is_deserted(desk, publication):
            continue
        manifest = desk.ledger.manifest(publication.run_id, actor)
        log = LedgerLog(
            desk, actor, publication.run_id, publication.kind, publication.table, publication.partitions, "", {}
        )
        try:
            landed = settle(
                landing(manifest),
                publication.pub_id,
                publication.partitions,
                desk.engines.publishing,
                log,
                reason="its process ended before the commit; closed behind a fence",
                intent=desk.ledger.publication_detail(publication.pub_id),
            )
        except NotFound as gone:  # while its table is not there nobody can tell, and other tables go on
            desk.narrate(f"WARNING: {publication.kind} {publication.pub_id} was left open: {gone.message}")
            continue
        outcome = f"had landed as snapshot {landed}" if landed else "had not landed; main is as it was before"
        desk.narrate(f"{publication.kind} {publication.pub_id} was left open: it {outcome}")
    for warning in follow_up(desk, actor, table):
        desk.narrate(f"WARNING: {warning}")
    watch_guard(desk, actor, table)


def _is_deserted(desk: Desk, publication: PublicationRecord) -> bool:
    if publication.lease_until <= desk.ledger.now_ms():
        return True
    if publication.owner == this_owner() and publication.run_id not in _at_work:
        return True
    return publication.owner is not None and owner_is_dead(publication.owner)


def _brought_back(desk: Desk, rollback: PublicationRecord, manifest: Manifest) -> frozenset[str]:
    """Files that a careless expiry would delete under the table: none where it was left alone, none of an append."""
    if beside_table(manifest):
        return frozenset()
    detail = desk.ledger.publication_detail(rollback.pub_id)
    return frozenset(file[1] for files in detail["add"].values() for file in files)


def _over(desk: Desk, rollback: PublicationRecord, target: TargetPin, back: frozenset[str]) -> str | None:
    """Why files that a rollback brought back are no longer in danger; None while they are."""
    undone = [
        publication.result_snapshot_id
        for publication in desk.ledger.publications(rollback.run_id)
        if publication.kind == "publish" and publication.result_snapshot_id
    ]
    if not any(desk.engines.pins.snapshot_exists(rollback.table, snapshot) for snapshot in undone):
        return "the publication's snapshot has expired while the guard was there"
    live = desk.engines.targets.read_target(target.table, target.column, target.grain, rollback.partitions).expected
    if not any(file.path in back for files in live.values() for file in files):
        return "the files that were brought back have been rewritten"
    return None


def watch_guard(desk: Desk, actor: Actor, table: str | None = None) -> None:
    """While a hazard is open, a guard that was dropped would let an expiry delete live files."""
    for hazard in desk.ledger.open_hazards(table):
        rollback = desk.ledger.publication(hazard.pub_id)
        manifest = desk.ledger.manifest(rollback.run_id, actor)
        target, back = manifest.target, _brought_back(desk, rollback, manifest)
        if not back:
            desk.ledger.close_hazard(hazard.pub_id, "the rollback brought no files back into the table", actor)
            continue
        try:
            guarded = GUARD in desk.engines.pins.refs(hazard.table)
            over = _over(desk, rollback, target, back) if guarded else None
        except ErrataError as error:
            desk.narrate(f"the guard of {hazard.table} could not be looked at: {error.message}")
            continue
        if over:
            desk.ledger.close_hazard(hazard.pub_id, over, actor)
        if guarded:
            continue
        guard, _ = desk.engines.publishing.ensure_guard(target)
        desk.ledger.record_guard(target.table_uuid, guard, actor, hazard.table)
        desk.narrate(
            f"WARNING: branch {GUARD} of {hazard.table} was gone and has been put back; "
            "an expiry by another tool in between may have removed files that the rollback brought back: errata doctor"
        )
