"""The daily pipeline: it writes its day under a lease, in a pool of its own, and never waits long for a correction."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta

from airflow.providers.errata.sensors.ready import ErrataReadySensor
from airflow.sdk import dag, task

JOB = os.environ.get("SHOP_DAILY_JOB", "/srv/shop/write-day")
PRODUCT = "shop.daily_sales"


@dag(
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"pool": os.environ.get("SHOP_DAILY_POOL", "shop_daily"), "priority_weight": 100},
    tags=["errata"],
)
def shop_daily() -> None:
    """Write one day, then let its readers continue."""

    # A correction that has frozen the day delays it by ten minutes at most. Then the day is written all the same, and
    # the correction ends with a conflict: the live pipeline comes first.
    @task.live_write(
        table=PRODUCT,
        partitions="{{ ds }}",
        job="shop-daily",
        wait_at_most=timedelta(seconds=int(os.environ.get("SHOP_DAILY_LIMIT", "600"))),
        then="write",
        poll_interval=timedelta(seconds=5),
        retries=2,
    )
    def write_day(day: str) -> None:
        subprocess.run([JOB, day], check=True)

    ready = ErrataReadySensor(task_id="ready", table=PRODUCT, partitions=["{{ ds }}"], poke_interval=15)
    write_day("{{ ds }}") >> ready


shop_daily()
