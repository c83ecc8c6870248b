"""The content of a report, also the output of ``errata report --json``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from errata.canonical import LEFT_OUT, to_plain
from errata.model.copy.summary import CopySummary
from errata.views import NoteView, PlanView, ValidateView, WaveTurnView, WaveView
from errata.views.diff import DiffView


@dataclass(frozen=True, slots=True)
class AcceptedWarning:
    """A warning for which a person took responsibility."""

    check: str
    why: str
    person: str
    at: str


@dataclass(frozen=True, slots=True)
class ReportedPublication:
    """A committed publication or rollback."""

    kind: str  # publish | rollback
    partitions: tuple[str, ...]
    person: str
    reason: str
    at: str
    snapshot_id: str | None


@dataclass(frozen=True, slots=True)
class OriginCount:
    """Events of one origin and rule version; ``rule`` is None for recorded events."""

    origin: str
    rule: str | None
    version: str | None
    confidence: str | None
    rows: int  # in the output of the run
    before: int | None  # in main before it; None: not measured
    superseded: int | None  # in the output of the superseded run; None: the run supersedes none that rebuilt events


@dataclass(frozen=True, slots=True)
class ReportView:
    """Everything a person needs to decide on one run; ``diff`` is None if its snapshots are gone."""

    run_id: str
    state: str
    plan: PlanView
    verdict: ValidateView
    judged_by: str
    judged_at: str
    partitions: tuple[str, ...]  # those of the candidate; fewer than planned when only a canary was computed
    accepted: tuple[AcceptedWarning, ...]
    releases: tuple[ReportedPublication, ...]
    diff: DiffView | None
    next: tuple[str, ...]
    undo: str  # end of the rollback window; a duration before publication
    digests: Mapping[str, str] = field(default_factory=dict)
    made_at: str = ""
    notes: tuple[str, ...] = ()
    waves: tuple[WaveView, ...] = ()
    turn: WaveTurnView | None = None  # None: the run is one wave
    copies: tuple[CopySummary, ...] = field(default=(), metadata=LEFT_OUT)  # in warehouses, that the run delivers to
    origins: tuple[OriginCount, ...] = field(default=(), metadata=LEFT_OUT)  # of a run that rebuilds events
    kept_notes: tuple[NoteView, ...] = field(default=(), metadata=LEFT_OUT)  # what people wrote about the run

    def data(self) -> dict[str, Any]:
        """As JSON data; the diff is flat, as ``errata diff --json`` has it."""
        return {**to_plain(self), "diff": self.diff.data() if self.diff else None}
