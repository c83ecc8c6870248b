"""Render campaigns: the plan, where each member is as a tree, and what a rollback does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from errata.cli.render.approval import render_mode
from errata.cli.render.layout import Branch, draw_tree, flow, format_labelled, render_next, render_warnings, wrap
from errata.cli.render.plan import render_approvals
from errata.cli.render.throttle import format_partitions, format_units
from errata.cli.render.waves import describe_waves
from errata.text.numbers import format_moment, plural

if TYPE_CHECKING:
    from errata.views.campaign import (
        CampaignPlanView,
        CampaignRollbackView,
        CampaignView,
        DbtStepView,
        MemberPlanView,
        MemberView,
    )
    from errata.views.status import CampaignLine, ReservationView

_WORDS = {"not_approved": "not approved", "needs_acceptance": "needs acceptance", "part_published": "part published"}
_UNDO_WORDS = {
    "can": "can go back",
    "cannot": "cannot go back",
    "left": "stays as it is",
    "nothing": "nothing to do",
    "rolled_back": "rolled back",
}


def render_campaign_plan(view: CampaignPlanView, width: int) -> list[str]:
    """Members in order with everything that the approver should know."""
    known = "   known before, nothing changed" if view.already else ""
    lines = flow([view.campaign_id, view.product, plural(len(view.members), "member")], width)
    lines += format_labelled("reason", [view.reason], width)
    lines += format_labelled("asked by", [view.requested_by], width)
    until = f"until {format_moment(view.valid_until)} UTC" if view.valid_until else ""
    lines += format_labelled("valid", [f"{view.valid_for} from planning", until], width)
    if view.supersedes:
        lines += format_labelled("supersedes", [view.supersedes], width)
    for n, member in enumerate(view.members, 1):
        lines += ["", *_render_member(n, member, width)]
    for n, step in enumerate(view.dbt, len(view.members) + 1):
        lines += ["", *_render_step(n, step, width)]
    if view.left_out:
        lines += [
            "",
            "left out",
            *(line for name, why in view.left_out.items() for line in wrap(why, width, f"  {name}: ", "    ")),
        ]
    lines += ["", *render_warnings(view.notes, width)] if view.notes else []
    lines += [
        "",
        f"campaign {view.campaign_digest}",
        *render_approvals(view.approvals, width, over=view.campaign_digest),
    ]
    lines += render_mode(view.single_user)
    if view.state == "dry-run":
        return [*lines, "dry run: nothing was recorded; the same command without --dry-run plans it"]
    return [*lines, f"state: {_describe_plan_state(view)}{known}"]


def _render_member(n: int, member: MemberPlanView, width: int) -> list[str]:
    after = f"after {' and '.join(member.after)}" if member.after else "first"
    lines = flow([f"{n}. {member.product}", after], width)
    scope = format_partitions(member.grain, member.partitions)
    lines += format_labelled("scope", [scope, format_units(len(member.partitions), member.grain)], width)
    goes = "when it is released" if member.manual else "by itself when the gate finds nothing"
    lines += format_labelled("replaces", [member.table, member.mode, goes], width)
    if member.waves:
        lines += format_labelled("waves", describe_waves(member.waves), width)
    if member.new_columns:
        new = ", ".join(f"{name} {kind}" for name, kind in member.new_columns.items())
        lines += format_labelled("columns", [new, "new, visible with the publication"], width)
    rows = f"about {plural(member.rows, 'row')}" if member.rows else ""
    gate = plural(member.checks, "rule") + " at the gate"
    lines += format_labelled("computes", [member.transform, plural(member.chunks, "chunk"), rows, gate], width)
    if member.quorum is not None:
        who = f"may approve: {', '.join(member.quorum.may)}" if member.quorum.may and not member.quorum.met else ""
        lines += format_labelled("approval", [f"owner {member.owner}", member.quorum.told, who], width)
    else:
        lines += format_labelled("approval", [f"owner {member.owner}"], width)
    return [*lines, *render_warnings(member.warnings, width, "  ! ")]


def _render_step(n: int, step: DbtStepView, width: int) -> list[str]:
    lines = flow([f"{n}. {step.select}", f"after {' and '.join(step.after)}", "dbt"], width)
    lines += format_labelled("builds", [step.relation, f"{step.start} … {step.end}"], width)
    return [*lines, *render_warnings([step.note], width, "  ! ")]


def _describe_plan_state(view: CampaignPlanView) -> str:
    lacking = [member.product for member in view.members if member.quorum is not None and not member.quorum.met]
    if view.state != "open":
        return view.state
    if not lacking:
        return "approved"
    return f"waiting for approval of {', '.join(lacking)}"


def render_campaign(view: CampaignView, width: int) -> list[str]:
    """The members as a tree, each below the one that it reads; one that reads several is written out once."""
    lines = flow([view.campaign_id, view.state.replace("_", " "), view.product], width)
    lines += wrap(view.reason, width, "  ")
    if view.state == "open":
        lines += wrap(f"members start until {format_moment(view.valid_until)} UTC", width, "  ")
    if view.superseded_by:
        lines += wrap(f"{view.superseded_by} takes the place of some members", width, "  ")
    lines += ["", *_render_tree(view, width)]
    if view.problems:
        lines += ["", *render_warnings((f"{name}: {why}" for name, why in view.problems.items()), width, "✗ ")]
    lines += ["", *render_approvals(view.approvals, width, over=view.campaign_digest)] if view.approvals else []
    return [*lines, *render_mode(view.single_user), *render_next(*view.next)]


def _render_tree(view: CampaignView, width: int) -> list[str]:
    written: set[str] = set()

    def add(tree: Branch, parent: str) -> None:
        for member in view.members:
            if parent in member.after:
                is_new = member.product not in written
                written.add(member.product)
                branch = tree.add(_describe_member(member) if is_new else f"{member.product}  (see above)")
                if is_new:
                    add(branch, member.product)

    root = view.members[0]
    tree = Branch(_describe_member(root))
    written.add(root.product)
    add(tree, root.product)
    return draw_tree(tree, width)


def _describe_member(member: MemberView) -> str:
    scope = member.partitions[0] if member.is_dbt else format_partitions(member.grain, member.partitions)
    state = _WORDS.get(member.state, member.state.replace("_", " "))
    told = f": {member.told}" if member.told else ""
    return f"{member.product}  {scope}  {state}{told}" + (f"  {member.run_id}" if member.run_id else "")


def render_campaign_rollback(view: CampaignRollbackView, width: int) -> list[str]:
    """What goes back, in the order in which it does."""
    lines = [
        f"{view.campaign_id}: "
        + (
            "rolled back, in this order"
            if view.acted
            else "nothing was changed; a rollback would do this, in this order"
        )
    ]
    for member in view.members:
        scope = format_partitions(member.grain, member.partitions) if member.grain and member.partitions else ""
        state = _UNDO_WORDS[member.state]
        lines += flow([member.product, scope, f"{state}: {member.why}" if member.why else state], width, "  ")
    return [*lines, *render_warnings(view.stale, width), *render_next(*view.next)]


def render_campaign_lines(
    campaigns: Sequence[CampaignLine], reserved: Sequence[ReservationView], width: int
) -> list[str]:
    """Campaigns in the list of runs, and the partitions that they keep for members."""
    lines: list[str] = []
    for one in campaigns:
        lines += flow([one.campaign_id, one.state, one.product, plural(one.members, "member")], width)
        lines += flow([f"{one.requested_by} {format_moment(one.planned_at)}"], width, "  ")
        lines += wrap(one.reason, width, "  ")
        for kept in reserved:
            if kept.campaign_id == one.campaign_id:
                scope = format_partitions(kept.grain, kept.partitions)
                until = f"reserved until {format_moment(kept.until)} UTC"
                lines += flow([kept.product, scope, until], width, "  ")
    return lines
