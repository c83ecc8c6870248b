"""Read the rules for missing events that earlier runs of a product were sealed with."""

from __future__ import annotations

from errata.model.product import Product
from errata.planning.plan_context import SealedRules
from errata.workspace import Workspace

_MOST = 50
"""Runs that are looked at, the newest first."""


def read_sealed_rules(workspace: Workspace, product: Product) -> tuple[SealedRules, ...]:
    """Rules of the runs that computed something, newest first; a plan that nobody ran has added no event."""
    if product.reconstruct is None:
        return ()
    found = []
    for run in workspace.ledger.runs.list(product=product.name)[:_MOST]:
        manifest = workspace.ledger.runs.manifest(run.run_id)
        if manifest.reconstruct is not None and workspace.ledger.progress.attempts(run.run_id):
            found.append(SealedRules(run.run_id, manifest.reconstruct, manifest.code.version, manifest.code.zip_digest))
    return tuple(found)
