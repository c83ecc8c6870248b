"""What a delivery puts on record: the receipt of a paid item, and what stopped one that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.canonical import canonical_bytes
from errata.delivery.copies.accepted_rows import AcceptedPartition
from errata.delivery.recovery_clock import find_commit_time
from errata.model.copy.checksum import EMPTY, Checksum, find_differing
from errata.model.copy.delivery import Loaded, Receipt, Swap
from errata.model.copy.marker import Delivered, MarkerState
from errata.model.copy.receipt import Acceptance, Measured, describe_present, describe_swapped
from errata.model.copy.table import CopyTable
from errata.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ReceiptWriter:
    """Writes receipts of one copy; ``attempts`` are the markers of the publication that are over, by attempt."""

    workspace: Workspace
    copy: CopyTable
    accepted: Mapping[str, AcceptedPartition]
    delivered: Mapping[str, Delivered]  # what the copy held by its own record, before the swap
    attempts: Mapping[int, MarkerState]

    def write_swapped(self, receipt: Receipt, swap: Swap, loaded: Loaded, measured: Measured) -> dict[str, Any]:
        """The receipt of a swap."""
        present = {name: one for name, one in self.delivered.items() if name not in receipt.partitions}
        accepted = self._list_acceptances()
        contents = describe_present(present, accepted, measured.read_back)
        contents |= describe_swapped(swap, accepted, self.delivered, measured)
        wanted = {name: one.checksum for name, one in receipt.partitions.items()}
        wanted |= {name: one.content.checksum for name, one in present.items()}
        told = receipt.to_dict() | self._write_contents(contents, wanted, measured.read_back)
        told["loaded"] = {
            "rows": loaded.rows, "files_as_is": loaded.files_as_is, "rows_as_is": loaded.rows_as_is,
        }  # fmt: skip
        told["snapshots"] = sorted({self.accepted[name].snapshot_id for name in receipt.partitions})
        told["seconds_since_commit"] = self._count_seconds(receipt)
        if not receipt.found:
            told["answer_lost"] = True
        return told

    def write_present(self, read_back: Mapping[str, Checksum]) -> dict[str, Any]:
        """The receipt of partitions that were there already."""
        contents = describe_present(self.delivered, self._list_acceptances(), read_back)
        wanted = {name: one.content.checksum for name, one in self.delivered.items()}
        by = sorted({one.marker.publication for one in self.delivered.values()})
        return self._write_contents(contents, wanted, read_back) | {"delivered_by": by}

    def _write_contents(
        self, contents: Mapping[str, Any], wanted: Mapping[str, Checksum], read_back: Mapping[str, Checksum]
    ) -> dict[str, Any]:
        found = {name: read_back.get(name, EMPTY) for name in wanted}
        since = find_differing(wanted, found, self.copy.tolerance)
        return {
            **describe_place(self.copy),
            "partitions": len(contents),
            "rows": sum(one.rows for one in wanted.values()),
            "contents": self.workspace.ledger.parts.put(canonical_bytes(contents)),
            "attempts": describe_attempts(self.attempts),
            **({"tolerance": self.copy.tolerance} if self.copy.tolerance else {}),
            **({"written_since": list(since)} if since else {}),
        }

    def _list_acceptances(self) -> dict[str, Acceptance]:
        return {name: Acceptance(one.publication, one.snapshot_id) for name, one in self.accepted.items()}

    def _count_seconds(self, receipt: Receipt) -> float:
        """How long readers of the copy had to wait after the newest commit that is delivered."""
        wanted = [self.accepted[name] for name in receipt.partitions]
        newest = self.workspace.ledger.publications.get(max(wanted, key=lambda one: one.sequence).publication)
        manifest = self.workspace.ledger.runs.manifest(newest.run_id)
        committed = find_commit_time(self.workspace, newest, manifest)
        return max(0.0, round((self.workspace.ledger.now_ms() - committed) / 1000, 3))


def describe_place(copy: CopyTable) -> dict[str, Any]:
    """Which copy it is about."""
    return {"warehouse": copy.warehouse, "table": copy.table}


def describe_attempts(attempts: Mapping[int, MarkerState]) -> list[list[Any]]:
    """Attempts of which the outcome is known: done, or void because they were fenced."""
    return [[attempt, state.value] for attempt, state in sorted(attempts.items())]
