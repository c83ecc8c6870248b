"""Sixty days of daily revenue, as the daily pipeline left them: 45 days by release 2.3.9, 15 days by release 2.4.1.

Each period is one Spark job with one file per day, because nobody wants to wait for sixty jobs.

    python -m examples.finsight.history PROJECT
"""

from __future__ import annotations

import argparse
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from examples.finsight.lake import CATALOG, FIRST_DAY, FIXED_ON, REVENUE, TODAY, Lake, days
from examples.finsight.pipeline import Release, context, load_release, rates_version, revenue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
WRONG = HERE / "releases" / "daily_revenue_2_3_9.py"


def write_history(spark: SparkSession, project: Path) -> None:
    """Fill the empty table."""
    lake = Lake(project / "lake")
    right = load_release(project / "transforms" / "daily_revenue.py", "2.4.1")
    write_period(spark, project, lake, load_release(WRONG, "2.3.9"), FIRST_DAY, FIXED_ON)
    write_period(spark, project, lake, right, FIXED_ON, TODAY)


def write_period(spark: SparkSession, project: Path, lake: Lake, release: Release, start: date, end: date) -> None:
    """The days of ``[start, end)`` as that release computes them."""
    raw = [lake.transactions_of(day) for day in days(start, end)]
    ctx = context(project, start, end - timedelta(1))
    rows = revenue(spark, release, ctx, raw, run_id="daily-{business_date}", rates=rates_version(lake))
    rows.writeTo(f"{CATALOG}.{REVENUE}").option("fanout-enabled", "false").append()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write sixty days of history, 45 of them wrong.")
    parser.add_argument("project", type=Path)
    project = parser.parse_args().project.absolute()
    spark = Lake(project / "lake").spark("finsight-history", cores=2, memory="1g")
    try:
        write_history(spark, project)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
