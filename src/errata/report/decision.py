"""Sections for the decision: masthead, scope and people, verdict, next step, digests. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from errata.model.diff import MetricMoves
from errata.model.partition import Grain, format_ranges
from errata.model.run import ANSWERED
from errata.report.copies import render_copy_tile
from errata.report.html import render_facts, render_masthead, render_section, render_table, render_tile, to_sentence
from errata.text.markup import Child, Markup, el
from errata.text.numbers import (
    format_change,
    format_exact,
    format_moment,
    format_percent,
    format_totals,
    plural,
)
from errata.views import PlanView, WaveTurnView
from errata.views.checks import count_results
from errata.views.report import ReportView

LISTED = 5
"""Most partitions of one rule to list with their messages; the others are counted."""

STATES = {
    "validated": ("good", "✓", "Passed the gate. Not published yet."),
    "rejected": ("bad", "✗", "Rejected by the gate. Nothing is published."),
    "needs_acceptance": ("warn", "!", "Warned by the gate. A person has to accept. Nothing is published."),
    "published": ("good", "✓", "Published."),
    "part_published": ("warn", "◐", "Published in part."),
    "publishing": ("warn", "◐", "Publication in progress."),
    "rolled_back": ("warn", "↺", "Published, then rolled back."),
    "superseded": ("warn", "»", "Superseded by a later correction."),
    "attested": ("good", "✓", "Main is as it should be. Nothing was changed."),
    "differs": ("bad", "✗", "Main differs. Nothing was changed."),
}


_TITLES = {"attest": "an attestation", "reconcile": "a reconciliation"}


def format_partitions(view: ReportView, names: Sequence[str]) -> str:
    """Partitions as ranges."""
    return format_ranges(Grain(view.plan.grain), names)


def find_headline_metric(view: ReportView) -> MetricMoves | None:
    """The metric for the headline: the first declared comparison."""
    metrics = view.diff.metrics if view.diff else ()
    return next((one for one in metrics if one.kind == "compare"), None)


def find_state(state: str, undone: int, other: tuple[str, str, str]) -> tuple[str, str, str]:
    """Kind, sign and words of a run's state; ``other`` for a state that has no words of its own."""
    kind, sign, words = STATES.get(state, other)
    if undone and state in ("published", "part_published"):
        return "warn", sign, f"{words} {plural(undone, 'partition')} rolled back since."
    return kind, sign, words


def render_head(view: ReportView) -> Markup:
    """Which correction this is, its state, and its overall effect."""
    undone = {name for one in view.releases if one.kind == "rollback" for name in one.partitions}
    other = ("warn", "•", to_sentence(view.state.replace("_", " ")))
    title = _TITLES.get(view.plan.kind, "a correction")
    return render_masthead(
        f"Report of {title}, run ", view.run_id, view.plan.product, view.plan.reason,
        find_state(view.state, len(undone), other), _list_tiles(view),
    )  # fmt: skip


def render_row_tiles(before: int, after: int, added: int, removed: int, changed: int, size: int) -> list[Child]:
    """Tiles of the rows; ``size`` is what the changed rows are a share of."""
    come = f"{format_exact(added)} added, {format_exact(removed)} removed"
    return [
        render_tile("Rows changed", format_exact(changed), f"{format_percent(changed, size)} of {format_exact(size)}"),
        render_tile("Rows after", format_exact(after), f"{format_exact(before)} before; {come}"),
    ]


def render_metric_tile(metric: MetricMoves | None) -> list[Child]:
    """The total of a metric before and after; nothing if a side has none."""
    if metric is None or metric.before is None or metric.after is None:
        return []
    old, new = format_totals(metric.before, metric.after)
    by = format_change(metric.before, metric.after)
    return [render_tile(metric.name, f"{old} → {new}", by if by != "–" else "")]


