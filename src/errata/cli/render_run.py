"""A worker's result and control commands as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from errata.cli.human import clock, count, duration, exact, plural
from errata.cli.layout import flow, next_lines, wrap
from errata.cli.steps import next_commands
from errata.model.views import RunCounts, RunView, StateView

__all__ = ["counts_text", "failure_lines", "run_lines", "state_lines"]


def counts_text(counts: RunCounts) -> list[str]:
    """Chunks by state, only what there is."""
    parts = [("running", counts.running), ("failed", counts.failed), ("quarantined", counts.quarantined)]
    parts.append(("waiting", counts.pending))
    return [f"{counts.done} of {plural(counts.total, 'chunk')} done", *(f"{n} {word}" for word, n in parts if n)]


def run_lines(view: RunView, width: int) -> list[str]:
    """What this worker leaves behind."""
    pieces = [f"{view.state.replace('_', ' ')} {view.run_id}", *counts_text(view.chunks)]
    pieces += [f"{count(view.rows)} rows", duration(view.seconds)]
    lines = flow(pieces, width)
    if view.already:
        lines.append("  nothing was left to do")
    if view.recomputed:
        lines.append(f"  {plural(view.recomputed, 'chunk')} needed more than one attempt")
    for failure in view.failures:
        lines += failure_lines(failure, width)
    lines += [f"  log {view.log}"] if view.log else []
    return [*lines, *next_lines(*next_commands(view.state, view.run_id))]


def failure_lines(failure: Mapping[str, Any], width: int) -> list[str]:
    """One chunk that failed: which, what it covers, why, and what would help."""
    partitions = failure.get("partitions") or ()
    scope = (
        partitions if isinstance(partitions, str) else " … ".join(dict.fromkeys([*partitions[:1], *partitions[-1:]]))
    )
    code = failure.get("error_code") or failure.get("code")
    tries = failure.get("tries") or failure.get("attempts")
    pieces = [f"✗ {failure.get('chunk_id', 'chunk')}", scope, f"[{code}]" if code else ""]
    pieces += [f"after {plural(int(tries), 'attempt')}"] if isinstance(tries, int) and tries else []
    lines = flow(pieces, width, "  ", "    ")
    said = failure.get("error") or failure.get("message")
    lines += wrap(str(said), width, "    ") if said else []
    lines += wrap(str(failure["hint"]), width, "    hint: ") if failure.get("hint") else []
    lines += [f"    log {failure['log']}"] if failure.get("log") else []
    return lines


def state_lines(view: StateView, width: int) -> list[str]:
    """A run after a control command."""
    lines = flow([f"{view.state.replace('_', ' ')} {view.run_id}", "(already so)" if view.already else ""], width)
    return [*lines, *next_lines(*next_commands(view.state, view.run_id))]


def worker_text(attempt: Mapping[str, Any]) -> str:
    """Who holds a chunk: worker, fence, how long, lease."""
    owner = attempt.get("owner") or attempt.get("worker") or ""
    if isinstance(owner, Mapping):
        owner = owner.get("name") or f"{owner.get('host', '')}/{owner.get('pid', '')}"
    pieces = [f"worker {owner}" if owner else ""]
    pieces += [f"fence {attempt['fence']}"] if attempt.get("fence") is not None else []
    pieces += [f"{exact(attempt['rows'])} rows"] if isinstance(attempt.get("rows"), int) else []
    seconds = attempt.get("seconds")
    pieces += [clock(float(seconds))] if isinstance(seconds, (int, float)) else []
    return "   ".join(filter(None, pieces))
