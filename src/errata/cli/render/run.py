"""Render a worker's result, workers that were started, and control commands as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errata.cli.render.layout import flow, wrap
from errata.model.kind import find_kind
from errata.model.run import RunState
from errata.text.numbers import format_count, format_duration, plural

if TYPE_CHECKING:
    from errata.views import RunCounts, RunView, StateView
    from errata.views.run import StartedView, SubmitView


def format_counts(counts: RunCounts) -> list[str]:
    """Number of chunks in each state that occurs."""
    parts = [("running", counts.running), ("failed", counts.failed), ("quarantined", counts.quarantined)]
    parts.append(("waiting", counts.pending))
    return [f"{counts.done} of {plural(counts.total, 'chunk')} done", *(f"{n} {word}" for word, n in parts if n)]


def format_run(view: RunView) -> list[str]:
    """State, chunks, rows and time, for one line."""
    if find_kind(view.kind).only_copies:
        state = "repaired" if view.state == RunState.PUBLISHED else view.state
        return [f"{state} {view.run_id}", format_duration(view.seconds)]
    pieces = [f"{view.state.replace('_', ' ')} {view.run_id}", *format_counts(view.chunks)]
    return [*pieces, f"{format_count(view.rows)} rows", format_duration(view.seconds)]


def is_staged(view: RunView) -> bool:
    """Whether every chunk is done, so that the gate can check the whole."""
    return view.chunks.done == view.chunks.total


def ends_with_verdict(view: RunView) -> bool:
    """Whether nothing follows the verdict: the run changes nothing."""
    return not find_kind(view.kind).changes_table


def render_run(view: RunView, width: int) -> list[str]:
    """The result of this worker."""
    lines = flow(format_run(view), width)
    if view.already:
        lines.append("  nothing was left to do")
    if view.recomputed:
        lines.append(f"  {plural(view.recomputed, 'chunk')} needed more than one attempt")
    for failure in view.failures:
        lines += render_failure(failure, width)
    if view.copies:
        from errata.cli.render.consumers.copies import render_copies

        lines += render_copies(view.copies, view.grain, width)
    is_computed = not find_kind(view.kind).only_copies
    return [*lines, *([f"  log {view.log}"] if view.log and is_computed else [])]


def render_failure(failure: Mapping[str, Any], width: int) -> list[str]:
    """One failed chunk: its id, its partitions, and the reason."""
    partitions = failure.get("partitions") or ()
    # the oldest first, although a chunk may hold them in the order in which they are computed
    scope = " … ".join(dict.fromkeys([min(partitions), max(partitions)])) if partitions else ""
    code = failure.get("code")
    lines = flow([f"✗ {failure.get('chunk_id')}", scope, f"[{code}]" if code else ""], width, "  ", "    ")
    return [*lines, *wrap(str(failure.get("error") or "no reason was recorded"), width, "    ")]


def render_state(view: StateView, width: int) -> list[str]:
    """A run after a control command."""
    lines = flow([f"{view.state.replace('_', ' ')} {view.run_id}", "(already so)" if view.already else ""], width)
    return [*lines, *(wrap(view.note, width, "  ") if view.note else [])]


def render_submission(view: SubmitView, width: int) -> list[str]:
    """The run, its workers, and what became of each."""
    done = f"{view.chunks_done} of {plural(view.chunks, 'chunk')} done"
    lines = flow([f"{view.state.replace('_', ' ')} {view.run_id}", done], width)
    if not view.submission:
        return [*lines, "  nothing was left to do"]
    cores = f" of {plural(view.cores, 'core')}" if view.cores else ""
    joined = ", started earlier" if view.joined else ""
    lines.append(f"  {plural(view.workers, 'worker')}{cores} on {view.target}{joined}")
    if view.deadline:
        told = (
            f"at most {format_duration(view.deadline.seconds)}, ${view.deadline.usd}, to be done by {view.deadline.by}"
        )
        lines.append(f"  {told}")
    for one in view.started:
        lines += _render_started(one, width)
    if all(one.outcome for one in view.started):
        lines.append("  nothing that was started is running")
    return lines


def _render_started(one: StartedView, width: int) -> list[str]:
    said = f": {one.detail}" if one.detail else ""
    state = (one.outcome or "running").replace("_", " ")
    lines = wrap(f"{one.name}  {state}{said}", width, "    ")
    return [*lines, *([f"      log {one.log}"] if one.log else [])]
