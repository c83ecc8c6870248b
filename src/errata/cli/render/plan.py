"""Render a plan and decisions on it as text, made for a decision within a minute. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from errata.cli.render.approval import (
    describe_waiting,
    render_break_glass,
    render_mode,
    render_quorum,
    render_released,
    render_void_approvals,
)
from errata.cli.render.layout import flow, format_labelled, pad, render_warnings, wrap
from errata.cli.render.publish_settings import describe_live_writes, describe_publish
from errata.cli.render.throttle import (
    ORDER_WORDS,
    format_partitions,
    format_units,
    render_first_steps,
    render_limits,
)
from errata.model.change_log.log_positions import format_position
from errata.model.kafka.topic_range import ASSUMED_RECORD_BYTES
from errata.model.kind import ATTEST, RECONCILE, find_kind
from errata.text.numbers import (
    format_count,
    format_duration,
    format_exact,
    format_moment,
    format_money,
    format_size,
    plural,
)

if TYPE_CHECKING:
    from errata.views import ApprovalView, ChunkView, DecisionView, InputView, LogView, PlanView

_OFFSETS_SHOWN = 4
_CHECKED = {ATTEST: "attests", RECONCILE: "judges"}
SIGNS = {"ok": "✓", "warn": "!", "refuse": "✗"}
REFUSED = "refused"
DRY_RUN = "dry-run"
SHAPES = 4


def render_plan(view: PlanView, width: int, *, already: bool = False) -> list[str]:
    """Everything a reviewer needs, most important first; a refused plan shows all verdicts and no next step."""
    refused = view.state == REFUSED or not view.run_id
    lines = [*_render_header(view, width), "", *_render_body(view, width), "", *_render_guardrails(view, width), ""]
    if refused:
        return lines[:-1]
    lines += _render_stages(view, width)
    lines.append(f"manifest {view.manifest_digest}")
    lines += wrap(("planned before, unchanged; " if already else "") + _describe_state(view), width)
    if view.approvals:
        lines += render_approvals(view.approvals, width, over=view.manifest_digest)
        # the state line of a planned run already says how many approvals are missing
        lines += (render_void_approvals if view.state == "planned" else render_quorum)(view.quorum, width)
    is_alone = not view.manual and view.kind not in _CHECKED
    lines += wrap("publishes by itself when the gate finds nothing", width) if is_alone else []
    lines += render_released(view.release_digest, view.release, width)
    return [*lines, *render_break_glass(view.break_glass, width)]


def _render_stages(view: PlanView, width: int) -> list[str]:
    """What each stage of the run reads and writes."""
    from errata.views.plan import ExplainedPlanView

    lines: list[str] = []
    for n, stage in enumerate(view.stages if isinstance(view, ExplainedPlanView) else (), 1):
        lines.append(f"  {n}. {stage.name}: {stage.command}")
        lines += wrap("; ".join(stage.reads), width, "       reads   ")
        lines += wrap("; ".join(stage.writes), width, "       writes  ")
    return [*lines, ""] if lines else []


def _render_header(view: PlanView, width: int) -> Iterator[str]:
    name = "Plan refused" if not view.run_id else f"Plan {view.run_id}"
    yield from flow([name, view.product, plural(len(view.partitions), "partition")], width)
    yield from wrap(format_partitions(view.grain, view.partitions), width, "Scope    ")
    yield from wrap(view.reason, width, "Reason   ")
    about = [f"asked by {view.requested_by}"]
    about += [f"at {format_moment(view.planned_at)} UTC"] if view.planned_at else []
    about += [f"kind {view.kind}"] if view.kind != "restate" else []
    about += [f"instead of {view.supersedes}"] if view.supersedes else []
    about += ["single-user project"] if view.single_user else []
    yield from flow(about, width, "         ")


def _render_body(view: PlanView, width: int) -> Iterator[str]:
    changes, only_copies = find_kind(view.kind).changes_table, find_kind(view.kind).only_copies
    yield from (_render_repairs if only_copies else _render_scope)(view, width)
    if view.new_columns:
        new = ", ".join(f"{name} {kind}" for name, kind in view.new_columns.items())
        told = f"{plural(len(view.new_columns), 'new column')}, which readers see with the publication and not before"
        yield from format_labelled("columns", [new, told], width)
    if changes and not only_copies:
        yield from _render_publication(view, width)
    if view.rewrite:
        yield from format_labelled("rewrites", _describe_rewrite(view.rewrite), width)
    yield from _render_inputs(view, width)
    yield from _render_origin(view, width)
    if not only_copies:
        yield from _render_computation(view, width)
    if changes:
        yield from _render_touches(view, width)
    if view.refs:
        yield from format_labelled("refs", view.refs, width)
    for pin in view.pins:
        if pin.get("warning"):
            yield from format_labelled("! pin", [f"{pin.get('table')}: {pin['warning']}"], width)
    shown = {verdict.rule for verdict in view.verdicts if verdict.override}
    for rule, why in view.overrides.items():
        if rule not in shown:
            yield from format_labelled("override", [f'{rule}="{why}"'], width)


def _render_scope(view: PlanView, width: int) -> Iterator[str]:
    """Partitions of main that are replaced, added or looked at."""
    total = len(view.partitions) - len(view.new_partitions) + view.untouched_partitions
    replaced = len(view.partitions) - len(view.new_partitions)
    scope = [f"{format_exact(replaced)} of {plural(total, 'partition')}", ORDER_WORDS.get(view.order, view.order)]
    kept = "rows; shared files are rewritten" if view.rewrite else "files untouched"
    others = plural(view.untouched_partitions, "other keeps its", "others keep their") + f" {kept}"
    if not find_kind(view.kind).changes_table:
        yield from format_labelled(_CHECKED[view.kind], [scope[0], "main is not changed"], width)
    else:
        yield from format_labelled("replaces", [", ".join(scope), others if view.untouched_partitions else ""], width)
        yield from _render_new_partitions(view, width)


def _render_computation(view: PlanView, width: int) -> Iterator[str]:
    """How the partitions are computed and checked, and what gets them afterwards."""
    is_assumed = any(source.kafka for source in view.inputs)
    yield from format_labelled("chunks", _describe_chunks(view.chunks, view.grain, is_assumed=is_assumed), width)
    yield from render_first_steps(view, width)
    yield from format_labelled("estimate", _describe_estimate(view), width)
    yield from render_limits(view, width)
    yield from _render_gate(view, width)
    yield from _render_clusters(view, width)
    yield from _render_sinks(view, width)
    yield from _render_copies(view, width)


def _render_inputs(view: PlanView, width: int) -> Iterator[str]:
    for n, source in enumerate(view.inputs):
        grain = source.grain or view.grain
        yield from format_labelled("" if n else "reads", _describe_input(source, grain), width)
        eras = [f"era {name}: {format_partitions(grain, found) or 'whole'}" for name, found in source.eras.items()]
        yield from format_labelled("", eras, width) if eras else ()
        for span in source.snapshots:
            names = format_partitions(view.grain, span.partitions)
            yield from format_labelled("", [f"@ {span.snapshot_id}", names], width)
        yield from format_labelled("", [f"takes out: {', '.join(source.row_rules)}"], width) if source.row_rules else ()


def _render_new_partitions(view: PlanView, width: int) -> Iterator[str]:
    if view.new_partitions:
        new = format_partitions(view.grain, view.new_partitions)
        yield from format_labelled("adds", [plural(len(view.new_partitions), "new partition"), new], width)


def _render_publication(view: PlanView, width: int) -> Iterator[str]:
    if mode := describe_publish(view.publish):
        yield from format_labelled("publish", mode, width)
    yield from format_labelled("live jobs", describe_live_writes(view.publish), width) if view.publish else ()


def _render_clusters(view: PlanView, width: int) -> Iterator[str]:
    """Where ``errata submit --start`` may start workers of this run."""
    for n, (target, sealed) in enumerate(view.clusters.items()):
        yield from format_labelled("" if n else "clusters", [f"{target} ({sealed})"], width)


def _render_sinks(view: PlanView, width: int) -> Iterator[str]:
    """What the transform would send elsewhere, and what this run does with it."""
    for n, (name, decision) in enumerate(view.sinks.items()):
        yield from format_labelled("" if n else "sinks", [f"{name} ({decision})"], width)


def _render_repairs(view: PlanView, width: int) -> Iterator[str]:
    """What is replaced in each copy; main is left alone."""
    for one in view.repairs:
        rows = f"{plural(one['copy_rows'], 'row')} there now, {plural(one['lake_rows'], 'row')} accepted"
        told = [one["copy"], format_partitions(view.grain, tuple(one["partitions"])), rows, "main is not changed"]
        yield from format_labelled("repairs", told, width)


def _render_copies(view: PlanView, width: int) -> Iterator[str]:
    """Tables in warehouses that are replaced after the publication."""
    if view.copies:
        yield from format_labelled("copies", list(view.copies), width)


def _render_touches(view: PlanView, width: int) -> Iterator[str]:
    """What reads the corrected partitions, who of them gets messages, and whom a person has to tell."""
    told = [*view.touches.lines()] if view.touches else []
    named = list(dict.fromkeys((*view.consumers, *(view.touches.consumers if view.touches else ()))))
    told += [one.text() for one in view.touches.tells] if view.touches else []
    left = [
        name for name in named if name not in {one.consumer for one in (view.touches.tells if view.touches else ())}
    ]
    told += [f"{', '.join(left)} (tell them: Errata does not)"] if left else []
    told += [] if named else ["no consumers are named"]
    for n, piece in enumerate(told):
        yield from format_labelled("" if n else "touches", [piece], width)
    for note in view.touches.notes if view.touches else ():
        yield from format_labelled("! touches", [note], width)


def _describe_rewrite(rewrite: Mapping[str, Any]) -> list[str]:
    amount = (
        f"up to {plural(rewrite['files'], 'file')}, {format_count(rewrite['rows'])} rows, "
        f"{format_size(rewrite['bytes'])}"
    )
    return [amount if rewrite["files"] else "no file is shared", str(rewrite["why"])]


def _describe_input(source: InputView, grain: str) -> list[str]:
    pieces = [source.location or source.name]
    if source.snapshots:
        pieces.append(f"{len(source.snapshots)} snapshots")
    elif source.snapshot_id:
        pieces.append(f"@ {source.snapshot_id}" + (f" ({source.version})" if source.version else ""))
    if source.reference or source.own:
        pieces.append(source.reference or "its own output")
    if source.partitions:
        pieces += [format_partitions(grain, source.partitions), format_units(len(source.partitions), grain)]
    if source.log is not None:
        pieces += _describe_log(source.log)
    elif source.transactions_of is not None:
        pieces.append(f"ends of transactions of {source.transactions_of}")
    if source.kafka:
        pieces.append(_describe_offsets(source.offsets))
        size = f"{format_size(source.bytes)} assumed, at {ASSUMED_RECORD_BYTES} bytes a record"
        return [*pieces, f"about {format_count(source.rows)} records", size]
    pieces.append(plural(source.file_count, "file") + (" pinned" if source.files or source.recording else ""))
    return [*pieces, format_size(source.bytes), f"{format_count(source.rows)} rows" if source.rows else ""]


def _describe_log(log: LogView) -> Iterator[str]:
    yield f"{log.reading} at log position {format_position(int(log.position))}"
    yield f"from {format_position(int(log.base))} on"
    if log.since:
        yield f"changes since the accepted run for {format_count(len(log.since))} partitions"
    if log.left_out:
        yield f"{plural(log.left_out, 'transaction')} without an END left out"


def _describe_offsets(offsets: Mapping[str, tuple[int, int]]) -> str:
    shown = [f"{number} [{start}, {end})" for number, (start, end) in list(offsets.items())[:_OFFSETS_SHOWN]]
    more = f" and {len(offsets) - _OFFSETS_SHOWN} more" if len(offsets) > _OFFSETS_SHOWN else ""
    return f"offsets {', '.join(shown)}{more} sealed"


def _render_origin(view: PlanView, width: int) -> Iterator[str]:
    """Where the rows come from."""
    if view.restored:
        yield from format_labelled("restores", _describe_restore(view.restored), width)
    elif view.code:
        yield from format_labelled("code", _describe_code(view), width)
        if find_kind(view.kind).runs_transform:
            yield from format_labelled("code zip", [str(view.code.get("digest", ""))], width)


def _describe_restore(restored: Mapping[str, Any]) -> list[str]:
    where, at = restored.get("origin") or "the table", f"{format_moment(str(restored['at']))} UTC"
    told = [f"what {where} held at {at}" if restored["snapshot_id"] else f"what {where} has, recorded until {at}"]
    told += [f"({restored['asked']})"] if restored["asked"] not in (where, "") else []
    return [*told, "no transform runs; reconciliations with inputs do not apply"]


def _describe_code(view: PlanView) -> list[str]:
    code = view.code
    pieces = [f"{code.get('call', '')} {code.get('version', '')}".strip()]
    if commit := code.get("git_commit"):
        pieces.append(f"git {commit}" + (" with uncommitted changes" if code.get("git_dirty") else ""))
    return pieces


def _describe_chunks(chunks: tuple[ChunkView, ...], grain: str, *, is_assumed: bool) -> list[str]:
    if not chunks:
        return ["none"]
    shapes = Counter(len(chunk.partitions) for chunk in chunks)
    if len(shapes) <= SHAPES:
        shape = ", ".join(
            f"{format_exact(number)} × {format_units(length, grain)}" for length, number in shapes.most_common()
        )
    else:
        shape = f"{format_exact(len(chunks))} of {min(shapes)} to {format_units(max(shapes), grain)}"
    each = [chunk.bytes for chunk in chunks]
    told = [shape, f"about {format_size(sum(each) // len(each))} each{' by assumed sizes' if is_assumed else ''}"]
    largest = max(each)
    return told + ([f"largest {format_size(largest)}"] if largest > 2 * sum(each) // len(each) else [])


def _describe_estimate(view: PlanView) -> list[str]:
    estimate = view.estimate
    low, high = format_duration(estimate.seconds_low), format_duration(estimate.seconds_high)
    span = low if low == high else f"{low} … {high}"
    basis = f"(basis: {estimate.basis})" if estimate.basis else ""
    # files are not opened at planning, so a sum over the other inputs would be too low
    known = estimate.rows and not any(source.files or source.recording for source in view.inputs)
    is_assumed = any(source.kafka for source in view.inputs)
    rows = f"{'about ' if is_assumed else ''}{format_count(estimate.rows)} rows" if known else ""
    size = f"{format_size(estimate.bytes)}{' assumed' if is_assumed else ''}"
    return [rows, size, span, format_money(estimate.usd), basis]


def _render_gate(view: PlanView, width: int) -> Iterator[str]:
    if view.gate:
        yield from format_labelled("gate", [_describe_gate(view)], width)
    for change in view.rules_changed:
        yield from format_labelled("! rule", [change.text()], width)


def _describe_gate(view: PlanView) -> str:
    if view.kind == ATTEST:
        return "all rows, in all columns except lineage, against main"
    nouns = {
        "checks": "check",
        "reconciliations": "reconciliation",
        "comparisons": "comparison",
        "distributions": "distribution",
    }
    told = [plural(number, noun) for kind, noun in nouns.items() if (number := view.gate.get(kind))]
    rules, held = view.gate.get("controls", 0), view.gate.get("control_partitions", 0)
    short = view.gate.get("short_of_controls", 0)
    if rules or held or short:
        beside = plural(held, "comparable partition")
        lacking = f", too few for {format_exact(short)} of {format_exact(len(view.partitions))}" if short else ""
        told.append(f"{plural(rules, 'control')} against {beside}{lacking}" if rules else f"{beside}{lacking}")
    return ", ".join(told) or "row counts and completeness only: the product names no checks"


def _render_guardrails(view: PlanView, width: int) -> list[str]:
    longest = max((len(verdict.rule) for verdict in view.verdicts), default=0)
    lines: list[str] = []
    for verdict in view.verdicts:
        said = f'override: {verdict.rule}="{verdict.override}"' if verdict.override else ""
        first = f"  {SIGNS.get(verdict.level, '?')} {pad(verdict.rule, longest)}   "
        lines += flow([verdict.message, said], width, first)
    return lines


def _describe_state(view: PlanView) -> str:
    if view.state == DRY_RUN:
        return "dry run: nothing was recorded; the same command without --dry-run plans it"
    if view.state != "planned":
        return f"state: {view.state.replace('_', ' ')}"
    if not find_kind(view.kind).changes_table:
        return "ready to run: it changes nothing, so nobody has to approve it"
    if view.single_user:
        return f"waiting for approval (single-user project: {view.requested_by} may approve)"
    if told := describe_waiting(view.quorum, view.requested_by):
        return told
    able = [name for name in view.approvers if name != view.requested_by]
    who = f" ({' or '.join(able)})" if able else ""
    return f"waiting for approval by someone other than {view.requested_by}{who}"


def render_approvals(approvals: tuple[ApprovalView, ...], width: int, *, over: str | None = None) -> list[str]:
    """Who decided what and when, with the digest unless it is the one already shown."""
    lines: list[str] = []
    for approval in approvals:
        lines.append(f"{approval.decision} by {approval.person}   {format_moment(approval.at)} UTC")
        lines += wrap(approval.break_glass, width, "  ! break-glass: ") if approval.break_glass else []
        lines += [f"  sha256 {approval.digest}"] if approval.digest != over else []
        lines += wrap(approval.note, width, "  note   ") if approval.note else []
    return lines


def render_signed_plan(plan: PlanView, width: int) -> list[str]:
    """The plan that a decision refers to."""
    lines = flow([plan.run_id, plan.product, plural(len(plan.partitions), "partition")], width)
    lines += wrap(format_partitions(plan.grain, plan.partitions), width, "  scope    ")
    lines += wrap(plan.reason, width, "  reason   ")
    lines += wrap(f"asked by {plan.requested_by}", width, "           ")
    code = "" if plan.restored else f"{plan.code.get('call', '')} {plan.code.get('version', '')}".strip()
    lines += wrap(", ".join(_describe_restore(plan.restored)), width, "  restores ") if plan.restored else []
    lines += wrap(code, width, "  code     ") if code else []
    warned = [f"{v.rule}: {v.message}" for v in plan.verdicts if v.level != "ok"]
    warned += [change.text() for change in plan.rules_changed]
    return [*lines, *render_warnings(warned, width, "  ! ")]


def render_decision(view: DecisionView, width: int, *, plan: PlanView | None = None) -> list[str]:
    """What was decided, and by whom."""
    lines = [*render_signed_plan(plan, width), ""] if plan else []
    lines += [f"manifest {view.manifest_digest}"]
    if view.already:
        lines.append("decided before, nothing changed")
    lines += render_approvals(view.approvals, width, over=view.manifest_digest)
    # a plan that was declined waits for nobody
    lines += render_quorum(view.quorum, width) if view.state != "declined" else []
    lines += render_break_glass(view.break_glass, width)
    lines += render_mode(view.single_user)
    lines += render_warnings((one.text(plan.grain if plan else "value") for one in view.live_writes), width)
    return [*lines, f"state: {view.state.replace('_', ' ')}"]
