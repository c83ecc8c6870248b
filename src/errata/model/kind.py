"""Kinds of runs: what each computes and may change, and the mode that its transform sees. Pure.

Kinds that correct are one behaviour under the names people use for it; the name is part of the sealed plan and of the
evidence. The others differ in what is written here, and in the guardrail ``kind``.
"""

from __future__ import annotations

from dataclasses import dataclass

from errata.model.context import Mode


@dataclass(frozen=True, slots=True)
class Kind:
    """What a run of a kind does. A run that changes nothing needs no approval, and can never be published."""

    mode: Mode = Mode.BACKFILL
    runs_transform: bool = True
    changes_table: bool = True
    only_copies: bool = False  # copies in warehouses get what is accepted; nothing is computed, main is not changed


ATTEST, BOOTSTRAP, MIGRATE, RECONCILE, RECONSTRUCT, REPAIR_COPIES, REPLAY, RESTORE = (
    "attest", "bootstrap", "migrate", "reconcile", "reconstruct", "repair_copies", "replay", "restore",
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "backfill": Kind(),
    "reprocess": Kind(),
    "restate": Kind(),
    "repair": Kind(),
    REPLAY: Kind(mode=Mode.REPLAY),
    BOOTSTRAP: Kind(),
    MIGRATE: Kind(),
    RECONSTRUCT: Kind(),
    RESTORE: Kind(runs_transform=False),
    REPAIR_COPIES: Kind(runs_transform=False, only_copies=True),
    ATTEST: Kind(mode=Mode.RECONCILIATION, changes_table=False),
    RECONCILE: Kind(mode=Mode.RECONCILIATION, runs_transform=False, changes_table=False),
}
"""Every kind that can be planned."""

CHECKING_KINDS = tuple(name for name, kind in KINDS.items() if not kind.changes_table)
"""Kinds that compare or judge main, and change nothing."""


def find_kind(name: str) -> Kind:
    """What a kind does; a plan that earlier code sealed under another name is a correction."""
    return KINDS.get(name, Kind())
