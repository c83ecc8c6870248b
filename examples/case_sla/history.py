"""Fourteen monthly reports as the month-end job left them: thirteen by release 2.4.1, the last one by release 3.1.0.

Each release is one Spark job, because nobody wants to wait for fourteen.

    python -m examples.case_sla.history PROJECT
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from examples.case_sla.lake import CALENDAR, EVENTS, FIRST_DAY, FIXED_ON, SLA, TODAY, Lake, text_of
from examples.finsight.lake import CATALOG
from examples.finsight.pipeline import Release, load_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
WRONG = HERE / "releases" / "case_sla_2_4_1.py"
PRODUCT = "silver.case_sla"


def write_history(spark: SparkSession, project: Path) -> None:
    """Fill the empty table."""
    right = load_release(project / "transforms" / "case_sla.py", "3.1.0")
    write_period(spark, project, load_release(WRONG, "2.4.1"), FIRST_DAY, FIXED_ON)
    write_period(spark, project, right, FIXED_ON, TODAY)


def write_period(spark: SparkSession, project: Path, release: Release, start: date, end: date) -> None:
    """The months of ``[start, end)`` as that release computes them from the register and the current calendar."""
    from pyspark.sql import functions as F  # noqa: N812

    import errata

    ctx = errata.live_context(str(project), PRODUCT, (text_of(start), text_of(end)))
    built = release.build(ctx, spark.table(f"{CATALOG}.{EVENTS}"), spark.table(f"{CATALOG}.{CALENDAR}"))
    month = F.date_format("report_month", "yyyy-MM")
    current = Lake(project / "lake").catalog().load_table(CALENDAR).current_snapshot()
    assert current is not None
    own = {
        "produced_by_run_id": F.concat(F.lit("month-end-"), month),
        "transform_version": F.lit(release.version),
        "input_range_end": month,
        "reference_data_version": F.lit(f"calendar@{current.snapshot_id}"),
    }
    rows = ctx.with_lineage(built).withColumns(own)
    rows.writeTo(f"{CATALOG}.{SLA}").option("fanout-enabled", "false").append()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write fourteen monthly reports, thirteen of them wrong.")
    parser.add_argument("project", type=Path)
    project = parser.parse_args().project.absolute()
    spark = Lake(project / "lake").spark("case-sla-month-end", cores=2, memory="1g")
    try:
        write_history(spark, project)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
