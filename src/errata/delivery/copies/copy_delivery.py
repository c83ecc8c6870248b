"""Pay ``copy``: make partitions of a copy equal to what the lake has accepted now.

The item is about partitions, not about the publication that caused it, so that a late item cannot bring what was rolled
back since. Each attempt has a marker in the warehouse. Before anything else, an attempt ends those of earlier ones:
whatever became of them is then known, and what they delivered is on record in the warehouse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from errata.approval.quorum import evaluate_quorum
from errata.canonical import canonical_bytes
from errata.delivery.copies.accepted_rows import AcceptedPartition, open_accepted_rows, read_acceptance
from errata.delivery.copies.declared_copies import find_copy, open_copy
from errata.delivery.copies.linked_tables import refresh_linked_table
from errata.delivery.recovery_clock import find_commit_time
from errata.errors import (
    ApprovalRefused,
    AttemptLost,
    CopyChanged,
    CopyLocked,
    CopyOvertaken,
    EngineError,
    ErrataError,
    OutcomeUnknown,
    RunExpired,
    StateRefused,
)
from errata.failpoints import failpoint
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import NEXT, Failed, Later, Paid, Payment, TryAgain
from errata.model.copy.checksum import EMPTY, find_differing
from errata.model.copy.declaration import REFRESH
from errata.model.copy.delivery import Receipt, Swap, describe_contents
from errata.model.copy.marker import (
    Content,
    Delivered,
    Marker,
    MarkerState,
    expect_contents,
    list_undelivered,
)
from errata.model.copy.refusals import refuse_content, refuse_count
from errata.model.copy.repair import find_delivered_since, find_moved, read_repair
from errata.model.copy.table import CopyTable, find_attempt, name_staging
from errata.model.partition import format_partition_list, format_ranges
from errata.model.run import RunState
from errata.ports.copies import WarehouseCopies
from errata.workspace import Workspace

CODE, PARTITIONS, BLOCKED = "code", "partitions", "blocked_by"
REPAIR = "repair"
"""Key of an item's payload: the sealed part of a planned repair."""
_SHOWN = 3
_LOCKED_SECONDS = 5.0
"""How long another session that has a lock is given at least before the next attempt."""


def deliver_copy(workspace: Workspace, actor: Actor, item: OutboxItem) -> Payment:
    """Bring what is accepted into the copy, unless it is there already."""
    del actor
    run = workspace.ledger.runs.get(item.run_id)
    product, declared = find_copy(workspace, run.product, item.consumer, item.item_id)
    if declared.mode == REFRESH:
        return refresh_linked_table(workspace, item, declared)
    copy = open_copy(workspace, product, declared)
    delivery = _Delivery(workspace, item, copy, workspace.engines.copies(copy.warehouse))
    try:
        return delivery.repair() if REPAIR in item.payload else delivery.pay()
    except CopyChanged as refused:
        delivery.end_attempt()
        return delivery.describe_change(refused)
    except CopyLocked as refused:
        progress = {CODE: refused.code, BLOCKED: refused.fields.get(BLOCKED, [])}
        return TryAgain(refused.message, progress, _LOCKED_SECONDS)
    except (CopyOvertaken, AttemptLost) as refused:
        # another delivery has changed what this one expected; the next attempt looks again
        return TryAgain(refused.message, {CODE: refused.code})
    except RunExpired as gone:
        delivery.end_attempt()
        return Failed(gone.message, {CODE: gone.code})
    except EngineError:
        # nothing was written, or the fence finds out now, or the next attempt does
        delivery.end_attempt()
        raise


