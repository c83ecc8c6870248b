"""Computes a run: with workers of its own, or by waiting for workers elsewhere."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.providers.errata.command import build_run
from airflow.providers.errata.installation import choose_environment
from airflow.providers.errata.operators.base import ErrataOperator
from airflow.providers.errata.run_state import Progress, describe_status, judge_computed
from airflow.providers.errata.triggers.run import ErrataRunTrigger, read_event
from airflow.sdk import Context, conf

POLL = timedelta(seconds=30)


class ErrataRunOperator(ErrataOperator):
    """Compute every chunk of an approved run; one task for the whole run. Returns the id of the run.

    ``workers="here"`` starts ``errata run`` in the task. ``workers="elsewhere"`` computes nothing: it starts the
    program ``submit``, if one is given, such as a ``spark-submit`` to a cluster, and then reads the ledger until every
    chunk is staged. With ``deferrable`` that is done by the triggerer, and the task has no worker slot meanwhile; the
    same applies when ``errata run`` ends while other workers still compute, or the run is paused.

    An attempt after a killed one continues the same run: chunks that are done are not computed again.
    ``pause_when_killed`` pauses the run when a person ends a deferred task; ``errata resume`` continues it.
    """

    template_fields = ("run_id", "submit")

    def __init__(
        self,
        *,
        run_id: str,
        parallel: int = 2,
        workers: Literal["here", "elsewhere"] = "here",
        submit: Sequence[str] = (),
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: timedelta = POLL,
        pause_when_killed: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if workers == "here" and submit:
            raise ValueError('submit starts workers elsewhere; expected workers="elsewhere" with it')
        self.run_id = run_id
        self.parallel = parallel
        self.workers = workers
        self.submit = submit
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.pause_when_killed = pause_when_killed

    def execute(self, context: Context) -> str:  # noqa: ARG002 (Airflow passes it)
        """Compute, or wait until it is computed."""
        if self.workers == "here":
            self.require(build_run(self.run_id, self.parallel))
        elif self._judge(self.read_status(self.run_id)) is Progress.WAITING and self.submit:
            self._start_workers()
        status = self.read_status(self.run_id)
        while self._judge(status) is Progress.WAITING:
            self.log.info("%s; %s", describe_status(status), status.get("held") or "waiting for its workers")
            if self.deferrable:
                self._defer()
            time.sleep(self.poll_interval.total_seconds())
            status = self.read_status(self.run_id)
        return self.run_id

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:  # noqa: ARG002 (Airflow passes it)
        """Continue after the trigger has seen the end."""
        self._judge(read_event(event))
        return self.run_id

    def _judge(self, status: Mapping[str, Any]) -> Progress:
        progress = judge_computed(status)
        if progress is Progress.ENDED:
            for failure in status.get("failures") or ():
                self.log.error("%s: %s", failure.get("chunk_id"), failure.get("message"))
            raise AirflowFailException(describe_status(status))
        return progress

    def _defer(self) -> None:
        self.defer(
            trigger=ErrataRunTrigger(
                installation=self.installation.to_data(), run_id=self.run_id, aim="computed",
                seconds=self.poll_interval.total_seconds(), pause_when_killed=self.pause_when_killed,
            ),
            method_name="execute_complete",
        )  # fmt: skip

    def _start_workers(self) -> None:
        """Start the program that brings workers; starting it twice brings more workers, which is harmless."""
        ended = subprocess.run(
            self.submit,
            env=choose_environment(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for line in ended.stdout.splitlines():
            self.log.info(line)
        if ended.returncode:
            raise AirflowException(
                f"{self.submit[0]} ended with {ended.returncode}; whether it has started workers is not known; "
                f"errata status {self.run_id} shows what they compute"
            )