def _list_tiles(view: ReportView) -> list[Child]:
    tiles = [render_tile("Partitions", format_exact(len(view.partitions)), format_partitions(view, view.partitions))]
    tiles += render_copy_tile(view.copies)
    if view.diff is None:
        return tiles
    parts = view.diff.diff.partitions

    def total(name: str) -> int:
        return sum(getattr(part, name) for part in parts)

    tiles += render_row_tiles(*map(total, ("before_rows", "after_rows", "added", "removed", "changed", "rows")))
    tiles += render_metric_tile(find_headline_metric(view))
    if (found := view.diff.outside) is not None:
        touched = f"{format_exact(len(found.differing))} touched", format_partitions(view, found.differing)
        untouched = f"{format_exact(found.partitions)} untouched", "identical files, compared"
        tiles.append(render_tile("Outside the scope", *(touched if found.differing else untouched)))
    return tiles


def render_scope(view: ReportView) -> Markup:
    """What is corrected, why, by whom, from what."""
    plan = view.plan
    approvals = [
        el("li", f"{one.person} {one.decision} it, {format_moment(one.at)} UTC", f": {one.note}" if one.note else "",
           f" (break-glass: {one.break_glass})" if one.break_glass else "")
        for one in plan.approvals
    ]  # fmt: skip
    inputs = [
        el("li", el("b", one.name), f" {one.table or one.files}", f", {one.reference}" if one.reference else "",
           ", " + "; ".join(f"snapshot {span.snapshot_id} for {format_partitions(view, span.partitions)}"
                            for span in one.snapshots) if one.snapshots
           else f", snapshot {one.snapshot_id}{f' ({one.version})' if one.version else ''}" if one.snapshot_id
           else f", {plural(one.file_count, 'file')} pinned")
        for one in plan.inputs
    ]  # fmt: skip
    readers = dict.fromkeys((*plan.consumers, *(plan.touches.consumers if plan.touches else ())))
    touches = (*plan.touches.lines(), *plan.touches.notes) if plan.touches else ()
    found = [one.message for one in plan.verdicts if one.message.partition(":")[0] in plan.consumers]
    planned = format_partitions(view, plan.partitions)
    only = (
        f" (computed so far: {format_partitions(view, view.partitions)})"
        if len(view.partitions) != len(plan.partitions)
        else ""
    )
    return render_section(
        "Scope and reason",
        render_facts(
            [
                ("Reason", plan.reason),
                ("Table", plan.table),
                ("Partitions", f"{format_exact(len(plan.partitions))}: {planned}{only}"),
                ("Asked by", f"{plan.requested_by}, {format_moment(plan.planned_at)} UTC"),
                ("Approved by", el("ul", approvals) if approvals else "nobody yet"),
                ("Approvals", _describe_quorum(plan)),
                ("Released by", _describe_release(plan)),
                ("Break-glass", _render_break_glass(plan)),
                ("Computed by", f"{plan.code.get('call', '')} {plan.code.get('version', '')}"),
                ("Read from", el("ul", inputs)),
                ("Set aside", el("ul", [el("li", el("b", rule), f": {why}") for rule, why in plan.overrides.items()])
                 if plan.overrides else None),
                ("Supersedes", plan.supersedes),
                ("Rules changed", el("ul", [el("li", change.text()) for change in plan.rules_changed])
                 if plan.rules_changed else None),
                ("Touches", el("ul", [el("li", line) for line in touches]) if touches else None),
                ("Readers", ", ".join(readers)),
                ("Consumers", el("ul", [el("li", line) for line in found]) if found else None),
                ("Mode", "single-user: one person may do everything" if plan.single_user else None),
            ]
        ),
        name="scope",
    )  # fmt: skip


def _describe_quorum(plan: PlanView) -> str | None:
    found = plan.quorum
    return found.told if found and (found.needed > 1 or not found.met) else None


def _describe_release(plan: PlanView) -> str | None:
    if plan.release is None:
        return None
    one = plan.release
    who = "a clean gate" if one.kind == "automatic" else one.person
    note = f": {one.note}" if one.note else ""
    return f"{who}, {format_moment(one.at)} UTC{note}" + (f" (no longer counts: {one.void})" if one.void else "")


