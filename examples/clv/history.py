"""Five years of customer value as release 1.4.0 left them: one bare Spark job, one file per day, every day wrong.

python -m examples.clv.history PROJECT [--days 1825]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from examples.clv.lake import CAMPAIGNS, DAYS, VALUE, Lake, days
from examples.finsight.lake import CATALOG
from examples.finsight.pipeline import load_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
WRONG = HERE / "releases" / "customer_value_1_4_0.py"


def write_history(spark: SparkSession, lake: Lake, *, count: int = DAYS) -> None:
    """Fill the empty table; the transform needs no ``ctx``, and the job is no run of anything."""
    from pyspark.sql import functions as F  # noqa: N812

    release = load_release(WRONG, "1.4.0")
    raw = spark.read.option("basePath", str(lake.events)).parquet(*(str(lake.events_of(day)) for day in days(count)))
    built = release.build(None, raw, spark.table(f"{CATALOG}.{CAMPAIGNS}"))
    nightly = F.concat(F.lit("nightly-"), F.col("event_date").cast("string"))
    own = {"produced_by_run_id": nightly, "transform_version": F.lit("1.4.0")}
    rows = built.withColumns(own).withColumn("restatement_reason", F.lit(None).cast("string"))
    rows.writeTo(f"{CATALOG}.{VALUE}").option("fanout-enabled", "false").append()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write five wrong years.")
    parser.add_argument("project", type=Path)
    parser.add_argument("--days", type=int, default=DAYS)
    asked = parser.parse_args()
    lake = Lake(asked.project.absolute() / "lake")
    spark = lake.spark("clv-nightly", cores=2, memory="1g")
    try:
        write_history(spark, lake, count=asked.days)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