@dataclass(frozen=True, slots=True)
class _Delivery:
    """One attempt."""

    workspace: Workspace
    item: OutboxItem
    copy: CopyTable
    copies: WarehouseCopies

    @property
    def marker(self) -> Marker:
        """The claim's own marker: its fence grows with every claim and is never given twice."""
        return Marker(self.item.pub_id or self.item.key, self.item.fence)

    def pay(self) -> Payment:
        self.settle_earlier_attempts()
        accepted = read_acceptance(self.workspace, self.item.table, self.item.partitions)
        delivered = self.copies.read_delivered(self.copy, accepted)
        sequences = {name: one.sequence for name, one in accepted.items()}
        wanted = {name: accepted[name] for name in list_undelivered(sequences, delivered)}
        if not wanted:
            return Paid(self.describe_delivered(delivered))
        if others := sorted(name for name in wanted if name in delivered and delivered[name].shape != self.copy.shape):
            return self.describe_other_shape(others)
        return self.replace_rows(self.stage(wanted, delivered), wanted, delivered)

    def repair(self) -> Payment:
        """Replace what an approved plan names, if everything is as it was when it was sealed."""
        self.settle_earlier_attempts()
        run = self.workspace.ledger.runs.get(self.item.run_id)
        sealed = read_repair(json.loads(self.workspace.ledger.parts.get(self.item.payload[REPAIR])))
        delivered = self.copies.read_delivered(self.copy, sealed)
        if {one.marker.publication for one in delivered.values()} == {self.marker.publication}:
            return Paid(self.describe_delivered(delivered))
        if run.state is not RunState.RUNNING:
            return Failed(f"{run.run_id} is {run.state}: its repair is not made any more", {CODE: StateRefused.code})
        manifest = self.workspace.ledger.runs.manifest(run.run_id)
        if missing := evaluate_quorum(self.workspace, run, manifest).missing:
            return Failed(f"{run.run_id} is not approved any more: {'; '.join(missing)}", {CODE: ApprovalRefused.code})
        accepted = read_acceptance(self.workspace, self.item.table, sealed)
        moved = find_moved(sealed, {name: one.sequence for name, one in accepted.items()})
        if changed := moved or find_delivered_since(sealed, delivered):
            why = "published or rolled back" if moved else "delivered to"
            shown = format_ranges(self.copy.grain, changed, _SHOWN)
            progress = {CODE: CopyChanged.code, PARTITIONS: list(changed)}
            return Failed(f"{self.copy.name}: {shown} was {why} since the plan", progress)
        wanted = {
            name: AcceptedPartition(one.accepted.sequence, one.snapshot_id, one.publication)
            for name, one in sealed.items()
        }
        swap = self.stage(wanted, delivered)
        planned = {name: one.accepted.checksum for name, one in sealed.items()}
        staged = {name: one.checksum for name, one in swap.contents.items()}
        if differing := find_differing(planned, staged, self.copy.tolerance):
            raise refuse_content(self.copy, differing)
        # what it held at planning, not what the last delivery left: that is what somebody has changed
        swap = replace(swap, expected={name: one.found for name, one in sealed.items()})
        return self.replace_rows(swap, wanted, delivered)

    def replace_rows(
        self, swap: Swap, wanted: Mapping[str, AcceptedPartition], delivered: Mapping[str, Delivered]
    ) -> Payment:
        """Open the marker, look once more at what is accepted, swap, and read back."""
        self.copies.open_marker(self.copy, self.marker)
        now = read_acceptance(self.workspace, self.item.table, wanted)
        if {name: one.sequence for name, one in now.items()} != {name: one.sequence for name, one in wanted.items()}:
            # published or rolled back while rows were loaded: what is staged is no longer what is accepted
            self.end_attempt()
            return Later(0, {})
        receipt = self.swap(swap)
        if receipt is None:
            return TryAgain("the answer to the commit was lost, and it did not land", {CODE: OutcomeUnknown.code})
        failpoint("copy.after_swap")
        return Paid(self.finish(receipt, wanted, delivered))

    def settle_earlier_attempts(self) -> None:
        """End attempts whose outcome nobody knows, and drop what they staged."""
        for found in self.copies.list_markers(self.copy, self.marker.publication):
            if found.state is MarkerState.OPEN and found.marker.attempt < self.marker.attempt:
                # raises CopyLocked while a swap may still commit: then nothing is known, and nothing is done
                self.copies.fence(self.copy, found.marker)
        for staging in self.copies.list_staging(self.copy, self.marker.publication):
            # those of a later attempt are in use: then this one is late itself
            if find_attempt(staging) < self.marker.attempt:
                self.copies.drop_staging(self.copy, staging)

    def stage(self, wanted: Mapping[str, AcceptedPartition], delivered: Mapping[str, Delivered]) -> Swap:
        """Load the accepted rows and count them; the swap compares their content where it matters, in the copy."""
        staging = name_staging(self.copy, self.marker.publication, self.marker.attempt)
        rows = open_accepted_rows(self.workspace.engines.lake_rows, self.copy, self.item.table, wanted)
        loaded, measured = self.copies.load(self.copy, staging, rows), rows.measure()
        if loaded != (wanted_rows := sum(one.rows for one in measured.values())):
            raise refuse_count(self.copy, "loaded", loaded, wanted_rows)
        contents = {name: Content(one.sequence, measured.get(name, EMPTY)) for name, one in wanted.items()}
        recorded = {name: delivered[name] for name in wanted if name in delivered}
        return Swap(self.marker, staging, contents, expect_contents(tuple(wanted), recorded), recorded)

    def swap(self, swap: Swap) -> Receipt | None:
        """Replace the partitions; None if the answer was lost and the swap did not land."""
        try:
            return self.copies.swap(self.copy, swap)
        except OutcomeUnknown:
            # only the marker knows; as long as the fence cannot decide it either, nothing is concluded
            if self.copies.fence(self.copy, swap.marker) is MarkerState.VOID:
                return None
            removed = sum(one.rows for one in swap.expected.values())
            return Receipt(swap.marker, dict(swap.contents), removed, swap.rows, 0.0)

    def finish(
        self, receipt: Receipt, wanted: Mapping[str, AcceptedPartition], delivered: Mapping[str, Delivered]
    ) -> dict[str, Any]:
        """Read back what is there now, unless it is known, drop staging, and describe it all for the record."""
        since: tuple[str, ...] = ()
        if not receipt.is_exclusive:
            measured = {name: one.checksum for name, one in receipt.partitions.items()}
            since = find_differing(measured, self.copies.measure(self.copy, measured), self.copy.tolerance)
        self.copies.drop_staging(self.copy, name_staging(self.copy, receipt.marker.publication, receipt.marker.attempt))
        already = {name: one.content for name, one in delivered.items() if name not in wanted}
        told = receipt.to_dict() | self.describe_contents({**already, **receipt.partitions})
        told["snapshots"] = sorted({one.snapshot_id for one in wanted.values()})
        told["seconds_since_commit"] = self.count_seconds(wanted)
        if since:
            told["written_since"] = list(since)
        return told

    def count_seconds(self, wanted: Mapping[str, AcceptedPartition]) -> float:
        """How long readers of the copy had to wait after the newest commit that is delivered."""
        newest = self.workspace.ledger.publications.get(max(wanted.values(), key=lambda one: one.sequence).publication)
        manifest = self.workspace.ledger.runs.manifest(newest.run_id)
        committed = find_commit_time(self.workspace, newest, manifest)
        return max(0.0, round((self.workspace.ledger.now_ms() - committed) / 1000, 3))

    def describe_contents(self, contents: Mapping[str, Content]) -> dict[str, Any]:
        """Where, how much, and the digest of the list of what each partition holds."""
        part = self.workspace.ledger.parts.put(canonical_bytes(describe_contents(contents)))
        rows = sum(one.checksum.rows for one in contents.values())
        where = {"warehouse": self.copy.warehouse, "table": self.copy.table}
        return where | {"partitions": len(contents), "rows": rows, "contents": part}

    def end_attempt(self) -> None:
        """Void the marker and drop staging, as far as the warehouse lets us; the next attempt does the rest."""
        try:
            self.copies.fence(self.copy, self.marker)
            self.copies.drop_staging(self.copy, name_staging(self.copy, self.marker.publication, self.marker.attempt))
        except ErrataError:
            pass  # what this attempt found is the news

    def describe_delivered(self, delivered: Mapping[str, Delivered]) -> dict[str, Any]:
        """What is on record in the warehouse about partitions that are as accepted."""
        publications = sorted({one.marker.publication for one in delivered.values()})
        told = self.describe_contents({name: one.content for name, one in delivered.items()})
        return told | {"delivered_by": publications}

    def describe_change(self, refused: CopyChanged) -> Failed:
        """Somebody else wrote the copy, or nobody has accepted what it held before its first delivery."""
        differing = list(refused.fields.get(PARTITIONS, []))
        if REPAIR in self.item.payload:
            shown = format_ranges(self.copy.grain, differing, _SHOWN)
            told = f"{self.copy.name} holds other rows than when the repair was planned, in {shown}"
            return Failed(told, {CODE: refused.code, PARTITIONS: differing})
        known = self.copies.read_delivered(self.copy, differing)
        told = refused.message
        if not known:
            shown = format_ranges(self.copy.grain, differing, _SHOWN)
            told = f"{self.copy.name} has rows that Errata did not deliver, in {shown}, and nobody has accepted them"
        return self.fail_for_person(told, differing)

    def describe_other_shape(self, partitions: list[str]) -> Failed:
        """The columns of the copy are others than when it was delivered to, so that nothing can be compared."""
        shown = format_ranges(self.copy.grain, partitions, _SHOWN)
        told = f"columns of {self.copy.name} changed since its last delivery, in {shown}"
        return self.fail_for_person(told, partitions)

    def fail_for_person(self, told: str, partitions: list[str]) -> Failed:
        """Give up until a person accepts what the copy holds, with the command for it."""
        product = self.workspace.ledger.runs.get(self.item.run_id).product
        listed = format_partition_list(self.copy.grain, partitions)
        command = f"errata deliver {product} --baseline --partitions {listed}"
        return Failed(f"{told}: {command}", {CODE: CopyChanged.code, PARTITIONS: partitions, NEXT: command})
