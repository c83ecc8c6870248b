"""Answers about computing: states, chunks, the verdict of the gate, rows set aside. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.views.checks import CheckResult
from errata.views.diff import DiffView
from errata.views.live_writes import LateInputView


@dataclass(frozen=True, slots=True)
class StateView:
    """A run after a control command."""

    run_id: str
    state: str
    already: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The chunks of a run by state."""

    total: int
    done: int
    running: int
    failed: int
    quarantined: int
    pending: int


@dataclass(frozen=True, slots=True)
class RunView:
    """What a worker leaves behind."""

    run_id: str
    state: str
    already: bool
    chunks: RunCounts
    recomputed: int
    rows: int
    seconds: float
    log: str
    failures: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ValidateView:
    """The verdict on a candidate."""

    run_id: str
    state: str
    already: bool
    passed: bool
    snapshot_id: str
    candidate: str
    checks: tuple[Mapping[str, Any], ...]
    measured: int
    conflicts: tuple[str, ...] = ()
    thresholds: tuple[Mapping[str, Any], ...] = ()  # changed since the plan: person, why, changes
    release_digest: str | None = None  # what a release names; None while it does not pass
    single_user: bool = False
    late_inputs: tuple[LateInputView, ...] = ()  # what came into the inputs after they were pinned


@dataclass(frozen=True, slots=True)
class QuarantineReason:
    """Why rows of an input were set aside, and how many, where."""

    input: str
    kind: str  # cast | rule | transform
    reason: str
    rows: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetAsideRow:
    """One row that was set aside, as the source has it; classified columns are masked."""

    input: str
    partition: str
    kind: str
    reason: str
    chunk_id: str
    origin: str  # the file, table@snapshot, or the transform
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QuarantineView:
    """What a run set aside: the rows of adopted attempts."""

    run_id: str
    product: str
    state: str
    grain: str
    table: str | None  # None: there is none, or it was cleaned up
    inputs: Mapping[str, Mapping[str, int]]  # by input: rows in, used, quarantined, suppressed, set aside
    reasons: tuple[QuarantineReason, ...]
    rows: tuple[SetAsideRow, ...]
    masked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TryView:
    """What a run over these partitions would publish, and what the gate would say."""

    product: str
    transform: str
    partitions: tuple[str, ...]
    rows: int
    seconds: float
    passed: bool
    checks: tuple[CheckResult, ...]
    diff: DiffView
