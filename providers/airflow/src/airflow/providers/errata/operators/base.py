"""What all operators share: a command is started, its end is judged, and a killed task stops it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowSkipException
from airflow.providers.errata.command import build_status
from airflow.providers.errata.hook import ErrataHook
from airflow.providers.errata.installation import Command, Installation
from airflow.providers.errata.outcome import Course, Outcome, choose_course, describe_outcome, list_findings
from airflow.sdk import BaseOperator

_RAISED = {Course.SKIP: AirflowSkipException, Course.FAIL: AirflowFailException, Course.RETRY: AirflowException}


def require_done(command: str, outcome: Outcome) -> Mapping[str, Any]:
    """The answer of a command that succeeded; otherwise raises what skips, fails or retries the task."""
    if (course := choose_course(outcome)) is not Course.DONE:
        raise _RAISED[course](describe_outcome(command, outcome))
    return outcome.answer


class ErrataOperator(BaseOperator):
    """Base of the operators; ``stop_after`` is how long a killed task waits for Errata to record what it has."""

    template_fields: Sequence[str] = ()
    ui_color = "#e8f0ea"

    def __init__(
        self, *, errata_conn_id: str = ErrataHook.default_conn_name, stop_after: float = 45.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.errata_conn_id = errata_conn_id
        self.stop_after = stop_after
        self.reported_run: str | None = None  # the run whose report the task links to
        self._command: Command | None = None

    @cached_property
    def installation(self) -> Installation:
        """What the connection describes."""
        return ErrataHook(self.errata_conn_id).get_conn()

    def call(self, arguments: Sequence[str], account: str | None = None) -> Outcome:
        """Run a command to the end, whatever its exit code is."""
        self._command = Command(self.installation, self.log.info)
        try:
            return self._command.run(arguments, account)
        finally:
            self._command = None

    def require(self, arguments: Sequence[str], account: str | None = None) -> Mapping[str, Any]:
        """Run a command and return its answer, or end the task as its exit code demands."""
        return self.judge(arguments[0], self.call(arguments, account))

    def judge(self, command: str, outcome: Outcome) -> Mapping[str, Any]:
        """The answer, or the end of the task with what was found in its log."""
        if outcome.exit_code:
            for finding in list_findings(outcome.answer):
                self.log.error(finding)
        return require_done(command, outcome)

    def read_status(self, run_id: str) -> Mapping[str, Any]:
        """The status of a run, from the ledger."""
        return self.require(build_status(run_id))

    def on_kill(self) -> None:
        """Stop the command; what it has finished stays recorded, and a later attempt continues."""
        if self._command is not None:
            self._command.stop(self.stop_after)