def _render_break_glass(plan: PlanView) -> Markup | None:
    if plan.break_glass is None:
        return None
    one = plan.break_glass
    said = f"{one.person} decided alone to {one.deed}, {format_moment(one.at)} UTC: {one.why} (alarm {one.alarm})"
    return el("span", el("b", "!", aria_hidden="true"), f" {said}", class_="mark bad")


def render_verdict(view: ReportView) -> Markup:
    """Every rule of the gate, folded where it passes, and who accepted what does not."""
    passed = "passed" if view.verdict.passed else "did not pass"
    when = f"judged by {view.judged_by}, {format_moment(view.judged_at)} UTC"
    lead = f"The candidate {passed}: {when}, on {plural(view.verdict.measured, 'measurement')}."
    return render_section(
        "Verdicts",
        render_rules(view.verdict.checks),
        _render_accepted(view),
        _render_thresholds(view),
        name="verdicts",
        lead=lead,
    )


def render_rules(checks: Iterable[Mapping[str, Any]]) -> Markup:
    """Every rule of the gate in one table, worst first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for check in checks:
        groups.setdefault(str(check.get("name")), []).append(check)
    worst = sorted(groups.items(), key=lambda item: -max(_rank_check(one) for one in item[1]))
    rows = [_rule_cells(name, found) for name, found in worst]
    return render_table(["Rule", "Result", "Found"], rows, caption="Rules of the gate", classes="rules stack")


def _rank_check(check: Mapping[str, Any]) -> int:
    level = check.get("level")
    return 3 if level == "block" else 0 if level == "ok" else 1 if check.get("accepted_by") else 2


def _rule_cells(name: str, found: Sequence[Mapping[str, Any]]) -> list[Child]:
    weight = max(_rank_check(one) for one in found)
    kind, sign, word = (
        ("good", "✓", "ok"), ("warn", "!", "accepted"), ("warn", "!", "warns"), ("bad", "✗", "blocks")
    )[weight]  # fmt: skip
    other = [one for one in found if one.get("level") != "ok"]
    if len(found) == 1:
        said: Child = str(found[0].get("message", ""))
    else:
        counted = ", ".join(count_results(found))
        listed = [
            el("li", el("b", str(one.get("partition") or "all")), " ", str(one.get("message", ""))) for one in other
        ]
        more = len(listed) - LISTED
        said = [
            counted,
            el(
                "ul",
                listed[:LISTED],
                el("li", f"and {format_exact(more)} more, in the JSON of this report") if more > 0 else None,
            )
            if listed
            else None,
        ]
    return [name, el("span", el("b", sign, aria_hidden="true"), f" {word}", class_=f"mark {kind}"), said]


def _render_accepted(view: ReportView) -> Markup | None:
    if not view.accepted:
        return None
    rows = [[one.check, one.why, one.person, f"{format_moment(one.at)} UTC"] for one in view.accepted]
    head = ["Rule", "Why it is right", "Person", "When"]
    return el(
        "div",
        el("h3", "Accepted warnings"),
        render_table(head, rows, caption="Warnings a person answers for", classes="stack"),
    )


def _render_thresholds(view: ReportView) -> Markup | None:
    if not view.verdict.thresholds:
        return None
    rows = [
        [
            str(rule.get("name", "")),
            _format_threshold(rule.get("before")),
            _format_threshold(rule.get("after")),
            str(one.get("why", "")),
            str(one.get("person", "")),
        ]
        for one in view.verdict.thresholds
        for rule in one.get("changes", ())
    ]
    head = ["Rule", "Planned", "Judged by", "Why", "Person"]
    return el(
        "div",
        el("h3", "Thresholds changed since the plan"),
        render_table(head, rows, caption="Changed thresholds", classes="stack"),
    )


def _format_threshold(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format_threshold(item)}" for key, item in value.items() if item is not None)
    return "none" if value is None else str(value)


def render_kept_notes(view: ReportView) -> list[Child]:
    """What people wrote about the run, oldest first; no section if nobody did."""
    written = [el("li", el("b", one.person), f", {format_moment(one.at)} UTC: {one.note}") for one in view.kept_notes]
    return [render_section("Notes", el("ul", *written), name="notes")] if written else []


def render_next_step(view: ReportView) -> Markup:
    """The next command, how to undo, and a place to sign."""
    words = {
        "validated": "Publishing replaces these partitions for all readers in one commit. Until then they see the old "
        "numbers.",
        "rejected": "What blocks cannot be accepted. It needs a corrected run.",
        "needs_acceptance": "An approver may accept each warning by name and with a reason.",
        "published": "Readers see these numbers. They can be rolled back, whole or by partition.",
        "attested": "This run changes nothing. Its verdict holds for the snapshots and files that the plan pinned.",
        "differs": "This run changes nothing. A correction of these partitions is a plan of its own.",
    }.get(view.state, "")
    if view.turn is not None and view.turn.next is not None:
        words = _describe_waves(view.turn)
    done = [
        el(
            "li",
            f"{'Published' if one.kind == 'publish' else 'Rolled back'} by {one.person}, {format_moment(one.at)} UTC: "
            f"{format_partitions(view, one.partitions)}",
            f", snapshot {one.snapshot_id}" if one.snapshot_id else "",
            f" ({one.reason})" if one.kind == "rollback" else "",
        )
        for one in view.releases
    ]
    return render_section(
        "What happens next",
        el("ul", done) if done else None,
        el("p", words) if words else None,
        _render_waves(view),
        [el("pre", el("code", command)) for command in view.next],
        *([] if view.state in ANSWERED else [_render_undo(view), _render_signature(view)]),
        name="next",
    )


def _describe_waves(turn: WaveTurnView) -> str:
    apart = "" if turn.pause == "0s" else f", with {turn.pause} between two waves"
    return (
        f"The run is published in {turn.of} waves, {turn.order} first{apart}. What has not gone yet keeps the old "
        "numbers."
    )


def _render_waves(view: ReportView) -> Markup | None:
    """Every wave of the run, and the next one."""
    turn = view.turn
    if turn is None:
        return None
    rows = [
        [
            str(one.n),
            format_partitions(view, one.partitions),
            one.state.replace("_", " "),
            f"{format_moment(one.visible_at)} UTC" if one.visible_at else "",
        ]
        for one in view.waves
    ]
    when = f"The next wave may go at {format_moment(turn.not_before)} UTC." if turn.not_before else ""
    said = f"No wave is published: {turn.stopped}." if turn.stopped else when
    return el(
        "div",
        el("h3", "Waves"),
        render_table(["Wave", "Partitions", "State", "Visible"], rows, caption="Waves of the run", classes="stack"),
        el("p", said) if said else None,
    )


def _format_window(text: str) -> str:
    """A duration in words: 30d is 30 days."""
    number, unit = text.rstrip("abcdefghijklmnopqrstuvwxyz"), text.lstrip("0123456789")
    word = {"h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}.get(unit)
    return plural(int(number), word) if word and number.isdecimal() else text


def _render_undo(view: ReportView) -> Markup:
    return el(
        "p", f"A publication can be rolled back for {_format_window(view.undo)}, by errata rollback.", class_="dim"
    )


def _render_signature(view: ReportView) -> Markup:
    lines = [el("div", el("span", word), class_="rule") for word in ("Name", "Date", "Signature")]
    return el(
        "div",
        el("p", el("b", "Reviewed"), " — run manifest ", el("code", view.plan.manifest_digest)),
        el("div", lines, class_="lines"),
        el("p", "Errata records decisions by its commands; a signature here is for your own files.", class_="dim"),
        class_="sign-here",
    )


def render_digests(view: ReportView) -> Markup:
    """The digests that this page is bound to."""
    pairs: list[tuple[str, Child]] = [("Run", el("code", view.run_id))]
    pairs += [(to_sentence(name).removesuffix("."), el("code", text)) for name, text in view.digests.items() if text]
    return el(
        "footer",
        el("h2", "Digests", id="digests"),
        render_facts(pairs),
        el(
            "p",
            f"Made {format_moment(view.made_at)} UTC by Errata from the ledger and two snapshots of {view.plan.table}. "
            "The same numbers: ",
            el("code", f"errata report {view.run_id} --json"),
            class_="dim",
        ),
    )
