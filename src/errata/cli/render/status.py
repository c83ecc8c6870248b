"""All runs, or one run: what happened, what state the data is in, what to type next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from errata.cli.render.approval import glass_lines, mode_lines, quorum_lines, released_lines
from errata.cli.render.calendar import SIGNS, calendar_lines, word_of
from errata.cli.render.groups import groups_lines
from errata.cli.render.hazard import hazard_lines
from errata.cli.render.layout import columns, flow, labelled, next_lines, wrap
from errata.cli.render.plan import approval_lines
from errata.cli.render.preview import named_lines
from errata.cli.render.quarantine import input_rows_lines
from errata.cli.render.run import counts_text, failure_lines
from errata.cli.render.throttle import folded
from errata.commands.next_step import next_commands
from errata.text.numbers import count, duration, exact, moment, money, plural, size
from errata.views import CostView, RunLine, StatusView

LOUD = ("running", "failed", "rolled back", "superseded")
"""States whose partitions are also written out."""


def status_lines(view: StatusView, width: int) -> list[str]:
    """One run when the view is about one, else the list."""
    if view.run_id:
        return run_status_lines(view, width)
    return [*mode_lines(view.single_user), *runs_lines(view.runs, width)]


def runs_lines(runs: tuple[RunLine, ...], width: int) -> list[str]:
    """One paragraph a run, newest first as given."""
    if not runs:
        return ["no runs yet", *next_lines('errata plan PRODUCT --from D --to D --reason "…"')]
    lines: list[str] = []
    for run in runs:
        lines += flow([run.run_id, run.state.replace("_", " "), run.product], width)
        span = run.first if run.first == run.last else f"{run.first} … {run.last}"
        pieces = [plural(run.partitions, "partition"), span, f"{run.chunks.done}/{run.chunks.total} chunks"]
        pieces += [f"{run.chunks.failed + run.chunks.quarantined} failed"] if run.chunks.failed else []
        lines += flow([*pieces, f"{run.requested_by} {moment(run.planned_at)}"], width, "  ")
        lines += wrap(run.reason, width, "  ")
    return lines


def run_status_lines(view: StatusView, width: int) -> list[str]:
    """One run whole."""
    order = {"newest": "newest first", "oldest": "oldest first", "sequential": "one after the other"}
    head = [view.run_id or "", (view.state or "").replace("_", " "), view.product or "", order.get(view.order, "")]
    lines = flow(head, width)
    if view.chunks:
        rows = [f"{count(view.rows)} rows"] if view.rows else []
        again = [f"{view.recomputed} recomputed"] if view.recomputed else []
        lines += flow([*counts_text(view.chunks), *again, *rows], width, "  ")
    if view.cost:
        lines += _cost_lines(view.cost, width)
    lines += _facts_lines(view, width)
    lines += input_rows_lines(view.input_rows, width)
    lines += wrap(view.held, width, "! ") if view.held else []
    lines += ["", *_calendar(view, width)]
    if view.attempts or view.failures:
        lines += ["", *_work(view, width)]
    decided = [*quorum_lines(view.quorum, width), *released_lines(view.release_digest, view.release, width)]
    decided += [*glass_lines(view.break_glass, width), *mode_lines(view.single_user)]
    if view.approvals or decided:
        lines += ["", *approval_lines(view.approvals, width), *decided]
    if view.groups or view.dark:
        lines += ["", *groups_lines(view.groups, view.grain, width), *named_lines(view.dark, width)]
    if view.publications:
        lines.append("")
        for publication in view.publications:
            lines += publication_lines(publication, view.grain, width)
    for hazard in view.hazards:
        lines += hazard_lines(hazard, width)
    for warning in (*view.warnings, *view.noticed):
        lines += wrap(warning, width, "! ")
    upcoming = (view.next,) if view.next else next_commands(view.state or "", view.run_id or "")
    return [*lines, "", *next_lines(*upcoming)] if upcoming else lines


def _facts_lines(view: StatusView, width: int) -> list[str]:
    lines: list[str] = []
    if view.canary:
        days, warned = folded(view.grain, list(view.canary["partitions"])), view.canary["warnings"]
        told = f"passed {view.canary['checks']} checks" + (f", warned on {', '.join(warned)}" if warned else "")
        lines += labelled("canary", [days, told], width, 10)
    if view.determinism:
        proven = plural(len(view.determinism["chunks"]), "sample chunk")
        lines += labelled("proof", [f"{proven} computed twice, same content"], width, 10)
    if freeze := view.freeze:
        held = f"live jobs are held off {folded(view.grain, freeze.partitions)}"
        told = f"since {moment(freeze.since)}, until {moment(freeze.until)} UTC unless a command goes on"
        lines += labelled("freeze", [held, told, f"at most until {moment(freeze.at_most)} UTC"], width, 10)
    for rebase in view.rebases:
        days = folded(view.grain, list(rebase["partitions"]))
        told = f"live wrote {folded(view.grain, list(rebase['written']))}; pinned again at {rebase['base_snapshot_id']}"
        lines += labelled(f"rebase {rebase['n']}", [days, told], width, 10)
    return lines


def _cost_lines(cost: CostView, width: int) -> list[str]:
    low, high = cost.estimated_seconds
    took = f"{duration(cost.seconds)} with a chunk in hand, {count(cost.core_seconds)} core-seconds, {money(cost.usd)}"
    expected = f"expected {duration(low)} … {duration(high)}, {money(cost.estimated_usd)} ({cost.basis})"
    moved = [f"{size(cost.input_bytes)} read", f"{size(cost.shuffle_bytes)} shuffled"]
    moved += [f"{size(cost.output_bytes)} in {plural(cost.output_file_count, 'file')}"]
    moved += [plural(cost.commit_count, "commit"), plural(cost.attempt_count, "attempt")]
    lines = labelled("took", [took, expected], width, 10)
    return lines + labelled("moved", [", ".join([*moved, f"by {plural(cost.worker_count, 'worker')}"])], width, 10)


def _calendar(view: StatusView, width: int) -> Iterator[str]:
    states = {part.partition: part.state for part in view.partitions}
    yield from calendar_lines(view.grain, states, width)
    by_word: dict[str, list[str]] = {}
    for partition, state in states.items():
        by_word.setdefault(word_of(state), []).append(partition)
    known = [word for word in SIGNS if word in by_word] + [word for word in by_word if word not in SIGNS]
    yield ""
    yield from flow((f"{SIGNS.get(word, '?')} {word} {exact(len(by_word[word]))}" for word in known), width, "  ")
    for word in LOUD:
        if word in by_word:
            yield from labelled(word, [folded(view.grain, by_word[word])], width, 12)


def _work(view: StatusView, width: int) -> Iterator[str]:
    rows = []
    for attempt in view.attempts:
        scope = folded(view.grain, list(attempt.get("partitions") or ()))
        told = [scope, "running", f"worker {attempt.get('owner')}", f"fence {attempt.get('fence')}", _lease(attempt)]
        rows.append((f"▶ {attempt.get('chunk_id')}", "   ".join(filter(None, told))))
    yield from columns(rows, width)
    for failure in view.failures:
        yield from failure_lines(failure, width)


def _lease(attempt: Mapping[str, Any]) -> str:
    left = attempt.get("lease_left_seconds")
    if not isinstance(left, (int, float)):
        return ""
    return f"lease {duration(left)}" if left > 0 else "lease lost: the next worker takes it over"


def publication_lines(publication: Mapping[str, Any], grain: str, width: int) -> list[str]:
    """One publication or rollback of the run."""
    words = {"publish": "published", "rollback": "rolled back"}
    kind, state = str(publication.get("kind")), str(publication.get("state"))
    partitions = list(publication.get("partitions") or ())
    pieces = [words.get(kind, kind) if state == "committed" else f"{kind} {state}"]
    pieces += [str(publication.get("publication_id")), plural(len(partitions), "partition")]
    pieces += [f"snapshot {publication['snapshot_id']}"] if publication.get("snapshot_id") else []
    who = "by" if state == "committed" else "tried by"
    pieces += [f"{who} {publication.get('person')}", f"{moment(str(publication.get('at')))} UTC"]
    lines = flow(pieces, width, "", "  ")
    lines += wrap(folded(grain, partitions), width, "  ")
    lines += wrap(f"break-glass: {publication['break_glass']}", width, "  ! ") if publication.get("break_glass") else []
    return [*lines, *wrap(str(publication["reason"]), width, "  ")] if publication.get("reason") else lines
