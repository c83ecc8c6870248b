"""`errata standing`: decide in advance on runs of a product within limits, revoke that, and look at it."""

from __future__ import annotations

from collections.abc import Mapping

from errata.approval.permissions import require_person, require_role
from errata.approval.standing import evaluate_standing, read_product_digest
from errata.approval.standing_scope import ROWS, StandingScope
from errata.canonical import parse_digest
from errata.errors import ApprovalRefused, ErrataError, NotFound, UsageError
from errata.gate.verdict.thresholds import Limit
from errata.ledger import StandingRecord
from errata.model.audit import Actor
from errata.model.duration import parse_duration
from errata.model.product import Product, Role
from errata.text.escape import require_reason
from errata.views.late import StandingDecisionView, StandingsView, StandingUseView, StandingView
from errata.workspace import Workspace

_STATE = "nothing was changed"


def approve_standing(
    workspace: Workspace,
    actor: Actor,
    name: str,
    digest: str | None,
    note: str,
    *,
    oldest: str,
    partitions_per_run: int,
    runs_per_day: int,
    partitions_per_day: int,
    changes: Mapping[str, str],
    valid: str,
) -> StandingView:
    """Approve in advance the runs of `errata late` within these limits; without a digest, show what would be signed."""
    workspace.ledger.create()
    require_role(workspace, actor, (Role.APPROVER,), "standing approve")
    require_person(workspace, actor, (Role.APPROVER,), "standing approve", "")
    product = workspace.product(name)
    scope = StandingScope(
        workspace.project.name, name, read_product_digest(workspace, product), oldest, partitions_per_run,
        runs_per_day, partitions_per_day, dict(sorted(changes.items())), valid,
    )  # fmt: skip
    _check_scope(product, scope)
    given = parse_digest(digest or "")
    if given != scope.digest:
        found = (
            f"{given} is not the digest of what would be covered now" if given else "expected its digest, found none"
        )
        raise ApprovalRefused(
            f"standing approve of {name} was refused; {found}",
            state=f"{_STATE}; above is what would be signed" if not given else _STATE,
            hint=f"look at what it covers, then on a terminal: errata standing approve {name} …; a program passes "
            "--digest",
            standing=_build_draft(scope),
        )
    known = [one for one in workspace.ledger.standing.list(name) if one.digest == scope.digest]
    if known and actor.person in evaluate_standing(workspace, known[0], "").quorum.counted:
        return _build_view(workspace, known[0], already=True)
    made = workspace.ledger.standing.decide(name, scope.content, actor.person, "approved", note, actor)
    return _build_view(workspace, made)


def _check_scope(product: Product, scope: StandingScope) -> None:
    for duration in (scope.oldest, scope.valid):
        parse_duration(duration)
    if ROWS not in scope.changes:
        raise UsageError(
            "a standing approval without a limit on rows was refused; expected --change rows=5%, or another limit",
            state=_STATE,
            hint=f"errata standing approve {product.name} --change rows=5%",
        )
    for metric, limit in scope.changes.items():
        try:
            Limit.parse(limit)
        except ErrataError as error:
            raise UsageError(f"--change {metric}={limit} was refused; {error.message}", state=_STATE) from None
    if not product.target.grain.is_time:
        raise UsageError(
            f"standing approve of {product.name} was refused; its partitions have no age, expected a product by time",
            state=_STATE,
        )
    if not product.repeatable:
        raise UsageError(
            f"standing approve of {product.name} was refused; its transform is declared as not repeatable, so that "
            "each run needs a person",
            state=_STATE,
        )


def revoke_standing(workspace: Workspace, actor: Actor, name: str, note: str) -> StandingsView:
    """Revoke every standing approval of a product; runs under it that are not published need a person from now on."""
    require_reason("standing revoke", note, f"errata standing revoke {name}")
    require_role(workspace, actor, (Role.APPROVER, Role.PUBLISHER), "standing revoke")
    records = workspace.ledger.standing.list(name)
    if not records:
        raise NotFound(f"{name} has no standing approval", state=_STATE, hint=f"errata standing show {name}")
    made = [
        workspace.ledger.standing.decide(name, one.subject, actor.person, "revoked", note, actor) for one in records
    ]
    return StandingsView(tuple(_build_view(workspace, one) for one in made))


def show_standing(workspace: Workspace, name: str | None) -> StandingsView:
    """Standing approvals of a product or of all, with what used them."""
    if name is not None:
        workspace.product(name)
    with workspace.ledger.or_empty() as ledger:
        records = ledger.standing.list(name)
    return StandingsView(tuple(_build_view(workspace, one) for one in records))


def _build_draft(scope: StandingScope) -> StandingView:
    return StandingView(
        scope.product, scope.digest, scope.product_digest, scope.oldest, scope.partitions_per_run, scope.runs_per_day,
        scope.partitions_per_day, scope.changes, scope.valid, counts=False, why="nobody has approved it yet",
    )  # fmt: skip


def _build_view(workspace: Workspace, record: StandingRecord, *, already: bool = False) -> StandingView:
    state = evaluate_standing(workspace, record, "")
    scope, product = state.scope, workspace.project.products.get(record.product)
    is_current = product is not None and read_product_digest(workspace, product) == scope.product_digest
    why = state.why or ("" if is_current else "the product changed since, so that no run of it is covered")
    runs = workspace.ledger.runs
    return StandingView(
        record.product, record.digest, scope.product_digest, scope.oldest, scope.partitions_per_run, scope.runs_per_day,
        scope.partitions_per_day, scope.changes, scope.valid, counts=not why, why=why, already=already,
        decisions=tuple(StandingDecisionView(one.person, one.decision, one.at, one.note) for one in record.decisions),
        uses=tuple(
            StandingUseView(one.run_id, runs.get(one.run_id).state.value, one.partitions, one.at) for one in record.uses
        ),
        is_current=is_current,
    )  # fmt: skip
