"""Notes on a run and its runbook, as commands print them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

DONE, OPEN, NOT_NEEDED = "done", "open", "not needed"


@dataclass(frozen=True, slots=True)
class RunbookStep:
    """One step: done by somebody, open with the command that does it, or not needed for a reason."""

    n: int
    step: str
    state: str
    who: str = ""
    at: str = ""
    what: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class NoteView:
    """What a person wrote about a run."""

    run_id: str
    person: str
    at: str
    note: str
    already: bool = False


@dataclass(frozen=True, slots=True)
class RunbookView:
    """The twenty steps of a correction, ticked from the record."""

    run_id: str
    product: str
    state: str
    steps: tuple[RunbookStep, ...]
    notes: tuple[NoteView, ...]
