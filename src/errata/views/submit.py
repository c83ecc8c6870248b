"""The JSON of ``errata submit --start`` and ``--stop``. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from errata.views.plan import DeadlineView


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
