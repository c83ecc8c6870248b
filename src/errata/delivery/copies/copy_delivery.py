"""Pay ``copy``: make partitions of a copy equal to what the lake has accepted now.

The item is about partitions, not about the publication that caused it, so that a late item cannot bring what was rolled
back since. Each attempt has a marker in the warehouse. Before anything else, an attempt ends those of earlier ones:
whatever became of them is then known, and what they delivered is on record in the warehouse.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from errata.approval.quorum import evaluate_quorum
from errata.delivery.copies.accepted_rows import AcceptedPartition, open_accepted_rows, read_acceptance
from errata.delivery.copies.declared_copies import find_copy, open_copy
from errata.delivery.copies.linked_tables import refresh_linked_table
from errata.delivery.copies.receipts import ReceiptWriter, describe_attempts, describe_place
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
from errata.model.copy.checksum import EMPTY, Checksum, find_differing
from errata.model.copy.declaration import REFRESH
from errata.model.copy.delivery import Loaded, Receipt, Swap
from errata.model.copy.marker import (
    Content,
    Delivered,
    Marker,
    MarkerState,
    expect_contents,
    list_undelivered,
)
from errata.model.copy.receipt import Measured
from errata.model.copy.refusals import refuse_content
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
        return Failed(gone.message, {CODE: gone.code}, delivery.describe_stop(gone.code))
    except EngineError:
        # nothing was written, or the fence finds out now, or the next attempt does
        delivery.end_attempt()
        raise


@dataclass(frozen=True, slots=True)
class _Staged:
    """Rows that are loaded and compared, and the swap that is to bring them into the copy."""

    swap: Swap
    loaded: Loaded
    found: Mapping[str, Checksum]


@dataclass(frozen=True, slots=True)
class _Delivery:
    """One attempt."""

    workspace: Workspace
    item: OutboxItem
    copy: CopyTable
    copies: WarehouseCopies
    attempts: dict[int, MarkerState] = field(default_factory=dict)  # of this publication, as far as they are over

    @property
    def marker(self) -> Marker:
        """The claim's own marker: its fence grows with every claim and is never given twice."""
        return Marker(self.item.pub_id or self.item.key, self.item.fence)

    @property
    def cancel_command(self) -> str:
        """Ends a planned repair that cannot be made as it was sealed, with what it owes."""
        return f'errata cancel {self.item.run_id} --reason "…"'

    def pay(self) -> Payment:
        self.settle_earlier_attempts()
        accepted = read_acceptance(self.workspace, self.item.table, self.item.partitions)
        delivered = self.copies.read_delivered(self.copy, accepted)
        sequences = {name: one.sequence for name, one in accepted.items()}
        wanted = {name: accepted[name] for name in list_undelivered(sequences, delivered)}
        if not wanted:
            return Paid(
                self.write_receipts(accepted, delivered).write_present(
                    self.measure(delivered, _list_contents(delivered))
                )
            )
        if others := sorted(name for name in wanted if name in delivered and delivered[name].shape != self.copy.shape):
            return self.describe_other_shape(others)
        return self.replace_rows(self.stage(wanted, delivered), accepted, delivered)

    def repair(self) -> Payment:
        """Replace what an approved plan names, if everything is as it was when it was sealed."""
        self.settle_earlier_attempts()
        run = self.workspace.ledger.runs.get(self.item.run_id)
        sealed = read_repair(json.loads(self.workspace.ledger.parts.get(self.item.payload[REPAIR])))
        accepted = read_acceptance(self.workspace, self.item.table, sealed)
        delivered = self.copies.read_delivered(self.copy, sealed)
        if {one.marker.publication for one in delivered.values()} == {self.marker.publication}:
            return Paid(
                self.write_receipts(accepted, delivered).write_present(
                    self.measure(delivered, _list_contents(delivered))
                )
            )
        if run.state is not RunState.RUNNING:
            told = f"{run.run_id} is {run.state}: its repair is not made any more"
            return Failed(told, {CODE: StateRefused.code, NEXT: self.cancel_command})
        manifest = self.workspace.ledger.runs.manifest(run.run_id)
        if missing := evaluate_quorum(self.workspace, run, manifest).missing:
            return Failed(f"{run.run_id} is not approved any more: {'; '.join(missing)}", {CODE: ApprovalRefused.code})
        moved = find_moved(sealed, {name: one.sequence for name, one in accepted.items()})
        if changed := moved or find_delivered_since(sealed, delivered):
            why = "published or rolled back" if moved else "delivered to"
            shown = format_ranges(self.copy.grain, changed, _SHOWN)
            progress = {CODE: CopyChanged.code, PARTITIONS: list(changed), NEXT: self.cancel_command}
            told = f"{self.copy.name}: {shown} was {why} since the plan"
            return Failed(told, progress, self.describe_stop(CopyChanged.code, changed))
        wanted = {
            name: AcceptedPartition(one.accepted.sequence, one.snapshot_id, one.publication)
            for name, one in sealed.items()
        }
        staged = self.stage(wanted, delivered)
        planned = {name: one.accepted.checksum for name, one in sealed.items()}
        if differing := find_differing(planned, staged.found, self.copy.tolerance):
            raise refuse_content(self.copy, differing)
        # what it held at planning, not what the last delivery left: that is what somebody has changed
        swap = replace(staged.swap, expected={name: one.found for name, one in sealed.items()})
        return self.replace_rows(replace(staged, swap=swap), wanted, delivered)

    def replace_rows(
        self, staged: _Staged, accepted: Mapping[str, AcceptedPartition], delivered: Mapping[str, Delivered]
    ) -> Payment:
        """Open the marker, look once more at what is accepted, swap, and read back."""
        self.copies.open_marker(self.copy, self.marker)
        swap = staged.swap
        now = read_acceptance(self.workspace, self.item.table, swap.contents)
        if {name: one.sequence for name, one in now.items()} != {
            name: one.sequence for name, one in swap.contents.items()
        }:
            # published or rolled back while rows were loaded: what is staged is no longer what is accepted
            self.end_attempt()
            return Later(0, {})
        receipt = self.swap(swap)
        if receipt is None:
            return TryAgain("the answer to the commit was lost, and it did not land", {CODE: OutcomeUnknown.code})
        failpoint("copy.after_swap")
        self.attempts[receipt.marker.attempt] = MarkerState.DONE
        read_back = self.measure(accepted, {**_list_contents(delivered), **receipt.partitions})
        self.copies.drop_staging(self.copy, swap.staging)
        writer = self.write_receipts(accepted, delivered)
        return Paid(
            writer.write_swapped(receipt, swap, staged.loaded, Measured(staged.found, receipt.found, read_back))
        )

    def settle_earlier_attempts(self) -> None:
        """End attempts whose outcome nobody knows, and drop what they staged."""
        for found in self.copies.list_markers(self.copy, self.marker.publication):
            if found.marker.attempt < self.marker.attempt:
                # raises CopyLocked while a swap may still commit: then nothing is known, and nothing is done
                is_open = found.state is MarkerState.OPEN
                state = self.copies.fence(self.copy, found.marker) if is_open else found.state
                self.attempts[found.marker.attempt] = state
        for staging in self.copies.list_staging(self.copy, self.marker.publication):
            # those of a later attempt are in use: then this one is late itself
            if find_attempt(staging) < self.marker.attempt:
                self.copies.drop_staging(self.copy, staging)

    def stage(self, wanted: Mapping[str, AcceptedPartition], delivered: Mapping[str, Delivered]) -> _Staged:
        """Load the accepted rows, and compare them with those of the lake before anything is locked."""
        staging = name_staging(self.copy, self.marker.publication, self.marker.attempt)
        rows = open_accepted_rows(self.workspace.engines.lake_rows, self.copy, self.item.table, wanted)
        loaded = self.copies.load(self.copy, staging, rows)
        measured = rows.measure()
        found = self.copies.measure(self.copy, None, staging=staging)
        if differing := find_differing(measured, found, self.copy.tolerance):
            raise refuse_content(self.copy, differing)
        # the warehouse may recognise the rows of the lake in the copy by its own hash of those that are staged
        contents = {
            name: Content(one.sequence, measured.get(name, EMPTY).with_own_hash(found.get(name, EMPTY)))
            for name, one in wanted.items()
        }
        recorded = {name: delivered[name] for name in wanted if name in delivered}
        swap = Swap(self.marker, staging, contents, expect_contents(tuple(wanted), recorded), recorded)
        return _Staged(swap, loaded, found)

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

    def measure(self, partitions: Collection[str], contents: Mapping[str, Content]) -> Mapping[str, Checksum]:
        """What the copy holds now; ``contents`` is what it should hold."""
        known = {name: one.checksum for name, one in contents.items()}
        return self.copies.measure(self.copy, partitions, known=known) if partitions else {}

    def write_receipts(
        self, accepted: Mapping[str, AcceptedPartition], delivered: Mapping[str, Delivered]
    ) -> ReceiptWriter:
        """Describes for the record what this attempt did or found."""
        return ReceiptWriter(self.workspace, self.copy, accepted, delivered, self.attempts)

    def end_attempt(self) -> None:
        """Void the marker and drop staging, as far as the warehouse lets us; the next attempt does the rest."""
        try:
            self.attempts[self.marker.attempt] = self.copies.fence(self.copy, self.marker)
            self.copies.drop_staging(self.copy, name_staging(self.copy, self.marker.publication, self.marker.attempt))
        except ErrataError:
            pass  # what this attempt found is the news

    def describe_stop(self, code: str, changed: Collection[str] = ()) -> dict[str, Any]:
        """What stopped the delivery: partitions that somebody else wrote, and attempts that are over."""
        told = {**describe_place(self.copy), CODE: code, "attempts": describe_attempts(self.attempts)}
        return told | ({"changed": sorted(changed)} if changed else {})

    def describe_change(self, refused: CopyChanged) -> Failed:
        """Somebody else wrote the copy, or nobody has accepted what it held before its first delivery."""
        differing = list(refused.fields.get(PARTITIONS, []))
        if REPAIR in self.item.payload:
            shown = format_ranges(self.copy.grain, differing, _SHOWN)
            told = f"{self.copy.name} holds other rows than when the repair was planned, in {shown}"
            progress = {CODE: refused.code, PARTITIONS: differing, NEXT: self.cancel_command}
            return Failed(told, progress, self.describe_stop(refused.code, differing))
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
        progress = {CODE: CopyChanged.code, PARTITIONS: partitions, NEXT: command}
        return Failed(f"{told}: {command}", progress, self.describe_stop(CopyChanged.code, partitions))


def _list_contents(delivered: Mapping[str, Delivered]) -> dict[str, Content]:
    return {name: one.content for name, one in delivered.items()}
