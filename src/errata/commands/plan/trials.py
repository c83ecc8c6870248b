"""Trials on record, for products whose policy asks for one before a plan."""

from __future__ import annotations

from errata.canonical import digest_of
from errata.model.audit import Actor
from errata.model.manifest import Code, Manifest
from errata.model.product import Product
from errata.planning.plan_context import Trial
from errata.workspace import Workspace

TRIED = "try.computed"
DRY_RUN = "dry_run"


def record_trial(workspace: Workspace, actor: Actor, manifest: Manifest, *, is_blocked: bool) -> None:
    """Put a trial on record, where the policy of the product asks for one."""
    if DRY_RUN in workspace.product(manifest.product).policy.require:
        told = {"product": manifest.product, "code": _digest_code(manifest.code), "is_blocked": is_blocked}
        workspace.ledger.create()  # a trial may come before the first plan
        workspace.ledger.audit.note(None, actor, TRIED, told | {"partitions": list(manifest.partitions)})


def find_trial(workspace: Workspace, product: Product, code: Code) -> Trial | None:
    """The newest recorded trial of this code, where the policy of the product asks for one."""
    return find_trial_of(workspace, product.name, code) if DRY_RUN in product.policy.require else None


def find_trial_of(workspace: Workspace, product: str, code: Code) -> Trial | None:
    """The newest recorded trial of this code."""
    wanted = (product, _digest_code(code))
    entries = workspace.ledger.audit.readable_entries(actions=(TRIED,))
    found = [entry for entry in entries if (entry.body["product"], entry.body["code"]) == wanted]
    return Trial(found[-1].at, found[-1].actor.person, bool(found[-1].body["is_blocked"])) if found else None


def _digest_code(code: Code) -> str:
    return digest_of([code.call, code.zip_digest, code.config_digest])
