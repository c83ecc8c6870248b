"""Render the verdict on a candidate as text: folded where it passes, in full where it does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from errata.cli.render.approval import render_mode, render_released
from errata.cli.render.layout import flow, format_columns, wrap
from errata.model.kind import RECONCILE, find_kind
from errata.model.run import find_judged_state
from errata.text.numbers import plural
from errata.views.checks import count_results

if TYPE_CHECKING:
    from errata.views import ValidateView

LISTED = 5
"""Most partitions of one check to list with their messages; the others are summarized as a range."""

Result = Mapping[str, Any]


def render_validation(view: ValidateView, width: int) -> list[str]:
    """Whether the candidate passed, every rule, and every partition that has a finding."""
    is_over = not find_kind(view.kind).changes_table
    word = find_judged_state(view.checks, passed=view.passed, changes_table=not is_over).replace("_", " ")
    judged = "main at" if view.kind == RECONCILE else "candidate"
    pieces = [f"{word} {view.run_id}", f"{judged} snapshot {view.snapshot_id}", "(already so)" if view.already else ""]
    lines = flow(pieces, width)
    lines += flow([f"{view.candidate}", plural(view.measured, "measurement")], width, "  ")
    groups = _group_by_rule(view.checks)
    lines += ["", *render_rules(view.checks, width)]
    for change in view.thresholds:
        lines += ["", *_render_threshold_change(change, width)]
    if view.conflicts:
        lines += ["", *wrap(", ".join(view.conflicts), width, "  ! written by others since planning: ")]
    for late in view.late_inputs:
        lines += ["", *wrap(late.text("value"), width, "  ! ")]
    if not view.passed and not is_over:
        lines += _render_way_out(groups, view.wave, width)
    if view.release_digest or (view.single_user and not is_over):
        lines += ["", *render_released(view.release_digest, None, width), *render_mode(view.single_user)]
    return lines


def render_rules(checks: Sequence[Result], width: int) -> list[str]:
    """One line per rule, and the partitions in which it has a finding."""
    groups = _group_by_rule(checks)
    name_width = min(max((len(name) for name in groups), default=0), 40)
    return [line for name, results in groups.items() for line in _render_rule(name, results, width, name_width)]


def _group_by_rule(checks: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for check in checks:
        groups.setdefault(str(check.get("name")), []).append(check)
    return groups


def _render_threshold_change(change: Mapping[str, Any], width: int) -> list[str]:
    lines = wrap(str(change["why"]), width, f"  thresholds changed by {change['person']}: ")
    widest = max((len(rule["name"]) for rule in change["changes"]), default=0)
    for rule in change["changes"]:
        moved = [
            f"{key} {_format_threshold(old)} → {_format_threshold(rule['after'][key])}"
            for key, old in rule["before"].items()
        ]
        lines += wrap(", ".join(moved), width, f"    {rule['name'].ljust(widest)}   ")
    return lines


def _format_threshold(value: Any) -> str:
    """A threshold as written in the product file."""
    if isinstance(value, Mapping):
        bounds = [str(value[key]) for key in ("operand", "upper") if value.get(key) is not None]
        return " ".join([str(value["operator"]), " to ".join(bounds)])
    return "none" if value is None else str(value)


def _render_rule(name: str, results: Sequence[Result], width: int, name_width: int) -> list[str]:
    other = [r for r in results if r.get("level") != "ok"]
    blocked = any(r.get("level") == "block" for r in other)
    open_warning = any(r.get("level") == "warn" and not r.get("accepted_by") for r in other)
    sign = "✗" if blocked else "!" if open_warning else "✓"
    if len(results) == 1 and results[0].get("partition") is None:
        said = str(results[0].get("message", ""))
        accepted = _format_accepted(results[0])
        return wrap(said + (f"   {accepted}" if accepted else ""), width, f"  {sign} {name.ljust(name_width)}   ")
    pieces = list(count_results(results))
    people = sorted({str(r["accepted_by"]) for r in other if r.get("accepted_by")})
    pieces += [f"accepted by {', '.join(people)}"] if people else []
    lines = flow(pieces, width, f"  {sign} {name.ljust(name_width)}   ")
    # accepted findings are counted, not listed again
    listed = [r for r in other if not r.get("accepted_by")]
    rows = [(str(r.get("partition") or "all"), str(r.get("value") or "–"), str(r.get("message", ""))) for r in listed]
    lines += format_columns(rows[:LISTED], width, indent="      ", right=(1,))
    if len(rows) > LISTED:
        rest = rows[LISTED:]
        names = " … ".join(dict.fromkeys((rest[0][0], rest[-1][0])))
        lines += wrap(f"{names}, with their values by --json", width, f"      and {len(rest)} more: ")
    return lines


def _format_accepted(result: Result) -> str:
    return f"accepted by {result['accepted_by']}" if result.get("accepted_by") else ""


def _render_way_out(groups: Mapping[str, Sequence[Result]], wave: int, width: int) -> list[str]:
    unpublished = "main is unchanged" if wave == 1 else f"wave {wave} is not published"
    blocked = [name for name, found in groups.items() if any(r.get("level") == "block" for r in found)]
    warned = [
        name
        for name, found in groups.items()
        if any(r.get("level") == "warn" and not r.get("accepted_by") for r in found)
    ]
    lines = [""]
    if blocked:
        lines += wrap(f"blocked by {', '.join(blocked)}: cannot be accepted; {unpublished}", width)
    if warned:
        lines += wrap(f"warned by {', '.join(warned)}: an approver may accept each by name; {unpublished}", width)
    return lines if len(lines) > 1 else []
