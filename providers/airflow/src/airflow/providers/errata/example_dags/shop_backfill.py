"""A correction: planned once, decided by people in Errata, computed by one task, published as asset events."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.errata.operators.plan import ErrataPlanOperator
from airflow.providers.errata.operators.publish import ErrataPublishOperator
from airflow.providers.errata.operators.run import ErrataRunOperator
from airflow.providers.errata.operators.validate import ErrataValidateOperator
from airflow.providers.errata.sensors.decision import ErrataApprovalSensor, ErrataReleaseSensor
from airflow.sdk import Param, dag

PRODUCT = "shop.daily_sales"


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    max_active_runs=1,
    # a pool of its own, with few slots: however much is corrected, the daily pipeline has its own
    default_args={"pool": os.environ.get("SHOP_BACKFILL_POOL", "shop_backfill"), "priority_weight": 1},
    params={
        "start": Param("2026-01-05", type="string", description="First day"),
        "end": Param("2026-01-09", type="string", description="Day after the last"),
        "reason": Param("refunds were counted as sales", type="string"),
        "requested_by": Param("", type="string", description="Who asks for it (default: who triggers the DAG)"),
    },
    tags=["errata"],
)
def shop_backfill() -> None:
    """Plan, wait for the approval, compute, judge, wait for the release, publish."""
    plan = ErrataPlanOperator(
        task_id="plan",
        product=PRODUCT,
        reason="{{ params.reason }}",
        requested_by="{{ params.requested_by or dag_run.triggering_user_name or '' }}",
        start="{{ params.start }}",
        end="{{ params.end }}",
        retries=2,
        retry_delay=timedelta(seconds=5),
    )
    run_id = plan.output
    approved = ErrataApprovalSensor(task_id="approved", run_id=run_id, deferrable=True, poke_interval=5)
    run = ErrataRunOperator(task_id="run", run_id=run_id, retries=3, retry_delay=timedelta(seconds=5))
    validate = ErrataValidateOperator(task_id="validate", run_id=run_id, retries=2, retry_delay=timedelta(seconds=5))
    released = ErrataReleaseSensor(task_id="released", run_id=run_id, deferrable=True, poke_interval=5)
    publish = ErrataPublishOperator(
        task_id="publish", run_id=run_id, product=PRODUCT, retries=2, retry_delay=timedelta(seconds=5)
    )
    approved >> run >> validate >> released >> publish


shop_backfill()
