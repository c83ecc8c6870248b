"""The rebases of a run, as the ledger has them: read by everything that computes, measures, expects or cleans up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from errata.executor.desk import Desk
from errata.ledger import REBASE
from errata.model.codec import typed
from errata.model.manifest import InputPin
from errata.model.rebase import Rebase

__all__ = ["rebases_of", "rebases_told"]


def rebases_told(desk: Desk, run_id: str) -> tuple[Mapping[str, Any], ...]:
    """The facts themselves, oldest first."""
    found = [value for name, value in desk.ledger.facts(run_id).items() if name.startswith(REBASE)]
    return tuple(sorted(found, key=lambda one: int(one["n"])))


def rebases_of(desk: Desk, run_id: str) -> tuple[Rebase, ...]:
    """Every rebase with its pins, oldest first."""
    return tuple(_rebase(desk, one) for one in rebases_told(desk, run_id))


def _rebase(desk: Desk, told: Mapping[str, Any]) -> Rebase:
    pins = json.loads(desk.ledger.get_part(told["pins_part"]))
    return Rebase(
        n=told["n"],
        partitions=tuple(told["partitions"]),
        written=tuple(told["written"]),
        snapshots=tuple(told["snapshots"]),
        base_snapshot_id=told["base_snapshot_id"],
        expected_part=told["expected_part"],
        pins_part=told["pins_part"],
        inputs=tuple(typed(InputPin, pin) for pin in pins),
        chunks=tuple(told["chunks"]),
    )
