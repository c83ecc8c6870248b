"""Follow what was started for a run: start what is not, record what has ended, stop what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from errata.errors import EngineError, ErrataError
from errata.failpoints import failpoint
from errata.model.cluster.submission import StartedWorker, Submission
from errata.model.run import RunState
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder
from errata.text.numbers import plural
from errata.workspace import RunContext

POLL_SECONDS = 2.0
_GRACE_SECONDS = 60.0
"""How long workers get to end by themselves when nothing is left to compute."""
_STOP_SECONDS = 600.0
_MISSES = 30
"""Looks at a cluster that may fail in a row before the command gives up; what runs goes on."""
_COMPUTING = frozenset({RunState.PLANNED, RunState.APPROVED, RunState.RUNNING, RunState.PAUSED})


class WorkerWatch:
    """One submission and its cluster; every change is recorded in the ledger at once."""

    def __init__(
        self, context: RunContext, submission: Submission, orders: Sequence[WorkerOrder], cluster: Cluster
    ) -> None:
        self._context = context
        self._orders = {order.name: order for order in orders}
        self._cluster = cluster
        self.submission = submission

    def start(self) -> None:
        """Start what is not recorded as started; a start that nobody recorded is found again."""
        for one in self._list_open():
            if one.job_id is None:
                try:
                    status = self._cluster.start(self._orders[one.name])
                except ErrataError as error:
                    self._record_ended(one, "not_started", error.message)
                    self.stop("another worker could not be started")
                    raise
                failpoint("submit.after_start")
                self._record_started(one, status)
                failpoint("submit.after_record")

    def look(self) -> None:
        """Ask the cluster about everything that may be running, and record what has ended."""
        self._reload()
        for one in self._list_open():
            order = self._orders[one.name]
            status = self._cluster.find(order) if one.job_id is None else self._cluster.read(one.job_id)
            if status is None:
                continue
            if one.job_id is None:
                one = self._record_started(one, status)
            if status.has_ended:
                self._record_ended(one, status.state.value, status.detail, status.log)
                self._tell_end(one, status)

    def follow(self) -> None:
        """Wait until the run is computed or nothing that was started runs any more."""
        told, missed = -1, 0
        while True:
            try:
                self.look()
                missed = 0
            except EngineError as error:
                missed += 1
                if missed == _MISSES:
                    raise
                self._context.workspace.narrate(f"WARNING: {error.message}; asking again")
            if not self.submission.is_open or not self._is_computing():
                return
            counts = self._context.ledger.progress.counts(self._context.run_id)
            if counts.done != told:
                told = counts.done
                self._context.workspace.narrate(f"{counts.done} of {plural(counts.total, 'chunk')} done")
            self._context.workspace.sleep(POLL_SECONDS)

    def finish(self) -> Submission:
        """Let workers end by themselves, stop those that do not, and say what went wrong if chunks are left."""
        waited = 0.0
        while self.submission.is_open and waited < _GRACE_SECONDS:
            self._context.workspace.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            self.look()
        self.stop("the run is computed")
        run = self._context.ledger.runs.get(self._context.run_id)
        if run.state in _COMPUTING and run.state is not RunState.PAUSED:
            raise self._build_error()
        return self.submission

    def stop(self, why: str) -> None:
        """End everything that may be running, and wait until the cluster says that it has ended."""
        self._reload()
        waiting = [one for one in self._list_open() if self._end(one, why)]
        waited = 0.0
        while waiting:
            if waited >= _STOP_SECONDS:
                raise EngineError(
                    f"{plural(len(waiting), 'worker')} of {self._context.run_id} did not end within "
                    f"{_STOP_SECONDS:.0f} s: {', '.join(one.name for one in waiting)}",
                    state="they may be running",
                    hint=f"errata submit {self._context.run_id} --stop",
                )
            self._context.workspace.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            waiting = [one for one in waiting if not self._has_ended(one, why)]

    @contextmanager
    def stopping_when_interrupted(self) -> Iterator[None]:
        """Stop everything when a person interrupts the command."""
        try:
            yield
        except KeyboardInterrupt:
            self.stop("interrupted")
            raise

    def _end(self, one: StartedWorker, why: str) -> bool:
        """Ask the cluster to end one; whether its end has to be waited for."""
        if one.job_id is None:
            status = self._cluster.find(self._orders[one.name])
            if status is None:
                self._record_ended(one, "not_started", why)
                return False
            one = self._record_started(one, status)
        self._cluster.stop(one.job_id or "")
        failpoint("submit.after_stop")
        return not self._has_ended(one, why)

    def _has_ended(self, one: StartedWorker, why: str) -> bool:
        status = self._cluster.read(self._find(one.name).job_id or "")
        if status.has_ended:
            detail = why if status.state is JobState.STOPPED else status.detail
            self._record_ended(self._find(one.name), status.state.value, detail, status.log)
        return status.has_ended

    def _record_started(self, one: StartedWorker, status: JobStatus) -> StartedWorker:
        found = replace(one, job_id=status.job_id, log=status.log)
        ledger = self._context.ledger
        ledger.submissions.record_started(self._context.run_id, self.submission.n, found, self._context.actor)
        self._reload()
        if not self._find(one.name).is_open:
            # somebody stopped the submission while this start was under way
            self._cluster.stop(status.job_id)
        return self._find(one.name)

    def _record_ended(self, one: StartedWorker, outcome: str, detail: str, log: str = "") -> None:
        found = replace(one, outcome=outcome, detail=detail, log=log or one.log)
        ledger = self._context.ledger
        ledger.submissions.record_ended(self._context.run_id, self.submission.n, found, self._context.actor)
        self._reload()

    def _reload(self) -> None:
        known = self._context.ledger.submissions.read_all(self._context.run_id)
        self.submission = known[self.submission.n - 1]

    def _list_open(self) -> list[StartedWorker]:
        return [one for one in self.submission.started if one.is_open]

    def _find(self, name: str) -> StartedWorker:
        return next(one for one in self.submission.started if one.name == name)

    def _is_computing(self) -> bool:
        return self._context.ledger.runs.get(self._context.run_id).state in _COMPUTING

    def _tell_end(self, one: StartedWorker, status: JobStatus) -> None:
        if status.state is not JobState.SUCCEEDED:
            said = f": {status.detail}" if status.detail else ""
            log = f"; log: {status.log}" if status.log else ""
            self._context.workspace.narrate(f"WARNING: {one.name} {status.state.value}{said}{log}")

    def _build_error(self) -> EngineError:
        counts = self._context.ledger.progress.counts(self._context.run_id)
        ends = [
            f"{one.name} {one.outcome}" + (f" ({one.detail})" if one.detail else "") for one in self.submission.started
        ]
        logs = [one.log for one in self.submission.started if one.log]
        return EngineError(
            f"no worker of {self._context.run_id} is left, and {plural(counts.total - counts.done, 'chunk')} of "
            f"{counts.total} are not done: {'; '.join(ends)}" + (f". Log: {', '.join(logs)}" if logs else ""),
            state="what was computed is kept; nothing that was started runs any more; main is unchanged",
            hint=f"errata submit {self._context.run_id} --start {self.submission.target}",
        )
