"""Follow what was started for a run: start what is not, record what has ended, stop what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from errata.commands.plan.show import failures_view
from errata.commands.situation import suggest_steps
from errata.errors import EngineError, ErrataError, RunFailed, StateRefused
from errata.failpoints import failpoint
from errata.ledger import ChunkCounts
from errata.model.cluster.submission import StartedWorker, Submission
from errata.model.run import WITHOUT_RESULT, RunState
from errata.ports.clusters import Cluster, JobState, JobStatus, WorkerOrder
from errata.text.numbers import plural
from errata.workspace import RunContext

POLL_SECONDS = 2.0
_GRACE_SECONDS = 60.0
"""How long workers get to end by themselves when nothing is left to compute."""
_STOP_SECONDS = 600.0
_MISSES = 30
"""Questions to a cluster that may fail in a row before the command gives up; workers continue."""
_COMPUTING = frozenset({RunState.PLANNED, RunState.APPROVED, RunState.RUNNING, RunState.PAUSED})


class WorkerWatch:
    """One submission and its cluster; every change is recorded in the ledger at once."""

    def __init__(
        self, context: RunContext, submission: Submission, orders: Sequence[WorkerOrder], cluster: Cluster
    ) -> None:
        self._context = context
        self._orders = {order.name: order for order in orders}
        self._cluster = cluster
        self._missed = 0
        self.submission = submission

    def start(self) -> None:
        """Start what is not recorded as started; a start that nobody recorded is found again."""
        for name in [one.name for one in self._list_open()]:
            self._reload()  # somebody may have stopped the rest meanwhile
            one = self._find(name)
            if not one.is_open or one.job_id is not None:
                continue
            try:
                status = self._cluster.start(self._orders[name])
            except ErrataError as error:
                self._give_up(error)
                raise
            failpoint("submit.after_start")
            self._record_started(one, status)
            failpoint("submit.after_record")

    def look(self) -> None:
        """Ask the cluster about everything that may be running, and record what has ended."""
        self._reload()
        for one in self._list_open():
            status = self._ask_about(one)
            if status is None:
                continue
            if one.job_id is None:
                one = self._record_started(one, status)
            if status.has_ended:
                self._record_ended(one, status.state.value, status.detail, status.log)
                self._tell_end(one, status)

    def follow(self) -> None:
        """Wait until the run is computed or nothing that was started runs any more."""
        told: ChunkCounts | None = None
        while True:
            if self._patiently(self.look):
                if not self.submission.is_open or self._read_state() not in _COMPUTING:
                    return
                counts = self._context.ledger.progress.counts(self._context.run_id)
                if told is None or counts.done != told.done:
                    told = counts
                    self._context.workspace.narrate(f"{counts.done} of {plural(counts.total, 'chunk')} done")
            self._context.workspace.sleep(POLL_SECONDS)

    def finish(self) -> Submission:
        """Let workers end by themselves, stop those that do not, and say what went wrong if chunks are left."""
        waited = 0.0
        while self.submission.is_open and waited < _GRACE_SECONDS:
            self._context.workspace.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
            self._patiently(self.look)
        state = self._read_state()
        self.stop(f"the run is {'computed' if _is_computed(state) else state.value}")
        if not _is_computed(state):
            raise self._build_error(state)
        return self.submission

    def stop(self, why: str, misses: int = _MISSES) -> None:
        """End everything that may be running, and wait until the cluster says that it has ended."""
        self._reload()
        asked: set[str] = set()
        waited = 0.0
        while True:
            self._patiently(lambda: self._end_open(why, asked), misses)
            if not (left := self._list_open()):
                return
            if waited >= _STOP_SECONDS:
                names = ", ".join(one.name for one in left)
                raise self._build_unknown(
                    f"{plural(len(left), 'worker')} of {self._context.run_id} did not end within {_STOP_SECONDS:.0f} "
                    f"s: {names}"
                )
            self._context.workspace.sleep(POLL_SECONDS)
            waited += POLL_SECONDS

    @contextmanager
    def stopping_when_interrupted(self) -> Iterator[None]:
        """Stop everything when a person interrupts the command."""
        try:
            yield
        except KeyboardInterrupt:
            self.stop("interrupted")
            raise

    def _patiently(self, ask: Callable[[], None], misses: int = _MISSES) -> bool:
        """Ask the cluster; whether it answered. Raises when it did not, many times in a row."""
        try:
            ask()
        except EngineError as error:
            self._missed += 1
            if self._missed >= misses:
                raise self._build_unknown(error.message) from None
            self._context.workspace.narrate(f"WARNING: {error.message}; asking again")
            return False
        self._missed = 0
        return True

    def _give_up(self, error: ErrataError) -> None:
        """End what was started of a submission that does not come about; the answer to a start may have been lost."""
        error.state = "nothing that was started runs any more; main is unchanged"
        error.hint = error.hint or f"errata submit {self._context.run_id} --start {self.submission.target}"
        try:
            self.stop(f"a worker could not be started: {error.message}", misses=1)
        except ErrataError as unknown:
            error.state, error.hint = unknown.state, unknown.hint

    def _ask_about(self, one: StartedWorker) -> JobStatus | None:
        return self._cluster.find(self._orders[one.name]) if one.job_id is None else self._cluster.read(one.job_id)

    def _end_open(self, why: str, asked: set[str]) -> None:
        """Ask the cluster to end what runs, each once, and record what has ended."""
        for one in self._list_open():
            status = self._ask_about(one)
            if status is None:
                self._record_ended(one, "not_started", why)
                continue
            if one.job_id is None:
                one = self._record_started(one, status)
            if not status.has_ended and one.name not in asked:
                self._cluster.stop(status.job_id)
                asked.add(one.name)
                failpoint("submit.after_stop")
                status = self._cluster.read(status.job_id)
            if status.has_ended:
                detail = why if status.state is JobState.STOPPED else status.detail
                self._record_ended(one, status.state.value, detail, status.log)

    def _record_started(self, one: StartedWorker, status: JobStatus) -> StartedWorker:
        found = replace(one, job_id=status.job_id, log=status.log)
        ledger = self._context.ledger
        ledger.submissions.record_started(self._context.run_id, self.submission.n, found, self._context.actor)
        self._reload()
        if not self._find(one.name).is_open:
            # somebody stopped the submission during this start
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

    def _read_state(self) -> RunState:
        return self._context.ledger.runs.get(self._context.run_id).state

    def _tell_end(self, one: StartedWorker, status: JobStatus) -> None:
        if status.state is not JobState.SUCCEEDED:
            said = f": {status.detail}" if status.detail else ""
            log = f"; log: {status.log}" if status.log else ""
            self._context.workspace.narrate(f"WARNING: {one.name} {status.state.value}{said}{log}")

    def _build_unknown(self, message: str) -> EngineError:
        run_id, target = self._context.run_id, self.submission.target
        return EngineError(
            message,
            state="workers may be running; what was computed is kept; main is unchanged",
            hint=f"errata submit {run_id} --stop, or to follow them: errata submit {run_id} --start {target}",
        )

    def _build_error(self, state: RunState) -> ErrataError:
        run_id, counts = self._context.run_id, self._context.ledger.progress.counts(self._context.run_id)
        left = f"{plural(counts.total - counts.done, 'chunk')} of {counts.total} are not done"
        kept = "what was computed is kept; nothing that was started runs any more; main is unchanged"
        if state is RunState.FAILED:
            first = next(iter(failures_view(self._context.ledger.progress.chunks(run_id))), {"error": "unknown"})
            told = f"{counts.failed + counts.quarantined} of {counts.total} chunks of {run_id} failed; first: "
            steps = suggest_steps(self._context.workspace, self._context.actor, run_id)
            again = next(iter(steps), f"errata status {run_id}")
            return RunFailed(
                told + str(first["error"]).splitlines()[0], state=kept, hint=f"fix the cause, then: {again}"
            )
        if state is RunState.PAUSED or state in WITHOUT_RESULT:
            return StateRefused(f"run {run_id} is {state.value}; {left}", state=kept, run_id=run_id, found=state.value)
        ends = [
            f"{one.name} {one.outcome}" + (f" ({one.detail})" if one.detail else "") for one in self.submission.started
        ]
        logs = [one.log for one in self.submission.started if one.log]
        return EngineError(
            f"no worker of {run_id} is left, and {left}: {'; '.join(ends)}"
            + (f". Log: {', '.join(logs)}" if logs else ""),
            state=kept,
            hint=f"errata submit {run_id} --start {self.submission.target}",
        )


def _is_computed(state: RunState) -> bool:
    return state not in _COMPUTING | WITHOUT_RESULT | {RunState.FAILED}
