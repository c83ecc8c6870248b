"""Render all runs, or one run: what happened, the state of the data, the next command. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from errata.cli.render.approval import render_break_glass, render_mode, render_quorum, render_released
from errata.cli.render.calendar import SIGNS, render_calendar, to_state_word
from errata.cli.render.consumers.copies import render_copies
from errata.cli.render.hazard import render_hazard
from errata.cli.render.layout import flow, format_columns, format_labelled, render_next, render_warnings, wrap
from errata.cli.render.plan import render_approvals
from errata.cli.render.preview import render_preview_name
from errata.cli.render.quarantine import render_input_rows
from errata.cli.render.run import format_counts, render_failure
from errata.cli.render.throttle import ORDER_WORDS, format_partitions
from errata.cli.render.waves import render_waves
from errata.model.kind import find_kind
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
    from errata.views import CostView, RunLine, StatusView

LOUD = ("running", "failed", "rolled back", "superseded")
"""States whose partitions are also listed."""


def render_status(view: StatusView, width: int) -> list[str]:
    """One run if the view has one, otherwise the list."""
    if view.run_id:
        return render_run_status(view, width)
    lines = [*render_mode(view.single_user)]
    if view.campaigns:
        from errata.cli.render.campaign import render_campaign_lines

        lines += [*render_campaign_lines(view.campaigns, view.reserved, width), ""]
    return [*lines, *render_runs(view.runs, width), *_render_open_items(view)]


def _render_open_items(view: StatusView) -> list[str]:
    """What all runs together still owe."""
    if not view.owed_items and not view.failed_items:
        return []
    failed = [f"{plural(view.failed_items, 'item')} of the outbox failed"] if view.failed_items else []
    owed = [f"{plural(view.owed_items, 'item')} still owed"] if view.owed_items else []
    return ["", f"! {', '.join([*failed, *owed])}", *render_next("errata outbox")]


def render_runs(runs: tuple[RunLine, ...], width: int) -> list[str]:
    """One paragraph per run, in the given order (newest first)."""
    if not runs:
        return ["no runs yet", *render_next('errata plan PRODUCT --from D --to D --reason "…"')]
    lines: list[str] = []
    for run in runs:
        lines += flow([run.run_id, run.state.replace("_", " "), run.product], width)
        span = run.first if run.first == run.last else f"{run.first} … {run.last}"
        pieces = [plural(run.partitions, "partition"), span, f"{run.chunks.done}/{run.chunks.total} chunks"]
        pieces += [f"{run.chunks.failed + run.chunks.quarantined} failed"] if run.chunks.failed else []
        lines += flow([*pieces, f"{run.requested_by} {format_moment(run.planned_at)}"], width, "  ")
        lines += wrap(run.reason, width, "  ")
    return lines


def render_run_status(view: StatusView, width: int) -> list[str]:
    """One run in full."""
    only_copies = find_kind(view.kind).only_copies  # nothing is computed, and no partition of main is about to change
    head = [
        view.run_id or "",
        (view.state or "").replace("_", " "),
        view.product or "",
        "repair of copies" if only_copies else ORDER_WORDS.get(view.order, ""),
        f"member of {view.campaign}" if view.campaign else "",
    ]
    lines = flow(head, width)
    if view.chunks and not only_copies:
        rows = [f"{format_count(view.rows)} rows"] if view.rows else []
        again = [f"{view.recomputed} recomputed"] if view.recomputed else []
        lines += flow([*format_counts(view.chunks), *again, *rows], width, "  ")
    if view.cost:
        lines += _render_cost(view.cost, width)
    lines += _render_run_notes(view, width)
    lines += render_input_rows(view.input_rows, width)
    lines += wrap(view.held, width, "! ") if view.held else []
    lines += [] if only_copies else ["", *_render_calendar(view, width)]
    if view.attempts or view.failures:
        lines += ["", *_render_work(view, width)]
    decided = [*render_quorum(view.quorum, width), *render_released(view.release_digest, view.release, width)]
    decided += [*render_break_glass(view.break_glass, width), *render_mode(view.single_user)]
    if view.approvals or decided:
        lines += ["", *render_approvals(view.approvals, width), *decided]
    if view.turn or view.dark:
        lines += ["", *render_waves(view.waves, view.turn, view.grain, width), *render_preview_name(view.dark, width)]
    if view.publications:
        lines.append("")
        for publication in view.publications:
            lines += render_publication(publication, view.grain, width)
    for hazard in view.hazards:
        lines += render_hazard(hazard, width)
    lines += _render_readers(view, width)
    lines += render_warnings((*view.warnings, *view.noticed), width)
    return [*lines, "", *render_next(view.next)] if view.next else lines


def _render_readers(view: StatusView, width: int) -> list[str]:
    """Who is held, what consumers and copies show, and what is still owed; most runs have none of it to load."""
    lines: list[str] = []
    if view.holds:
        from errata.cli.render.consumers.ready import render_holds

        lines += ["", *render_holds(view.holds, width)]
    if view.recovery:
        from errata.cli.render.consumers.recovery_lines import render_recovery

        lines += ["", *render_recovery(view.recovery, view.recoveries, width)]
    if view.copies:
        lines += ["", f"delivered: {view.delivered}", *render_copies(view.copies, view.grain, width)]
    if view.owed:
        from errata.cli.render.consumers.outbox import render_owed

        still = f"{plural(len(view.owed), 'item')} still owed because of this run"
        lines += ["", still, *render_owed(view.owed, width)]
    return lines


def _render_run_notes(view: StatusView, width: int) -> list[str]:
    lines: list[str] = []
    if view.canary:
        days, warned = format_partitions(view.grain, list(view.canary["partitions"])), view.canary["warnings"]
        told = f"passed {view.canary['checks']} checks" + (f", warned on {', '.join(warned)}" if warned else "")
        lines += format_labelled("canary", [days, told], width, 10)
    if view.determinism:
        proven = plural(len(view.determinism["chunks"]), "sample chunk")
        lines += format_labelled("proof", [f"{proven} computed twice, same content"], width, 10)
    if freeze := view.freeze:
        held = f"live jobs are held off {format_partitions(view.grain, freeze.partitions)}"
        told = (
            f"since {format_moment(freeze.since)}, until {format_moment(freeze.until)} UTC unless a command renews it"
        )
        lines += format_labelled(
            "freeze", [held, told, f"at most until {format_moment(freeze.at_most)} UTC"], width, 10
        )
    for rebase in view.rebases:
        days = format_partitions(view.grain, list(rebase["partitions"]))
        told = (
            f"live wrote {format_partitions(view.grain, list(rebase['written']))}; pinned again at "
            f"{rebase['base_snapshot_id']}"
        )
        lines += format_labelled(f"rebase {rebase['n']}", [days, told], width, 10)
    return lines


def _render_cost(cost: CostView, width: int) -> list[str]:
    low, high = cost.estimated_seconds
    took = (
        f"{format_duration(cost.seconds)} computing, {format_count(cost.core_seconds)} "
        f"core-seconds, {format_money(cost.usd)}"
    )
    expected = (
        f"expected {format_duration(low)} … {format_duration(high)}, {format_money(cost.estimated_usd)} ({cost.basis})"
    )
    moved = [f"{format_size(cost.input_bytes)} read", f"{format_size(cost.shuffle_bytes)} shuffled"]
    moved += [f"{format_size(cost.output_bytes)} in {plural(cost.output_file_count, 'file')}"]
    moved += [plural(cost.commit_count, "commit"), plural(cost.attempt_count, "attempt")]
    lines = format_labelled("took", [took, expected], width, 10)
    return lines + format_labelled(
        "moved", [", ".join([*moved, f"by {plural(cost.worker_count, 'worker')}"])], width, 10
    )


def _render_calendar(view: StatusView, width: int) -> Iterator[str]:
    states = {part.partition: part.state for part in view.partitions}
    yield from render_calendar(view.grain, states, width)
    by_word: dict[str, list[str]] = {}
    for partition, state in states.items():
        by_word.setdefault(to_state_word(state), []).append(partition)
    known = [word for word in SIGNS if word in by_word] + [word for word in by_word if word not in SIGNS]
    yield ""
    yield from flow(
        (f"{SIGNS.get(word, '?')} {word} {format_exact(len(by_word[word]))}" for word in known), width, "  "
    )
    for word in LOUD:
        if word in by_word:
            yield from format_labelled(word, [format_partitions(view.grain, by_word[word])], width, 12)


def _render_work(view: StatusView, width: int) -> Iterator[str]:
    rows = []
    for attempt in view.attempts:
        scope = format_partitions(view.grain, list(attempt.get("partitions") or ()))
        told = [
            scope,
            "running",
            f"worker {attempt.get('owner')}",
            f"fence {attempt.get('fence')}",
            _format_lease(attempt),
        ]
        rows.append((f"▶ {attempt.get('chunk_id')}", "   ".join(filter(None, told))))
    yield from format_columns(rows, width)
    for failure in view.failures:
        yield from render_failure(failure, width)


def _format_lease(attempt: Mapping[str, Any]) -> str:
    left = attempt.get("lease_left_seconds")
    if not isinstance(left, (int, float)):
        return ""
    return f"lease {format_duration(left)}" if left > 0 else "lease lost: the next worker takes it over"


def render_publication(publication: Mapping[str, Any], grain: str, width: int) -> list[str]:
    """One publication or rollback of the run."""
    words = {"publish": "published", "rollback": "rolled back"}
    kind, state = str(publication.get("kind")), str(publication.get("state"))
    partitions = list(publication.get("partitions") or ())
    pieces = [words.get(kind, kind) if state == "committed" else f"{kind} {state}"]
    pieces += [str(publication.get("publication_id")), plural(len(partitions), "partition")]
    pieces += [f"snapshot {publication['snapshot_id']}"] if publication.get("snapshot_id") else []
    who = "by" if state == "committed" else "tried by"
    pieces += [f"{who} {publication.get('person')}", f"{format_moment(str(publication.get('at')))} UTC"]
    lines = flow(pieces, width, "", "  ")
    lines += wrap(format_partitions(grain, partitions), width, "  ")
    lines += wrap(f"break-glass: {publication['break_glass']}", width, "  ! ") if publication.get("break_glass") else []
    return [*lines, *wrap(str(publication["reason"]), width, "  ")] if publication.get("reason") else lines
