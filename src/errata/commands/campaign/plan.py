"""`errata plan --cascade`: plan a product and those that read it, and seal all of it under one digest.

Every member is planned as an ordinary run, on the tables as they are now. What it will read from another member is not
known yet and is left open; everything else is sealed, with fingerprints of what it reads and replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from errata.approval.permissions import require_role
from errata.approval.reservations import list_reservations
from errata.canonical import canonical_bytes, sha256
from errata.commands.campaign.dbt_steps import plan_dbt_steps
from errata.commands.campaign.show import campaign_plan_view
from errata.commands.plan.plan import draft_plan
from errata.errors import ErrataError, PlanRefused, UsageError
from errata.failpoints import failpoint
from errata.ledger import CampaignRecord
from errata.model.audit import Actor
from errata.model.campaign.campaign_manifest import FORMAT, PREFIX, Campaign, LeftOut, Member, SealedRead
from errata.model.graph.read_rule import ReadRule, rule_of_pin
from errata.model.kind import find_kind
from errata.model.manifest import InputPin, Manifest
from errata.model.partition import format_ranges, sort_oldest_first
from errata.model.product import Product, Role
from errata.model.run import ACTIVE
from errata.planning.build import Plan, product_slug
from errata.planning.campaign.choice import Choice, ChosenMember, choose_members, find_later
from errata.planning.plan_command import format_plan_command
from errata.planning.request import Request, resolve_partitions
from errata.text.numbers import format_moment, plural
from errata.views.campaign import CampaignPlanView
from errata.workspace import Workspace

_STATE = "nothing was planned; no table was touched"


@dataclass(frozen=True, slots=True)
class CampaignDraft:
    """A campaign before it is recorded."""

    campaign: Campaign
    plans: Mapping[str, Plan]  # by product
    notes: tuple[str, ...]


def plan_campaign(
    workspace: Workspace,
    actor: Actor,
    request: Request,
    *,
    only: Sequence[str] | None,
    without: Sequence[str],
    dry_run: bool,
) -> CampaignPlanView:
    """Plan and seal a campaign; the same request on unchanged tables and code gives the same campaign."""
    workspace.ledger.create()
    require_role(workspace, actor, (Role.REQUESTER,), "plan")
    _refuse_unfit(request, only, without)
    superseded = _find_superseded(workspace, request)
    try:
        draft = _draft_campaign(workspace, request, superseded, only, without)
    except ErrataError as error:
        error.state = error.state or _STATE
        raise
    while ended := _find_ended(workspace, draft.campaign):
        # the same campaign was given up: a new one that supersedes it, which changes the digest
        draft = replace(draft, campaign=replace(draft.campaign, supersedes=ended.campaign_id))
    content = canonical_bytes(draft.campaign)
    digest = sha256(content)
    campaign_id = f"{PREFIX}{workspace.now():%Y%m%d}-{product_slug(request.product)}-{digest[:8]}"
    known = next((one for one in workspace.ledger.campaigns.list() if one.digest == digest), None)
    if known is None:
        again = partial(_format_command, request, only, without)
        _refuse_reserved(workspace, draft.campaign, superseded, again)
    if dry_run:
        return campaign_plan_view(workspace, draft.campaign, digest, None, campaign_id=campaign_id, notes=draft.notes)
    failpoint("campaign.before_record")
    parts = {name: part for plan in draft.plans.values() for name, part in plan.parts.items()}
    verdicts = {
        name: [[v.rule, v.level, v.message, v.override] for v in plan.verdicts] for name, plan in draft.plans.items()
    }
    record, already = workspace.ledger.campaigns.record(
        campaign_id, content, parts=parts, actor=actor, body={"verdicts": verdicts, "notes": list(draft.notes)}
    )
    return campaign_plan_view(workspace, draft.campaign, digest, record, already=already, notes=draft.notes)


def _refuse_unfit(request: Request, only: Sequence[str] | None, without: Sequence[str]) -> None:
    if only is not None and without:
        raise UsageError("--only with --except was refused; expected one of the two", state=_STATE)
    if not find_kind(request.kind).changes_table:
        raise UsageError(
            f"--cascade with kind {request.kind} was refused; it changes nothing that others could follow",
            state=_STATE,
        )
    if request.deadline is not None:
        raise UsageError("--cascade with --deadline was refused; a deadline is a question about one run", state=_STATE)


def _find_superseded(workspace: Workspace, request: Request) -> CampaignRecord | None:
    """The campaign that the request replaces; None if it replaces a run or nothing."""
    return workspace.ledger.campaigns.find(request.supersede) if request.supersede else None


def _find_ended(workspace: Workspace, campaign: Campaign) -> CampaignRecord | None:
    digest = sha256(canonical_bytes(campaign))
    return next(
        (
            one
            for one in workspace.ledger.campaigns.list()
            if one.digest == digest and (one.state != "open" or one.is_expired)
        ),
        None,
    )


def _draft_campaign(
    workspace: Workspace,
    request: Request,
    superseded: CampaignRecord | None,
    only: Sequence[str] | None,
    without: Sequence[str],
) -> CampaignDraft:
    root = workspace.product(request.product)
    scope = resolve_partitions(request, root.target.grain)
    choice, partitions = _locate_members(workspace, root, scope, only, without)
    runs = _list_superseded_runs(workspace, superseded)
    plans = {
        one.product.name: _plan_member(workspace, request, one.product, partitions, runs, superseded)
        for one in choice.members
    }
    _refuse_refused(plans, request, only, without)
    members = tuple(
        _seal_member(workspace, one, plans[one.product.name].manifest, partitions) for one in choice.members
    )
    steps, notes = plan_dbt_steps(workspace, members)
    sealed = members[0].manifest
    campaign = Campaign(
        format=FORMAT,
        ledger_id=sealed.ledger_id,
        project=sealed.project,
        product=root.name,
        reason=request.reason,
        requested_by=sealed.requested_by,
        single_user=sealed.single_user,
        valid_for=workspace.project.campaign.valid_for,
        members=members,
        left_out=choice.left_out,
        supersedes=superseded.campaign_id if superseded else None,
        dbt=steps,
    )
    return CampaignDraft(campaign, plans, (*_list_notes(members, plans, choice.left_out), *notes))


def _locate_members(
    workspace: Workspace, root: Product, scope: Sequence[str], only: Sequence[str] | None, without: Sequence[str]
) -> tuple[Choice, dict[str, tuple[str, ...]]]:
    """The members, each with the touched partitions that its table has."""
    products, known, empty = workspace.project.products, dict[str, frozenset[str]](), list[str]()
    _refuse_gap(workspace, root, scope)
    while True:
        choice = choose_members(products, root.name, scope, only=only, without=without, empty=empty)
        found = {root.name: tuple(scope)}
        for one in choice.members[1:]:
            name, target = one.product.name, one.product.target
            if name not in known:
                state = workspace.engines.targets.read_target(target.table, target.column, target.grain, ())
                known[name] = frozenset(state.partitions)
            there = {partition for partition in known[name] if one.touched.contains(partition)}
            found[name] = sort_oldest_first(target.grain, there)
        none = [name for name, names in found.items() if not names]
        if not none:
            return choice, found
        empty += none


def _refuse_gap(workspace: Workspace, root: Product, scope: Sequence[str]) -> None:
    """Refuse a scope after which the product itself would be computed from what it was before."""
    later = find_later(workspace.project.products, root.name, scope)
    if later is None:
        return
    target = root.target
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, ())
    gap = sort_oldest_first(target.grain, {name for name in state.partitions if later.contains(name)} - set(scope))
    if gap:
        raise UsageError(
            f"{root.name} is computed from its own earlier output, so {format_ranges(target.grain, gap, 6)} follows "
            "from this correction; expected it in the scope",
            state=_STATE,
            hint=f'errata plan {root.name} --partitions {scope[0]}..{gap[-1]} --cascade --reason "…"',
        )


def _list_superseded_runs(workspace: Workspace, superseded: CampaignRecord | None) -> dict[str, str]:
    """Runs of the superseded campaign that are not over, by product."""
    if superseded is None:
        return {}
    members = workspace.ledger.members.list(superseded.campaign_id)
    runs = {product: workspace.ledger.runs.get(one.run_id) for product, one in members.items()}
    return {product: run.run_id for product, run in runs.items() if run.state in ACTIVE}


def _plan_member(
    workspace: Workspace,
    request: Request,
    product: Product,
    partitions: Mapping[str, Sequence[str]],
    runs: Mapping[str, str],
    superseded: CampaignRecord | None,
) -> Plan:
    is_root = product.name == request.product
    asked = request if is_root else Request(product.name, request.reason, request.requester)
    supersede = runs.get(product.name) if superseded or not is_root else request.supersede
    canary = request.canary if is_root else int("canary" in product.policy.require)
    wanted = replace(
        asked, start=None, end=None, partitions=partitions[product.name], overrides=request.overrides,
        supersede=supersede, canary=canary,
    )  # fmt: skip
    return draft_plan(workspace, wanted, with_reservations=False)


def _refuse_refused(
    plans: Mapping[str, Plan], request: Request, only: Sequence[str] | None, without: Sequence[str]
) -> None:
    refused = [
        (name, verdict) for name, plan in plans.items() for verdict in plan.verdicts if verdict.level == "refuse"
    ]
    if not refused:
        return
    name, first = refused[0]
    ways = list(dict.fromkeys(line for _, verdict in refused for line in verdict.look))
    if name != request.product:
        others = [one for one in only if one != name] if only is not None else None
        ways.append(f"plan without it: {_format_command(request, others, [*without, name])}")
    if not first.final:
        aside = _format_command(request, only, without, overrides=[first.rule])
        ways.append(f"or set {first.rule} aside, on the record: {aside}")
    raise PlanRefused(
        f"the campaign was refused by {plural(len(refused), 'rule')}: "
        + "; ".join(f"{product}: {verdict.rule}: {verdict.message}" for product, verdict in refused),
        state=_STATE,
        hint="\n".join(ways),
    )


def _format_command(
    request: Request,
    only: Sequence[str] | None,
    without: Sequence[str],
    *,
    overrides: Sequence[str] = (),
    supersede: str | None = None,
) -> str:
    """The command that was typed, with other members, more overrides or in place of a campaign."""
    if only is not None:
        members = f" --only {','.join(only)}" if only else f" --except {','.join(without)}"
    else:
        members = f" --except {','.join(without)}" if without else ""
    plan = format_plan_command(request, supersede=supersede, overrides=overrides)
    return f"{plan} --cascade{members}"


def _seal_member(
    workspace: Workspace,
    chosen: ChosenMember,
    manifest: Manifest | None,
    partitions: Mapping[str, Sequence[str]],
) -> Member:
    if manifest is None:
        raise UsageError(f"{chosen.product.name} cannot be planned: its table has no such partitions", state=_STATE)
    parents = {workspace.product(name).target.table: workspace.product(name) for name in chosen.after}
    reads, pins = [], []
    for pin in manifest.inputs:
        parent = parents.get(pin.location) if pin.kind == "table" and not pin.own else None
        if parent is not None:
            reads.append(_seal_read(workspace, pin, manifest, parent, partitions[parent.name]))
            # what a member publishes cannot be pinned yet
            pin = replace(pin, snapshot_id=None, fingerprints={}, files_part=None)
        elif pin.own:
            reads.append(_seal_own_read(workspace, pin, manifest))
        pins.append(pin)
    # a rebase would read what nobody approved, so a live write ends as a conflict
    publish = manifest.publish
    if publish.on_live_write == "live_wins":
        publish = replace(publish, on_live_write="conflict")
    live = tuple(source.name for source in chosen.product.inputs if source.drift == "live")
    return Member(
        product=chosen.product.name,
        after=chosen.after,
        manifest=replace(manifest, inputs=tuple(pins), publish=publish),
        reads=tuple(reads),
        live_inputs=live,
    )


def _seal_read(
    workspace: Workspace, pin: InputPin, manifest: Manifest, parent: Product, written: Sequence[str]
) -> SealedRead:
    """What a member reads of a table that another member writes, in partitions of that table."""
    target = parent.target
    grain = rule_of_pin(pin, manifest.target.grain).input_grain
    names = ReadRule(grain, target.grain).list_reads(pin.input_partitions)
    inside = frozenset(written)
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, names)
    if state.shared_files:
        raise UsageError(
            f"{manifest.product} cannot be a member; partitions of {target.table} share files, so what the campaign "
            "wrote cannot be determined",
            state=_STATE,
            hint=f"plan without it: --except {manifest.product}",
        )
    return SealedRead(
        input=pin.name,
        table=target.table,
        column=target.column,
        grain=target.grain,
        snapshot_id=state.base_snapshot_id,
        fingerprints={name: state.fingerprints[name] for name in names if name not in inside},
        from_run=parent.name,
        published=tuple(name for name in names if name in inside),
    )


def _seal_own_read(workspace: Workspace, pin: InputPin, manifest: Manifest) -> SealedRead:
    """What a member reads of its own earlier output, without the partitions that it computes itself."""
    target, scope = manifest.target, frozenset(manifest.partitions)
    names = tuple(name for name in pin.input_partitions if name not in scope)
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, names)
    return SealedRead(
        pin.name, target.table, target.column, target.grain, state.base_snapshot_id,
        {name: state.fingerprints[name] for name in names},
    )  # fmt: skip


def _refuse_reserved(
    workspace: Workspace, campaign: Campaign, superseded: CampaignRecord | None, format_command: Callable[..., str]
) -> None:
    """Refuse members whose partitions another approved campaign has reserved."""
    for member in campaign.members:
        for one in list_reservations(workspace, member.manifest.target.table):
            both = set(one.partitions) & set(member.manifest.partitions)
            if both and (superseded is None or one.campaign_id != superseded.campaign_id):
                grain = member.manifest.target.grain
                raise PlanRefused(
                    f"the campaign was refused; {one.campaign_id} has reserved {format_ranges(grain, both, 6)} of "
                    f"{member.product} until {format_moment(one.until)} UTC",
                    state=_STATE,
                    hint=f"errata status {one.campaign_id}\n"
                    f"or plan in its place: {format_command(supersede=one.campaign_id)}",
                )


def _list_notes(members: Sequence[Member], plans: Mapping[str, Plan], left_out: Sequence[LeftOut]) -> tuple[str, ...]:
    """What the approver should know beside the members."""
    apart = {one.product for one in left_out}
    notes = []
    for member in members:
        manifest = plans[member.product].manifest
        if manifest is not None and manifest.publish.on_live_write == "live_wins":
            notes.append(f"{member.product}: a live write ends as a conflict; live_wins does not apply in a campaign")
        notes += [f"{member.product}: input {name} is read as it is when it starts" for name in member.live_inputs]
    if apart:
        notes.append("members that read a product that is left out read it as it is")
    return tuple(notes)
