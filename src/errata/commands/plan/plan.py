"""`errata plan`: read the tables, check the guardrails, seal the manifest in the ledger, tag the pinned snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from errata import traces
from errata.approval.permissions import require_role
from errata.approval.standing import StandingState, add_limits, build_cover
from errata.commands.plan.change_logs import read_change_logs
from errata.commands.plan.other_runs import list_active_runs, list_past_runs, list_reserving
from errata.commands.plan.read_references import read_reference
from errata.commands.plan.recordings import note_recordings
from errata.commands.plan.repair import draft_repairs
from errata.commands.plan.restore import read_restore
from errata.commands.plan.sealed_rules import read_sealed_rules
from errata.commands.plan.show import plan_view, refused_view
from errata.commands.plan.trials import find_trial
from errata.delivery.obligations import list_owed_by_plan
from errata.errors import ErrataError, NotFound, PlanRefused, UsageError
from errata.failpoints import failpoint
from errata.ledger import RunRecord
from errata.ledger.db.database import Tx
from errata.ledger.store.standing import use_standing
from errata.model.audit import Actor
from errata.model.duration import to_days
from errata.model.graph.read_rule import rule_of_input
from errata.model.kind import ATTEST, MIGRATE, RECONCILE, RESTORE, find_kind
from errata.model.manifest import Manifest
from errata.model.partition import Grain
from errata.model.product import Input, Product, Role
from errata.model.product.erasure import ErasurePin
from errata.model.product.rules import build_expected_rows, with_expected_rows
from errata.model.refs import DAY_MS, base_tag, input_tags
from errata.model.run import RunState
from errata.planning.build import Plan, build_own_input, build_plan
from errata.planning.catalog_refs import refuse_hidden_refs, refuse_lost_tags
from errata.planning.guardrail_result import GuardrailResult
from errata.planning.input_conditions import with_delete_condition, with_row_rules
from errata.planning.inputs.completeness import with_latest
from errata.planning.kinds import (
    NOTHING_REPAIRED,
    list_sources,
    refuse_unfit_kind,
    to_attest_product,
    to_reconcile_product,
    to_repair_product,
)
from errata.planning.kinds import NOTHING_RUNS as NOTHING_JUDGED
from errata.planning.plan_command import format_corrected_plan, format_plan_command, format_possible_plan
from errata.planning.request import Request, resolve_partitions
from errata.planning.restore import INPUT, strip_code
from errata.planning.restore import NOTHING_RUNS as NOTHING_RESTORED
from errata.planning.rule_check import refuse_flawed_rules
from errata.ports.tables import InputState, TagOutcome
from errata.publishing.streams.positions import read_streams
from errata.publishing.sweep import find_unknown_runs
from errata.views import PlanView
from errata.workspace import RunContext, Workspace


@traces.span("plan")
def make_plan(
    workspace: Workspace,
    actor: Actor,
    request: Request,
    *,
    dry_run: bool,
    role: Role = Role.REQUESTER,
    standing: StandingState | None = None,
) -> PlanView:
    """Plan a correction and seal it; the same request on unchanged tables and code gives the same run.

    With ``standing`` the run is sealed under a standing approval, or refused.
    """
    workspace.ledger.create()
    require_role(workspace, actor, (role,), "plan")
    request = _resolve_superseded(workspace, request)
    try:
        plan = draft_plan(workspace, request, standing)
    except UsageError as error:
        error.hint = error.hint or format_corrected_plan(request, workspace.product(request.product).target.grain)
        raise
    while ended := _find_ended_run(workspace, plan):
        # the same plan was cancelled or has expired: plan a new run that supersedes it, which changes the digest
        plan = draft_plan(workspace, replace(request, supersede=ended.run_id), standing)
    if plan.is_refused or plan.manifest is None:
        refused = [verdict for verdict in plan.verdicts if verdict.level == "refuse"]
        view = refused_view(workspace, plan)
        raise PlanRefused(
            f"the plan was refused by {len(refused)} of {len(plan.verdicts)} rules: "
            + "; ".join(f"{verdict.rule}: {verdict.message}" for verdict in refused),
            state="nothing was planned; no table was touched",
            hint=refusal_hint(
                refused,
                format_possible_plan(
                    request,
                    workspace.product(request.product).target.grain,
                    plan.partitions,
                    workspace.project.limits.max_partitions,
                    refused,
                ),
                format_plan_command(request, overrides=dict.fromkeys(verdict.rule for verdict in refused)),
            ),
            plan=view,
        )
    refuse_hidden_refs(workspace, plan.manifest.target.table)
    if dry_run:
        return plan_view(workspace, plan.manifest, plan.digest, run=None, plan=plan, run_id=plan.run_id)
    failpoint("plan.before_record")
    workspace.log_about(plan.run_id, plan.manifest)
    run, already = workspace.ledger.runs.record(
        plan.run_id,
        plan.content,
        product=plan.manifest.product,
        table=plan.manifest.target.table,
        partitions=plan.manifest.partitions,
        chunks=plan.manifest.chunks,
        parts=plan.parts,
        actor=actor,
        body={
            "verdicts": [[v.rule, v.level, v.message, v.override] for v in plan.verdicts],
            # for metrics and alerts; it is not part of the manifest
            **({"deadline": plan.deadline.by} if plan.deadline else {}),
        },
        cover=_build_cover(workspace, actor, plan.manifest, standing) if standing else None,
        owes=list_owed_by_plan(workspace, plan.manifest),
    )
    workspace.log_about(run.run_id, plan.manifest)  # the same plan may have been made before, under another id
    failpoint("plan.after_record")
    note_recordings(workspace, actor, run.run_id, plan.manifest, plan.parts)
    # after the record, so that every tag belongs to a run in the ledger; repeating the command creates missing tags
    pins = tag_pinned_snapshots(RunContext(workspace, actor, run, plan.manifest))
    failpoint("plan.after_pin")
    refuse_lost_tags(workspace, actor, run, pins, is_new=not already)
    return plan_view(workspace, plan.manifest, plan.digest, run=run, plan=plan, already=already, pins=pins)


def refusal_hint(refused: Sequence[GuardrailResult], possible: str | None, overriding: str) -> str:
    """What to look at first, then the plan that is possible, and last the override, if there is one."""
    lines = list(dict.fromkeys(line for verdict in refused for line in verdict.look))
    if possible:
        what = "then plan in its place" if "--supersede" in possible else "then plan what is possible"
        lines.append(f"{what}: {possible}")
    final = dict.fromkeys(verdict.rule for verdict in refused if verdict.final)
    last = f"no override sets aside {', '.join(final)}" if final else f"or override, on the record: {overriding}"
    return "\n".join([*lines, last])


def _resolve_superseded(workspace: Workspace, request: Request) -> Request:
    """Expand the superseded run to its full id; refuse a run of another product."""
    if request.supersede is None:
        return request
    run = workspace.ledger.runs.get(request.supersede)
    if run.product != request.product:
        raise UsageError(
            f"--supersede {run.run_id} was refused; expected a run of {request.product}, found one of {run.product}",
            state="nothing was planned",
        )
    return replace(request, supersede=run.run_id)


def _find_ended_run(workspace: Workspace, plan: Plan) -> RunRecord | None:
    given_up = workspace.ledger.runs.list(states={RunState.CANCELLED, RunState.EXPIRED})
    return next((run for run in given_up if run.manifest_digest == plan.digest), None)


def _build_cover(
    workspace: Workspace, actor: Actor, manifest: Manifest, standing: StandingState
) -> Callable[[Tx, RunRecord], RunRecord]:
    """What approves the run in the transaction that seals it."""
    cover = build_cover(workspace, workspace.product(manifest.product), manifest)
    return lambda tx, run: use_standing(tx, run, standing.record.digest, actor, cover)


def draft_plan(
    workspace: Workspace, request: Request, standing: StandingState | None = None, *, with_reservations: bool = True
) -> Plan:
    """Plan a request against the current tables and code; only reads, which every error says.

    A campaign is planned without looking at what campaigns reserved: it may have reserved it itself.
    """
    try:
        return _draft_plan(workspace, request, standing, with_reservations=with_reservations)
    except ErrataError as error:
        error.state = error.state or "nothing was planned; no table was touched"
        raise


def _draft_plan(
    workspace: Workspace, request: Request, standing: StandingState | None, *, with_reservations: bool
) -> Plan:
    product = workspace.product(request.product)
    if standing is not None:
        product = add_limits(product, standing.scope)
    grain = product.target.grain
    partitions, kind = resolve_partitions(request, grain), find_kind(request.kind)
    # first, so that a kind that does not fit or a misspelt name costs no look at the tables
    refuse_unfit_kind(request, product)
    if kind.runs_transform:
        may_leave_out = any(override.rule == "schema" for override in request.overrides)
        workspace.engines.check_transform(product, may_leave_out=may_leave_out)
    # read the target before the inputs: a false conflict is acceptable, a missed one is not
    target = workspace.engines.targets.read_target(product.target.table, product.target.column, grain, partitions)
    restored = None
    if request.kind == RESTORE:
        product, restored = read_restore(workspace, product, request, target, partitions)
    elif request.kind == ATTEST:
        product = to_attest_product(product)
    elif request.kind == RECONCILE:
        product = to_reconcile_product(product)
    repairs, repaired = draft_repairs(workspace, product, request, target.base_snapshot_id, partitions)
    if kind.only_copies:
        product = to_repair_product(product)
    if request.expected_rows is not None:
        product = replace(
            product, checks=with_expected_rows(product.checks, build_expected_rows(request.expected_rows))
        )
    inputs = (
        {INPUT: restored.facts}
        if restored
        else {
            source.name: build_own_input(source, product, target, partitions)
            if source.own
            else _read_input(workspace, product, source, grain, partitions)
            for source in product.inputs
        }
    )
    inputs = read_change_logs(workspace, product, inputs, partitions)
    if request.kind == MIGRATE:
        inputs |= _read_source_columns(workspace, product, inputs)
    product = with_delete_condition(with_row_rules(product, inputs))
    code, content = workspace.engines.code(product)
    if not kind.runs_transform:
        nothing = NOTHING_REPAIRED if kind.only_copies else NOTHING_RESTORED if restored else NOTHING_JUDGED
        code, content = strip_code(code, nothing), b""
    plan = build_plan(
        # a pseudonym, because a name in sealed bytes could never be erased
        replace(request, requester=workspace.ledger.people.alias(request.requester)),
        product,
        workspace.project,
        target,
        inputs,
        code,
        now=workspace.now(),
        ledger_id=workspace.ledger.ledger_id,
        unknown_runs=find_unknown_runs(workspace, product.target.table),
        is_first_run=all(run.table != product.target.table for run in workspace.ledger.runs.list()),
        active_runs=[
            *list_active_runs(workspace, product.target.table, request.supersede, partitions),
            *(list_reserving(workspace, product.target.table) if with_reservations else ()),
        ],
        history=list_past_runs(workspace, product),
        beside=_read_side_columns(workspace, product),
        held=restored.held if restored else None,
        origin=restored.origin if restored else None,
        trial=find_trial(workspace, product, code),
        sealed_rules=read_sealed_rules(workspace, product),
        streams=read_streams(workspace, product),
        repairs=repairs,
        repaired=repaired,
        erasure=_read_erasure_list(workspace, product),
    )
    plan = replace(plan, request=request)
    if plan.manifest is not None:
        refuse_flawed_rules(workspace, product, plan.manifest)
    return plan if plan.is_refused else replace(plan, parts={**plan.parts, code.zip_digest: content})


def _read_erasure_list(workspace: Workspace, product: Product) -> ErasurePin | None:
    """The list of erased subjects as it is now: runs read it at this snapshot, or at a later one."""
    return workspace.engines.erased.read_pin(product.target.subjects) if product.needs_list else None


def _read_input(
    workspace: Workspace, product: Product, source: Input, grain: Grain, partitions: Sequence[str]
) -> InputState:
    if source.has_own_snapshots:
        return read_reference(workspace, product, source, grain, partitions)
    rule = rule_of_input(source, grain)
    latest = with_latest(source, workspace.now())
    return workspace.engines.inputs.read_input(latest, rule.input_grain, rule.list_reads(partitions))


def _read_source_columns(
    workspace: Workspace, product: Product, inputs: Mapping[str, InputState]
) -> dict[str, InputState]:
    """The tables that a migration takes rows over from, with their columns; a recording declares them."""
    described = {
        source.name: workspace.engines.tables.describe(source.table).columns
        for source in list_sources(product)
        if source.table
    }
    return {
        name: replace(inputs[name], schemas=({column.name: column.type for column in columns},))
        for name, columns in described.items()
    }


def _read_side_columns(workspace: Workspace, product: Product) -> dict[str, tuple[str, ...] | None]:
    """Columns of the side tables; None for a table that does not exist yet."""
    found: dict[str, tuple[str, ...] | None] = {}
    for table in (product.publish.corrections, product.publish.versions):
        if table:
            try:
                found[table] = tuple(column.name for column in workspace.engines.tables.describe(table).columns)
            except NotFound:
                found[table] = None
    return found


def tag_pinned_snapshots(context: RunContext) -> tuple[TagOutcome, ...]:
    """Tag the base and every pinned input; safe to repeat. A missing permission is recorded as a warning."""
    if context.run.state not in (RunState.PLANNED, RunState.APPROVED):
        return ()
    days = to_days(context.workspace.project.retention.pins)
    keep, now = days * DAY_MS, int(context.workspace.now().timestamp() * 1000)
    wanted: dict[tuple[str, str], str] = {}
    if context.manifest.target.base_snapshot_id:
        wanted[context.manifest.target.table, base_tag(context.run_id)] = context.manifest.target.base_snapshot_id
    wanted |= input_tags(context.run_id, context.manifest.inputs)
    made = tuple(
        context.engines.pins.create(table, snapshot, tag, keep_ms=keep, now_ms=now)
        for (table, tag), snapshot in wanted.items()
    )
    if any(pin.outcome != "already" for pin in made):
        context.ledger.audit.note(
            context.run_id, context.actor, "pins.created", {"pins": [_pin_body(pin) for pin in made]}
        )
    return made


def _pin_body(pin: TagOutcome) -> Mapping[str, Any]:
    return {
        "table": pin.table,
        "tag": pin.tag,
        "snapshot_id": pin.snapshot_id,
        "outcome": pin.outcome,
        "warning": pin.warning,
    }
