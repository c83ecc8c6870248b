"""Render a submission of workers as text. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, wrap
from errata.text.numbers import format_duration, plural

if TYPE_CHECKING:
    from errata.views.submit import StartedView, SubmitView


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
