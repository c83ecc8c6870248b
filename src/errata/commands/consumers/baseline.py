"""`errata deliver --baseline`: compare copies with main, and accept what they hold as their beginning."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from errata.approval.permissions import require_person, require_role
from errata.canonical import canonical_bytes
from errata.delivery.copies.baseline import ComparedCopy, accept_copy, compare_copy
from errata.delivery.copies.copy_delivery import CODE
from errata.errors import CopyChanged, NotFound, UsageError
from errata.ledger import OutboxItem
from errata.model.audit import Actor
from errata.model.consumer.outbox import Effect, ItemState
from errata.model.copy.declaration import REFRESH
from errata.model.copy.receipt import BASELINE, describe_contents
from errata.model.partition import format_partition_list, parse_list
from errata.model.product import Product, Role
from errata.views.copies import BaselineView
from errata.workspace import Workspace

_DECIDERS = (Role.PUBLISHER, Role.APPROVER)
_LOOKERS = (Role.OPERATOR, *_DECIDERS)


def accept_baseline(
    workspace: Workspace,
    actor: Actor,
    product: str,
    partitions: str | None,
    *,
    copy: str | None = None,
    reason: str | None = None,
) -> BaselineView:
    """Show what the copies of a product hold, compared with main; with a reason, accept it.

    What failed because nobody had accepted it is tried again by the next payment.
    """
    found = workspace.project.products.get(product)
    if found is None or not found.target.copies:
        raise NotFound(f"{product} is not a product with copies", state="nothing was changed", hint="errata check")
    require_role(workspace, actor, _DECIDERS if reason else _LOOKERS, "deliver --baseline", persons=bool(reason))
    if reason:
        require_person(workspace, actor, _DECIDERS, "deliver --baseline", "")
    # it may be the first thing that is recorded, before any plan
    workspace.ledger.create()
    names = parse_list(found.target.grain, partitions) if partitions else None
    # one that reads the lake itself has no rows of its own to begin with
    wanted = [one for one in found.target.copies if copy in (None, one.name) and one.mode != REFRESH]
    if not wanted:
        known = ", ".join(one.name for one in found.target.copies if one.mode != REFRESH) or "none"
        told = f"{product} has no copy {copy or 'with rows of its own'}; expected one of {known}"
        raise UsageError(told, state="nothing was changed")
    compared = [compare_copy(workspace, found, one, names) for one in wanted]
    retried: list[OutboxItem] = []
    for one in compared if reason else ():
        _accept(workspace, actor, product, one, reason or "")
        retried += _retry_refused(workspace, actor, one)
    return BaselineView(
        product=product,
        grain=found.target.grain.value,
        snapshot_id=compared[0].snapshot_id,
        copies=tuple(one.view for one in compared),
        is_accepted=bool(reason),
        reason=reason or "",
        retried=tuple(str(item.item_id) for item in retried),
        next=_suggest(found, names, copy, is_accepted=bool(reason)),
    )


def _accept(workspace: Workspace, actor: Actor, product: str, compared: ComparedCopy, reason: str) -> None:
    publication = f"baseline-{secrets.token_hex(8)}"
    shown = compared.view
    body = {
        "product": product,
        "copy": compared.copy.name,
        "marker": publication,
        "snapshot_id": compared.snapshot_id,
        "partitions": len(shown.partitions),
        "differing": list(shown.differing),
        "contents": workspace.ledger.parts.put(canonical_bytes(describe_contents(compared.contents))),
        "reason": reason,
    }
    # the decision first: the record of the warehouse must not say something that nobody answers for
    workspace.ledger.audit.note(None, actor, BASELINE, body)
    accept_copy(workspace, compared, publication)


def _retry_refused(workspace: Workspace, actor: Actor, compared: ComparedCopy) -> tuple[OutboxItem, ...]:
    """Let items be tried again that failed because the copy held something that nobody had accepted."""
    failed = workspace.ledger.outbox.list(states=[ItemState.FAILED])
    mine = [one for one in failed if one.effect is Effect.COPY and one.consumer == compared.copy.name]
    refused = {one.item_id for one in mine if one.progress.get(CODE) == CopyChanged.code}
    return workspace.ledger.outbox.retry(refused, actor) if refused else ()


def _suggest(product: Product, names: Sequence[str] | None, copy: str | None, *, is_accepted: bool) -> tuple[str, ...]:
    if is_accepted:
        return (f"errata deliver {product.name}",)
    scope = f" --partitions {format_partition_list(product.target.grain, names)}" if names else ""
    only = f" --copy {copy}" if copy else ""
    return (f'errata deliver {product.name} --baseline{scope}{only} --reason "…"',)
