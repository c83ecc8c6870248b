"""What the example DAGs do not show: a rollback, a look for late data, workers that are started elsewhere."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

from airflow.providers.errata.operators.late import ErrataLateOperator
from airflow.providers.errata.operators.publish import ErrataRollbackOperator
from airflow.providers.errata.operators.run import ErrataRunOperator
from airflow.sdk import Param, dag

PRODUCT = "shop.daily_sales"
START = datetime(2026, 1, 1, tzinfo=UTC)


@dag(schedule=None, start_date=START, params={"run_id": Param("", type="string")})
def shop_undo() -> None:
    """Restore what a run replaced, as bo decides, then look for late data."""
    undo = ErrataRollbackOperator(
        task_id="undo",
        run_id="{{ params.run_id }}",
        reason="audit is open (SHOP-15)",
        decided_by="bo",
        product=PRODUCT,
    )
    undo >> ErrataLateOperator(task_id="late", product=PRODUCT)


@dag(schedule=None, start_date=START, params={"run_id": Param("", type="string")})
def shop_elsewhere() -> None:
    """Start a worker with a program of our own, and end when the run is computed."""
    worker = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    errata = [os.environ.get("SHOP_ERRATA", "errata"), "-C", os.environ.get("SHOP_PROJECT", "."), "--as", "ana"]
    ErrataRunOperator(
        task_id="compute",
        run_id="{{ params.run_id }}",
        workers="elsewhere",
        deferrable=True,
        poll_interval=timedelta(seconds=2),
        submit=[sys.executable, "-c", worker, *errata, "run", "{{ params.run_id }}"],
    )


shop_undo()
shop_elsewhere()
