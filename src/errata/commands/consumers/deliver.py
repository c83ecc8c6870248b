"""`errata deliver`: pay what is owed."""

from __future__ import annotations

import time

from errata.approval.permissions import require_role
from errata.commands.consumers.outbox import item_views, suggest_payment
from errata.delivery.payment import pay
from errata.errors import NotFound
from errata.model.audit import Actor
from errata.model.consumer.outbox import ItemState
from errata.model.duration import to_seconds
from errata.model.product import Role
from errata.views.outbox import DeliverView
from errata.workspace import Workspace


def deliver(workspace: Workspace, actor: Actor, of: str | None, *, timeout: str = "5min") -> DeliverView:
    """Pay what is owed for a product, because of a run, or at all, and wait for attempts that are due in time.

    Intents that a killed process left open are settled first, because what they owe depends on it.
    """
    started = time.monotonic()
    require_role(workspace, actor, (Role.OPERATOR, Role.PUBLISHER), "deliver")
    product = workspace.project.products.get(of or "")
    table = product.target.table if product else None
    run_id = _find_run(workspace, of) if of and not product else None
    report = pay(
        workspace,
        actor,
        table=table,
        run_id=run_id,
        lineage=True,
        seconds=to_seconds(timeout),
        wait=True,
        tell=workspace.narrate,
    )
    items = workspace.ledger.outbox.list_open(table=table, run_id=run_id)
    return DeliverView(
        ok=not any(item.effect.is_debt or item.state is ItemState.FAILED for item in items),
        paid=len(report.paid),
        items=item_views(workspace, items),
        warnings=tuple(dict.fromkeys(report.warnings)),
        seconds=round(time.monotonic() - started, 3),
        next=suggest_payment(items, run_id or ""),
    )


def _find_run(workspace: Workspace, of: str) -> str:
    try:
        return workspace.ledger.runs.get(of).run_id
    except NotFound as error:
        products = ", ".join(sorted(workspace.project.products))
        raise NotFound(
            f"{of!r} is neither a product nor a run; expected one of {products}, or a run id",
            state="nothing was changed",
            hint="errata outbox lists what is owed, by run",
        ) from error
