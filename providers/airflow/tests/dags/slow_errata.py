"""Tasks for an Errata that does not answer, or answers with an error."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.errata.operators.run import ErrataRunOperator
from airflow.providers.errata.sensors.decision import ErrataApprovalSensor
from airflow.sdk import dag, task

START = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = timedelta(seconds=int(os.environ.get("LIMIT", "10")))


@dag(schedule=None, start_date=START)
def slow_errata_daily() -> None:
    """Two live jobs: one writes when its limit is over, one does not."""

    @task.live_write(table="shop.sales", wait_at_most=LIMIT, then="write", poll_interval=timedelta(seconds=1))
    def write() -> str:
        return "written"

    @task.live_write(table="shop.sales", wait_at_most=LIMIT, then="fail", poll_interval=timedelta(seconds=1))
    def write_or_fail() -> str:
        return "written"

    write()
    write_or_fail()


@dag(schedule=None, start_date=START)
def slow_errata_waits() -> None:
    """Two tasks whose trigger cannot read the status of the run any more."""
    ErrataApprovalSensor(task_id="approved", run_id="bf-1", deferrable=True, poke_interval=1)
    ErrataRunOperator(
        task_id="run", run_id="bf-2", workers="elsewhere", deferrable=True, poll_interval=timedelta(seconds=1)
    )


slow_errata_daily()
slow_errata_waits()
