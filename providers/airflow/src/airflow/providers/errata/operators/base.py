"""What all operators share: a command is started, its end is judged, and a killed task stops it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NoReturn

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowSkipException
from airflow.providers.errata.command import build_status
from airflow.providers.errata.hook import ErrataHook
from airflow.providers.errata.installation import Command, Installation
from airflow.providers.errata.outcome import Course, Outcome, choose_course, describe_outcome, list_findings
from airflow.sdk import BaseOperator

RAISED = {Course.SKIP: AirflowSkipException, Course.FAIL: AirflowFailException, Course.RETRY: AirflowException}


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

    def require(self, arguments: Sequence[str], account: str | None = None) -> Outcome:
        """Run a command, and end the task as its exit code demands unless it succeeded."""
        outcome = self.call(arguments, account)
        if choose_course(outcome) is not Course.DONE:
            self.end_task(arguments[0], outcome)
        return outcome

    def end_task(self, command: str, outcome: Outcome) -> NoReturn:
        """Log what was found, and raise what skips, fails or retries the task."""
        for finding in list_findings(outcome.answer):
            self.log.error(finding)
        raise RAISED[choose_course(outcome)](describe_outcome(command, outcome))

    def read_status(self, run_id: str) -> dict[str, Any]:
        """The status of a run, from the ledger."""
        return dict(self.require(build_status(run_id)).answer)

    def on_kill(self) -> None:
        """Stop the command; what it has finished stays recorded, and a later attempt continues."""
        if self._command is not None:
            self._command.stop(self.stop_after)
