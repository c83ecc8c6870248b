"""Submissions: what was started on clusters for a run, recorded before and after each call.

They are run notes: written once, each with its audit entry. That the note of a submission can be written once only
decides between two processes that start workers of the same run at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from errata.ledger.store.base import find_run
from errata.ledger.store.facts import RunFacts, load_facts
from errata.model.audit import Actor
from errata.model.cluster.submission import SUBMISSION, StartedWorker, Submission, read_submissions


class Submissions(RunFacts):
    """What was started for each run."""

    def read_all(self, run_id: str) -> tuple[Submission, ...]:
        """Submissions of a run, oldest first."""

        def work(conn: Connection) -> tuple[Submission, ...]:
            full = find_run(conn, run_id).run_id
            return read_submissions(full, self._database.open(), load_facts(conn, full))

        return self._read(work)

    def intend(self, run_id: str, n: int, value: Mapping[str, Any], actor: Actor) -> bool:
        """Record that submission ``n`` is about to start; False if another process recorded it first."""
        return not self.record(run_id, f"{SUBMISSION}{n}", value, actor)[1]

    def record_started(self, run_id: str, n: int, worker: StartedWorker, actor: Actor) -> None:
        """Record what was started; does nothing if it is recorded."""
        value = {"name": worker.name, "id": worker.job_id, "log": worker.log}
        self.record(run_id, f"{SUBMISSION}{n}.started.{_number(worker)}", value, actor)

    def record_ended(self, run_id: str, n: int, worker: StartedWorker, actor: Actor) -> None:
        """Record that it does not run any more; does nothing if that is recorded."""
        value = {"name": worker.name, "outcome": worker.outcome, "detail": worker.detail, "log": worker.log}
        self.record(run_id, f"{SUBMISSION}{n}.ended.{_number(worker)}", value, actor)


def _number(worker: StartedWorker) -> str:
    return worker.name.rpartition("-")[2]
