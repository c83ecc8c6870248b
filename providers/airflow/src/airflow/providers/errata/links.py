"""Links of a task: the report for the owner of the numbers, and Spark's history server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.errata.installation import name_report
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.providers.errata.operators.base import ErrataOperator


class ReportLink(BaseOperatorLink):
    """The report of the run, if a validation has written one."""

    name = "Errata report"

    def get_link(self, operator: ErrataOperator, *, ti_key: Any) -> str:  # noqa: ARG002 (Airflow passes both)
        """The address under ``reports_url`` of the connection; empty without it."""
        found = operator.installation
        if not found.reports_url or not operator.reported_run:
            return ""
        file = name_report(found, operator.reported_run)
        return f"{found.reports_url.rstrip('/')}/{file.name}" if file and file.exists() else ""


class SparkLink(BaseOperatorLink):
    """Spark's history server, for all applications of a project."""

    name = "Spark UI"

    def get_link(self, operator: ErrataOperator, *, ti_key: Any) -> str:  # noqa: ARG002 (Airflow passes both)
        """``spark_url`` of the connection; empty without it."""
        return operator.installation.spark_url or ""
