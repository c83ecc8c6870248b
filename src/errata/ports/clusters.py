"""Port for clusters that workers are started on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class JobState(StrEnum):
    """What a cluster says about something that was started."""

    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"  # somebody ended it, or it was killed


ENDED = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.STOPPED})


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """Something to start; ``request`` is in the form that the cluster takes and may contain secrets' names."""

    name: str
    token: str
    since: str  # ISO instant; it was not started before
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What became of an order."""

    job_id: str
    state: JobState
    detail: str = ""
    log: str = ""  # where its output is

    @property
    def has_ended(self) -> bool:
        """Whether it uses nothing any more."""
        return self.state in ENDED


class Cluster(Protocol):
    """Starts, follows and stops jobs.

    An order is started at most once, however often and by however many processes :meth:`start` is called with it: the
    job is recognised by its name and token. All methods raise ``EngineError`` when the cluster cannot be asked, and
    then nothing is known.
    """

    def locate(self) -> str:
        """Where the jobs are that it starts; from another place they are neither found nor stopped."""

    def check(self, release: str | None) -> None:
        """Raise ``Refused`` if the cluster that is there has another release than the sealed one."""

    def start(self, order: WorkerOrder) -> JobStatus:
        """Start the order, or find what was started for it before, in whatever state it is."""

    def find(self, order: WorkerOrder) -> JobStatus | None:
        """What was started for the order; None if nothing was."""

    def read(self, job_id: str) -> JobStatus:
        """The state of a job; one that the cluster does not know any more counts as stopped."""

    def stop(self, job_id: str) -> None:
        """End a job and everything that it uses; does nothing if it has ended."""
