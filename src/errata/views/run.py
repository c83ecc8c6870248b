"""States, chunks, started workers, the verdict of the gate and rows set aside. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from errata.canonical import LEFT_OUT, to_plain
from errata.model.run import RunCounts

if TYPE_CHECKING:
    from errata.views.checks import CheckResult
    from errata.views.copies import CopyLine
    from errata.views.diff import DiffView
    from errata.views.live_writes import LateInputView
    from errata.views.plan import DeadlineView
    from errata.views.publish import WaveView


@dataclass(frozen=True, slots=True)
class StateView:
    """A run after a control command."""

    run_id: str
    state: str
    already: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """Result of one worker."""

    run_id: str
    state: str
    already: bool
    chunks: RunCounts
    recomputed: int
    rows: int
    seconds: float
    log: str
    failures: tuple[Mapping[str, Any], ...] = ()
    kind: str = "restate"
    grain: str = "day"
    waves: tuple[WaveView, ...] = ()
    copies: tuple[CopyLine, ...] = field(default=(), metadata=LEFT_OUT)  # in warehouses, one line each


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
    release_digest: str | None = None  # digest for a release; None unless the gate has passed
    single_user: bool = False
    late_inputs: tuple[LateInputView, ...] = ()  # new data in inputs since they were pinned
    kind: str = "restate"
    wave: int = 1

    def _repr_html_(self) -> str:
        from errata.views.notebook import render_verdict

        return render_verdict(self)


@dataclass(frozen=True, slots=True)
class QuarantineReason:
    """Why, where and how many rows of an input were set aside."""

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
    """Rows that a run set aside, of adopted attempts."""

    run_id: str
    product: str
    state: str
    grain: str
    table: str | None  # None: it does not exist, or was cleaned up
    inputs: Mapping[str, Mapping[str, int | str]]  # by input: rows in, used, quarantined, suppressed, set aside
    reasons: tuple[QuarantineReason, ...]
    rows: tuple[SetAsideRow, ...]
    masked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TryView:
    """What a run of these partitions would publish, with the verdict of the gate."""

    product: str
    transform: str
    partitions: tuple[str, ...]
    rows: int
    seconds: float
    passed: bool
    checks: tuple[CheckResult, ...]
    diff: DiffView

    def data(self) -> dict[str, Any]:
        """As JSON data; the diff is flat, as ``errata diff --json`` has it."""
        return {**to_plain(self), "diff": self.diff.data()}

    def _repr_html_(self) -> str:
        from errata.views.notebook import render_trial

        return render_trial(self)


@dataclass(frozen=True, slots=True)
class StartedView:
    """One thing that was started, and what became of it."""

    name: str
    id: str | None  # None: it was never started
    outcome: str | None  # succeeded | failed | stopped | not_started; None: it is running
    detail: str
    log: str


@dataclass(frozen=True, slots=True)
class SubmitView:
    """A submission of workers, and the run after it."""

    run_id: str
    state: str
    target: str
    submission: int  # 0: nothing was ever started for this run
    workers: int
    cores: int | None  # of each worker; None: no cap
    joined: bool  # whether the workers were started by an earlier command
    chunks_done: int
    chunks: int
    started: tuple[StartedView, ...]
    deadline: DeadlineView | None = None
