"""Render which run was current at a given time, who wrote to a partition, and the runbook of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from errata.cli.render.layout import flow, format_columns, render_next, wrap
from errata.cli.render.throttle import format_partitions
from errata.text.numbers import format_exact, format_moment

if TYPE_CHECKING:
    from errata.views import AcceptedSpan, CommitsView, CommitView, NoteView, RunbookView, RunsView
    from errata.views.runbook import RunbookStep

BEFORE_ANY = "what was there before any run"
SINGLE = {"published": "published", "rolled_back": "put back by a rollback"}


def render_accepted(view: RunsView, width: int) -> list[str]:
    """Current run of each span of partitions, grouped by table."""
    at = format_moment(view.accepted_at or "")
    if not view.accepted:
        return wrap(f"{at} UTC: no run had published anything", width)
    lines: list[str] = []
    for table in dict.fromkeys(span.table for span in view.accepted):
        spans = [span for span in view.accepted if span.table == table]
        lines += flow([table, spans[0].product, f"at {at} UTC"], width)
        lines += format_columns([_span_row(span) for span in spans], width)
    return lines


def _span_row(span: AcceptedSpan) -> tuple[str, str, str]:
    deed = f"{SINGLE.get(span.action, span.action)} {format_moment(span.at)[:10]} by {span.person}"
    return format_partitions(span.grain, span.partitions), span.run_id or BEFORE_ANY, deed


def render_commits(view: CommitsView, width: int) -> list[str]:
    """One paragraph per commit, newest first."""
    lines = flow([view.table, view.partition], width)
    if not view.commits:
        return [*lines, *wrap("no known commit touched it", width, "  ")]
    for commit in view.commits:
        lines += _render_commit(commit, width)
    if not view.complete:
        lines += wrap("older commits are not shown: --most N, or they have expired", width)
    return [*lines, *render_next(view.next)] if view.next else lines


def _render_commit(commit: CommitView, width: int) -> list[str]:
    deed = "rollback of " if commit.kind == "rollback" else ""
    names = {"errata": f"errata {deed}{commit.run_id}", "compaction": f"compaction by {commit.application}"}
    who = names.get(commit.writer, commit.application)
    moved = [f"+{format_exact(commit.added_rows)}", f"-{format_exact(commit.removed_rows)} rows"]
    moved += [f"{format_exact(commit.deleted_rows)} deleted in place"] if commit.deleted_rows else []
    head = f"{format_moment(commit.at)}  "
    lines = flow([who, commit.operation, " ".join(moved), "accepted" if commit.accepted else ""], width, head)
    before = f"before it {commit.before}" if commit.before else "nothing older is known"
    return lines + flow([f"snapshot {commit.snapshot_id}", before], width, " " * len(head))


_MARKS = {"done": "x", "open": " ", "not needed": "-"}


def render_runbook(view: RunbookView, commands: Mapping[int, str], width: int) -> list[str]:
    """One line per step: a box, who and when, and what came of it or the command that does it, by its number."""
    done = sum(step.state != "open" for step in view.steps)
    lines = flow([view.run_id, view.product, view.state, f"{done} of {len(view.steps)} steps"], width)
    for step in view.steps:
        lines += _render_step(step, commands.get(step.n, ""), width)
    for note in view.notes:
        lines += wrap(note.note, width, f"  note  {format_moment(note.at)} {note.person}: ")
    return lines


def _render_step(step: RunbookStep, command: str, width: int) -> list[str]:
    head = f"  [{_MARKS[step.state]}] {step.n:>2}  "
    deed = [" ".join((format_moment(step.at), step.who))] if step.who else []
    pieces = [step.step, *deed, *([step.what] if step.what else [])]
    lines = flow(pieces, width, head)
    return [*lines, f"{' ' * len(head)}{command}"] if command else lines


def render_note(view: NoteView, width: int) -> list[str]:
    """The note as it was kept."""
    kept = "was kept before" if view.already else "kept"
    return wrap(f"{kept} with {view.run_id} by {view.person}: {view.note}", width)
