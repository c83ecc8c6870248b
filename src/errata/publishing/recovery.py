"""Recovery: close intents that a killed process left open, by reading the table; ``LedgerLog`` records intents.

An intent whose owner still works on it is left alone. It is closed, behind a fence, when its lease has expired, when
its process on this host is dead, or when this process itself gave it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from errata.errors import NotFound, SetupError
from errata.evidence.head_export import require_recent_head, try_export_head
from errata.failpoints import failpoint
from errata.ledger import PublicationRecord, current_owner, is_owner_dead
from errata.model.audit import Actor
from errata.model.consumer.hold import list_held
from errata.model.consumer.outbox import Owed
from errata.model.side_tables import find_landing_pin
from errata.publishing.hazards import watch_guard
from errata.publishing.intent import Intent
from errata.publishing.readers.ready_table import hold_readers
from errata.publishing.unrecorded import close_intent
from errata.worker.heartbeat import beating, write_lease
from errata.workspace import Workspace

_active_runs: set[str] = set()
"""Runs that this process is publishing or rolling back right now.

The ledger names a process as the owner of an intent, so all clients of a process share the set: one must not take the
open intent of another for one that was given up.
"""


@dataclass(frozen=True, slots=True)
class LedgerLog:
    """Intent log of one publication or rollback, backed by the ledger."""

    workspace: Workspace
    actor: Actor
    run_id: str
    kind: str
    table: str
    partitions: tuple[str, ...]
    reason: str
    release: Mapping[str, Any]
    owes: tuple[Owed, ...] = ()  # what follows if it lands
    last_look: Callable[[], object] = lambda: None  # called right before a commit; raises when it may not happen
    _open: list[str] = field(default_factory=list)

    @contextmanager
    def keep_alive(self) -> Iterator[None]:
        """Renew the lease of the intent in the background, because Spark may take longer than the lease."""

        def renew() -> bool:
            for publication_id in self._open:
                self.workspace.ledger.publications.renew(publication_id, write_lease())
            return True

        with beating(write_lease(), renew, f"lease-{self.run_id}"):
            _active_runs.add(self.run_id)
            try:
                yield
            finally:
                _active_runs.discard(self.run_id)

    def open_intent(self, detail: Mapping[str, object]) -> str:
        """See the port."""
        return self._open_intent(detail, None)

    def is_recorded(self, publication_id: str) -> bool:
        """See the port."""
        return self.workspace.ledger.publications.exists(publication_id)

    def restore(self, publication_id: str, snapshot_id: str, detail: Mapping[str, object]) -> None:
        """Record intent and outcome of a publication that is on the table but missing from the ledger."""
        self._open_intent({**detail, "found_on_table": True}, publication_id)
        failpoint(f"{self.kind}.after_intent")
        self.record_committed(publication_id, snapshot_id)
        self.workspace.narrate(
            f"{publication_id} is on the table as snapshot {snapshot_id} and was not in this ledger, which was "
            "restored from an older backup; it is on the record now, and nothing was committed"
        )

    def _open_intent(self, detail: Mapping[str, object], found_id: str | None) -> str:
        if self.kind == "publish":
            require_recent_head(self.workspace)
        base = str(detail.get("base_snapshot_id") or "") or None
        # what is on the table already was announced, or not, when it was committed
        consumers = self._hold_consumers(base) if found_id is None else ()
        made = self.workspace.ledger.publications.intend(
            self.run_id,
            self.kind,  # type: ignore[arg-type]
            self.partitions,
            table=self.table,
            person=self.actor.person,
            reason=self.reason,
            detail=detail,
            lease_seconds=write_lease(),
            actor=self.actor,
            consumers=consumers,
            release=self.release,
            base_snapshot_id=base,
            owner=current_owner(),
            found_id=found_id,
            # with the intent, so that nothing is forgotten if the process dies right after the commit
            owes=self.owes,
        )
        self._open.append(made.pub_id)
        return made.pub_id

    def _hold_consumers(self, snapshot_id: str | None) -> tuple[str, ...]:
        """Hold the readers of the ready table; returns all consumers without whose holds the intent is refused."""
        readers = hold_readers(
            self.workspace, self.actor, self.run_id, self.kind, self.partitions, snapshot_id
        )  # fmt: skip
        project = self.workspace.project
        if self.kind != "publish" or not list_held(project.consumers.values()):
            return readers
        product = self.workspace.ledger.runs.get(self.run_id).product
        return (*readers, *(name for name, _ in list_held(project.list_consumers(product))))

    def update(self, publication_id: str, detail: Mapping[str, object]) -> None:
        """See the port."""
        ledger = self.workspace.ledger
        if ledger.publications.detail(publication_id) != detail:
            base = str(detail.get("base_snapshot_id") or "") or None
            ledger.publications.update_intent(publication_id, detail, actor=self.actor, base_snapshot_id=base)
        ledger.publications.renew(publication_id, write_lease())

    def record_committed(self, publication_id: str, snapshot_id: str) -> None:
        """Record that the publication landed, and how many data files it wrote."""
        intent = Intent.from_dict(self.workspace.ledger.publications.detail(publication_id))
        self.workspace.ledger.publications.settle(
            publication_id,
            "committed",
            actor=self.actor,
            snapshot_id=snapshot_id,
            data_files_written=intent.data_files_written,
        )
        # a head that is exported before the outcome is recorded would not cover it
        try_export_head(self.workspace)

    def record_abandoned(self, publication_id: str, reason: str) -> None:
        """See the port."""
        self.workspace.ledger.publications.settle(publication_id, "abandoned", actor=self.actor, body={"why": reason})


def recover_open_intents(workspace: Workspace, actor: Actor, table: str | None = None) -> None:
    """Close the orphaned intents of a table, which settles what they owe, and check its guard."""
    for publication in workspace.ledger.publications.list_open(table=table):
        if not _is_orphaned(workspace, publication):
            continue
        manifest = workspace.ledger.runs.manifest(publication.run_id, actor)
        log = LedgerLog(
            workspace, actor, publication.run_id, publication.kind, publication.table, publication.partitions, "", {}
        )
        try:
            landed = close_intent(
                find_landing_pin(manifest),
                publication.pub_id,
                publication.partitions,
                workspace.engines.publishing,
                log,
                reason="its process ended before the commit; closed behind a fence",
                intent=Intent.from_dict(workspace.ledger.publications.detail(publication.pub_id)),
            )
        except (NotFound, SetupError) as gone:
            # without its table the outcome is unknown; other tables must still recover
            workspace.narrate(f"WARNING: {publication.kind} {publication.pub_id} was left open: {gone.message}")
            continue
        outcome = f"had landed as snapshot {landed}" if landed else "had not landed; main is as it was before"
        workspace.narrate(f"{publication.kind} {publication.pub_id} was left open: it {outcome}")
    watch_guard(workspace, actor, table)


def _is_orphaned(workspace: Workspace, publication: PublicationRecord) -> bool:
    if publication.lease_until <= workspace.ledger.now_ms():
        return True
    if publication.owner == current_owner() and publication.run_id not in _active_runs:
        return True
    return publication.owner is not None and is_owner_dead(publication.owner)
