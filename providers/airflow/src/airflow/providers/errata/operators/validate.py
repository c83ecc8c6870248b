"""Judges a candidate."""

from __future__ import annotations

from typing import Any

from airflow.providers.errata.command import build_report, build_validate
from airflow.providers.errata.installation import name_report
from airflow.providers.errata.links import ReportLink, SparkLink
from airflow.providers.errata.operators.base import ErrataOperator
from airflow.providers.errata.outcome import REJECTED
from airflow.sdk import Context


class ErrataValidateOperator(ErrataOperator):
    """Run the gate over what was computed; returns the id of the run.

    A rejected candidate fails the task without a retry. Its log has the findings, and the link *Errata report* the
    whole report, if the connection has ``reports`` and ``reports_url``.
    """

    template_fields = ("run_id",)
    operator_extra_links = (ReportLink(), SparkLink())

    def __init__(self, *, run_id: str, report: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run_id = run_id
        self.report = report

    def execute(self, context: Context) -> str:  # noqa: ARG002 (Airflow passes it)
        """Judge, and write the report of what was judged."""
        outcome = self.call(build_validate(self.run_id))
        if outcome.exit_code in {0, REJECTED}:
            self._write_report()
        self.judge("validate", outcome)
        return self.run_id

    def _write_report(self) -> None:
        """Write the report; the verdict counts also if that fails."""
        file = name_report(self.installation, self.run_id)
        if not self.report or file is None:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        written = self.call(build_report(self.run_id, str(file)))
        if written.exit_code:
            self.log.warning("the report was not written: %s", written.error.get("message"))
        else:
            self.reported_run = self.run_id
