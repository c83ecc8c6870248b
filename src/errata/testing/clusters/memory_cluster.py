"""A cluster in memory, for tests of commands that start workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from errata.errors import EngineError, Refused
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder


@dataclass
class MemoryCluster:
    """Jobs by token. A test sets their states; ``work`` is called at every look, as workers continue meanwhile."""

    place: str = "in memory"
    release: str | None = None  # None: whatever was sealed
    broken: str = ""  # the error of a cluster that takes nothing
    loses_answers: bool = False  # what is started starts, and the call fails all the same
    silent: int = 0  # this many questions are not answered
    orders: dict[str, WorkerOrder] = field(default_factory=dict)
    states: dict[str, JobState] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    work: Callable[[], None] = lambda: None

    def locate(self) -> str:
        """See the port."""
        return self.place

    def check(self, release: str | None) -> None:
        """See the port."""
        if self.release is not None and release != self.release:
            raise Refused(f"the plan seals release {release}, the cluster has {self.release}")

    def start(self, order: WorkerOrder) -> JobStatus:
        """See the port."""
        if self.broken:
            raise EngineError(self.broken)
        self.orders.setdefault(order.token, order)
        self.states.setdefault(order.token, JobState.RUNNING)
        if self.loses_answers:
            raise EngineError(f"start of {order.name}: no answer")
        return self._describe(order.token)

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """See the port."""
        self._answer()
        return self._describe(order.token) if order.token in self.orders else None

    def read(self, job_id: str) -> JobStatus:
        """See the port."""
        self._answer()
        self.work()
        token = job_id.removeprefix("job-")
        return self._describe(token) if token in self.orders else JobStatus(job_id, JobState.STOPPED)

    def stop(self, job_id: str) -> None:
        """See the port."""
        if not self.read(job_id).has_ended:
            self.stopped.append(job_id)
            self.states[job_id.removeprefix("job-")] = JobState.STOPPED

    def end_all(self, state: JobState, detail: str = "") -> None:
        """Let every job that is running end."""
        for token, known in self.states.items():
            if known in (JobState.STARTING, JobState.RUNNING):
                self.states[token], self.details[token] = state, detail

    def list_running(self) -> list[str]:
        """Names of what is running."""
        running = (JobState.STARTING, JobState.RUNNING)
        return [order.name for token, order in self.orders.items() if self.states[token] in running]

    def _answer(self) -> None:
        if self.silent:
            self.silent -= 1
            raise EngineError("the cluster does not answer")

    def _describe(self, token: str) -> JobStatus:
        return JobStatus(f"job-{token}", self.states[token], self.details.get(token, ""), f"memory:{token}")


_conforms: type[Cluster] = MemoryCluster
