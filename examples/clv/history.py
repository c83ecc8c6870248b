"""Five years of customer value as release 1.4.0 left them, and the two tables that are computed from it.

Bare Spark jobs, one file per partition, every one of them wrong.

python -m examples.clv.history PROJECT [--days 1825]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from examples.clv.lake import CAMPAIGNS, DAYS, MONTH, VALUE, WEEK, Lake, days
from examples.finsight.lake import CATALOG
from examples.finsight.pipeline import load_release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).resolve().parent
WRONG = HERE / "releases" / "customer_value_1_4_0.py"
READERS = {MONTH: HERE / "transforms" / "value_by_month.sql", WEEK: HERE / "transforms" / "margin_week.sql"}


def write_history(spark: SparkSession, lake: Lake, *, count: int = DAYS) -> None:
    """Fill the empty tables; no transform needs a ``ctx``, and the job is no run of anything."""
    from pyspark.sql import functions as F  # noqa: N812

    release = load_release(WRONG, "1.4.0")
    raw = spark.read.option("basePath", str(lake.events)).parquet(*(str(lake.events_of(day)) for day in days(count)))
    built = release.build(None, raw, spark.table(f"{CATALOG}.{CAMPAIGNS}"))
    _append(built, VALUE, "1.4.0")
    spark.table(f"{CATALOG}.{VALUE}").createOrReplaceTempView("days")
    # Iceberg's parser forgets the parameters of a query, unless Spark binds them later (apache/iceberg#16625)
    spark.conf.set("spark.sql.legacy.parameterSubstitution.constantsOnly", "true")
    every_day = F.array(*(F.lit(day.isoformat()) for day in days(count)))
    for table, query in READERS.items():  # these two are right, and what they read is not
        _append(spark.sql(query.read_text(encoding="utf-8"), args={"partitions": every_day}), table, "1.0.0")


def _append(built: DataFrame, table: str, version: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    nightly = F.concat(F.lit("nightly-"), F.col(built.columns[0]).cast("string"))
    own = {"produced_by_run_id": nightly, "transform_version": F.lit(version)}
    rows = built.withColumns(own).withColumn("restatement_reason", F.lit(None).cast("string"))
    rows.writeTo(f"{CATALOG}.{table}").option("fanout-enabled", "false").append()


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
