"""`errata late`: look once for late data, and report it, plan it, or also run it under a standing approval.

For cron or a scheduler: every call looks again, continues what an earlier one left, and does at most one run for each
product. The steps are those of the other commands, with their checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from errata.approval.standing import StandingState, find_current_standing, read_product_digest
from errata.approval.standing_scope import is_in_window
from errata.commands.compute.run import run_chunks
from errata.commands.look.stale import keep_reading, list_claimed, list_plannable, read_stale
from errata.commands.plan.plan import make_plan
from errata.commands.publish.publish import publish_run
from errata.commands.publish.validate import validate_run
from errata.commands.situation import suggest_steps
from errata.errors import ErrataError, UsageError
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.model.campaign.campaign_manifest import PREFIX
from errata.model.partition import format_ranges
from errata.model.product import Late, Product, Role
from errata.model.product.late import REPORT, RUN
from errata.model.run import ACTIVE, RunState
from errata.planning.request import Request
from errata.staleness.settling import notice_stale, read_change_times, split_settled, to_now_ms
from errata.views.late import LateProductView, LateView
from errata.workspace import Workspace


def look_for_late_data(workspace: Workspace, actor: Actor, name: str | None, *, parallel: int = 2) -> LateView:
    """Look at one product, or at all that say what to do about late data."""
    products = [workspace.product(name)] if name else [*workspace.project.products.values()]
    chosen = [product for product in products if product.late is not None]
    if not chosen:
        where = f"the file of {name}" if name else "a product file"
        raise UsageError(
            f"late was refused; expected the key late in {where}, found none",
            state="nothing was looked at",
            hint="late: {act: report} in the product file; errata stale looks without it",
        )
    found = tuple(_look(workspace, actor, product, parallel) for product in chosen)
    return LateView(all(one.is_done for one in found), found)


def _look(workspace: Workspace, actor: Actor, product: Product, parallel: int) -> LateProductView:
    late = product.late or Late()
    view = LateProductView(product.name, product.target.grain.value, late.act, ())
    try:
        if late.act == RUN and (unfinished := _find_unfinished(workspace, product)):
            view = _work(workspace, actor, unfinished, replace(view, taken=unfinished.partitions), parallel)
            if view.why:
                return view
        return _act(workspace, actor, product, late, view, parallel)
    except ErrataError as error:
        return replace(view, why=error.message, next=error.hint or "")


def _act(
    workspace: Workspace, actor: Actor, product: Product, late: Late, view: LateProductView, parallel: int
) -> LateProductView:
    found = read_stale(workspace, product.name, None)
    keep_reading(workspace, found)
    stale = list_plannable(found)
    since = notice_stale(workspace, actor, product.name, stale)
    settled = split_settled(stale, late, read_change_times(workspace, found), since, to_now_ms(workspace.now()))
    claimed = list_claimed(workspace, product, settled.ready)
    held = {name for names in claimed.values() for name in names}
    ready = tuple(name for name in settled.ready if name not in held)
    view = replace(view, stale=stale, settling=settled.settling, claimed=claimed)
    if late.act == REPORT or not ready:
        return replace(view, next=_suggest_step(workspace, actor, claimed))
    try:
        return _plan(workspace, actor, product, late, ready, view, parallel)
    except ErrataError as error:
        return replace(view, why=error.message, next=error.hint or "")


def _suggest_step(workspace: Workspace, actor: Actor, claimed: Mapping[str, Sequence[str]]) -> str:
    """What a person does next about the first run or campaign that has stale partitions."""
    for name in claimed:
        steps = suggest_steps(workspace, actor, name) if not name.startswith(PREFIX) else (f"errata status {name}",)
        return next(iter(steps), f"errata status {name}")
    return ""


def _plan(
    workspace: Workspace,
    actor: Actor,
    product: Product,
    late: Late,
    ready: tuple[str, ...],
    view: LateProductView,
    parallel: int,
) -> LateProductView:
    """Plan the oldest of these partitions, and run them if a standing approval covers them."""
    standing, why = None, ""
    if late.act == RUN:
        standing, ready, why = _choose_covered(workspace, actor, product, ready)
    names = ready[: min(late.partitions, standing.scope.partitions_per_run) if standing else late.partitions]
    request = Request(product.name, _build_reason(product, names), actor.person, partitions=names)
    # the product file asks for this plan, so that the account of a scheduler may make it
    plan = make_plan(workspace, actor, request, dry_run=False, role=Role.OPERATOR, standing=standing)
    view = replace(view, taken=names, run_id=plan.run_id, state=plan.state, why=why)
    if standing is None:
        return replace(view, next=f"errata approve {plan.run_id}")
    view = replace(view, standing=standing.record.digest)
    return _work(workspace, actor, workspace.ledger.runs.get(plan.run_id), view, parallel)


def _choose_covered(
    workspace: Workspace, actor: Actor, product: Product, ready: Sequence[str]
) -> tuple[StandingState | None, tuple[str, ...], str]:
    """The standing approval to run under with the partitions that it covers; or why a person has to approve."""
    state = find_current_standing(workspace, product.name, actor.person)
    if state is None:
        return None, tuple(ready), "no standing approval: a person has to approve the run"
    if state.why:
        return None, tuple(ready), f"the standing approval {state.record.digest[:12]} does not count: {state.why}"
    if read_product_digest(workspace, product) != state.scope.product_digest:
        return None, tuple(ready), "the product changed since its standing approval, so that a person has to approve"
    covered = tuple(name for name in ready if is_in_window(state.scope, product.target.grain, name, workspace.now()))
    if not covered:
        old = format_ranges(product.target.grain, ready, 3)
        return None, tuple(ready), f"{old} is older than {state.scope.oldest}, which no standing approval covers"
    return state, covered, ""


def _work(workspace: Workspace, actor: Actor, run: RunRecord, view: LateProductView, parallel: int) -> LateProductView:
    """Compute, judge and publish a run under a standing approval; every step checks it again."""
    used = workspace.ledger.standing.find_used(run.run_id)
    view = replace(view, run_id=run.run_id, standing=used.digest if used else None)
    try:
        run_chunks(workspace, actor, run.run_id, parallel=parallel, max_chunks=None)
        if workspace.ledger.runs.get(run.run_id).state is not RunState.PART_PUBLISHED:
            validate_run(workspace, actor, run.run_id, {})
        publish_run(workspace, actor, run.run_id, None, by_itself=True)
    except ErrataError as error:
        state = workspace.ledger.runs.get(run.run_id).state.value
        return replace(view, state=state, why=error.message, next=error.hint or f"errata status {run.run_id}")
    return replace(view, state=workspace.ledger.runs.get(run.run_id).state.value)


def _find_unfinished(workspace: Workspace, product: Product) -> RunRecord | None:
    """A run under a standing approval that an earlier call did not finish; one that waits for a person is not."""
    waits = {RunState.REJECTED, RunState.NEEDS_ACCEPTANCE, RunState.PAUSED, RunState.FAILED}
    runs = workspace.ledger.runs.list(product=product.name, states=ACTIVE - waits) if workspace.ledger.exists() else ()
    return next((run for run in runs if workspace.ledger.standing.find_used(run.run_id)), None)


def _build_reason(product: Product, names: Sequence[str]) -> str:
    return f"late data: {format_ranges(product.target.grain, names, 3)}"
