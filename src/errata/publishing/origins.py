"""Origins: the publications whose rows partitions hold, which a rollback reverses."""

from __future__ import annotations

from collections.abc import Sequence

from errata.ledger import RunRecord
from errata.workspace import Workspace


def find_origins(workspace: Workspace, run: RunRecord, scope: Sequence[str]) -> dict[str, list[str]]:
    """Publications whose rows these partitions hold, each with its partitions."""
    accepted = workspace.ledger.partitions.accepted(run.table, scope)
    found: dict[str, list[str]] = {}
    for name in scope:
        found.setdefault(accepted[name].origin_pub_id or accepted[name].pub_id, []).append(name)
    return found
