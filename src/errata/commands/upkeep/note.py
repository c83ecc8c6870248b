"""`errata note`: what people learnt from a run, kept with it in the audit log."""

from __future__ import annotations

from errata.errors import UsageError
from errata.ledger import RunRecord
from errata.model.audit import Actor
from errata.views.runbook import NoteView
from errata.workspace import Workspace

NOTED = "run.noted"


def add_note(workspace: Workspace, actor: Actor, run_id: str, text: str) -> NoteView:
    """Keep a note with the run; the same text by the same person is kept once."""
    run, note = workspace.ledger.runs.get(run_id), text.strip()
    if not note:
        raise UsageError(
            "an empty note was refused; expected what you want to remember about the run",
            state="nothing was changed",
            hint=f'errata note {run.run_id} "what happened, and what to do differently"',
        )
    for known in list_notes(workspace, run):
        if (known.person, known.note) == (actor.person, note):
            return NoteView(run.run_id, known.person, known.at, known.note, already=True)
    entry = workspace.ledger.audit.note(run.run_id, actor, NOTED, {"person": actor.person, "note": note})
    return NoteView(run.run_id, actor.person, entry.at, note)


def list_notes(workspace: Workspace, run: RunRecord) -> tuple[NoteView, ...]:
    """Notes on the run, oldest first."""
    entries = workspace.ledger.audit.readable_entries(run.run_id, actions=(NOTED,))
    return tuple(NoteView(run.run_id, one.body["person"], one.at, one.body["note"]) for one in entries)
