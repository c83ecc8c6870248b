"""NovaShop's normaliser: one streaming query that reads the topic and appends to the table, and never stops.

Started once by the demo, it first lays out the lake with the past Mondays. Then the query runs until the demo ends; its
id, its run and its batches are in a journal, so that a reader can tell whether it was ever restarted.

    python -m examples.novashop.stream PROJECT BOOTSTRAP
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.finsight.lake import Lake
from examples.novashop import shop

from errata import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "app-events"
EVENTS, SESSIONS, FUNNELS, ATTRIBUTION = (
    "lake.raw.events", "lake.app.sessions", "lake.app.funnels", "lake.app.attribution",
)  # fmt: skip
SHAPE = "event_id string, ts timestamp, user_id string, action string, product_id string"
ORIGINS = "origin string, rule string, rule_version string, confidence decimal(3,2)"
_TABLES = {
    EVENTS: (f"{SHAPE}, {ORIGINS}", "hours(ts)"),
    SESSIONS: ("hour timestamp, user_id string, views bigint, carts bigint, checkouts bigint, purchases bigint",
               "hours(hour)"),
    FUNNELS: ("hour timestamp, viewed bigint, carted bigint, checked_out bigint, bought bigint", "hours(hour)"),
    ATTRIBUTION: ("day date, purchases bigint, attributed bigint", "day"),
}  # fmt: skip


def lay_out(spark: SparkSession, project: Path) -> None:
    """Tables with the past Mondays, and with what was recorded today; the tables that follow are computed once."""
    from pyspark.sql import functions as F  # noqa: N812

    for name in ("raw", "app"):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{name}")
    for table, (columns, unit) in _TABLES.items():
        spark.sql(
            f"CREATE TABLE {table} ({columns}) USING iceberg PARTITIONED BY ({unit}) TBLPROPERTIES "
            "('format-version'='2', 'write.distribution-mode'='hash', 'commit.retry.num-retries'='30', "
            "'write.delete.isolation-level'='snapshot')"
        )
    mondays = [shop.live_monday(weeks) for weeks in range(shop.CONTROL_WEEKS, -1, -1)]
    rows = [(e.event_id, e.ts, e.user_id, e.action, e.product_id) for monday in mondays for e in monday.recorded]
    history = spark.createDataFrame(rows, SHAPE)
    for part in ORIGINS.split(", "):
        name, kind = part.split(" ")
        history = history.withColumn(name, F.lit(None).cast(kind))
    history.writeTo(EVENTS).append()
    for name, source, table in (
        ("sessions", ("events", EVENTS), SESSIONS),
        ("funnels", ("sessions", SESSIONS), FUNNELS),
        ("attribution", ("sessions", SESSIONS), ATTRIBUTION),
    ):
        spark.table(source[1]).createOrReplaceTempView(source[0])
        spark.sql((project / "transforms" / f"{name}.sql").read_text("utf-8")).writeTo(table).append()


def start(spark: SparkSession, project: Path, bootstrap: str) -> Any:
    """The query: records of the topic, normalised, appended to the table of events."""
    from pyspark.sql import functions as F  # noqa: N812

    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
    )
    event = F.from_json(F.col("value").cast("string"), SHAPE, {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"})
    rows = records.select(event.alias("event")).select("event.*")
    for part in ORIGINS.split(", "):
        name, kind = part.split(" ")
        rows = rows.withColumn(name, F.lit(None).cast(kind))
    return (
        rows.writeStream.format("iceberg")
        .outputMode("append")
        .trigger(processingTime="2 seconds")
        .option("checkpointLocation", str(project / "lake" / "checkpoint"))
        .option("fanout-enabled", "true")
        .toTable(EVENTS)
    )


def delete_erased(spark: SparkSession, project: Path) -> None:
    """Delete the rows of users in a request, if there is one; beside the query, which continues."""
    request = find_request(project)
    if request.exists():
        users = ", ".join(f"'{user}'" for user in request.read_text("utf-8").split())
        for table in (EVENTS, SESSIONS):
            spark.sql(f"DELETE FROM {table} WHERE user_id IN ({users})")  # noqa: S608 - ids of this demo
        request.unlink()


def find_request(project: Path) -> Path:
    """Where the people who handle requests leave the ids of users whose rows are to be deleted."""
    return project / "delete-users.txt"


def main() -> int:
    """Lay out, start, and write down the progress of the query until a signal ends it."""
    project, bootstrap = Path(sys.argv[1]), sys.argv[2]
    lake = Lake(project / "lake")
    spark = lake.spark(
        "normaliser",
        cores=1,
        memory="700m",
        more=[str(path) for path in jars.require_jars(jars=jars.list_jars("kafka"))],
    )
    lay_out(spark, project)
    query, is_over = start(spark, project, bootstrap), False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_over
        is_over = True

    signal.signal(signal.SIGTERM, stop)
    journal = project / "logs" / "stream.jsonl"
    while not is_over and query.isActive:
        batch = query.lastProgress["batchId"] if query.lastProgress else -1
        with journal.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"query": query.id, "run": query.runId, "batch": batch, "at": time.time()}) + "\n")
        delete_erased(spark, project)
        time.sleep(0.5)
    failed = query.exception()
    query.stop()
    spark.stop()
    return 0 if failed is None else 1


if __name__ == "__main__":
    sys.exit(main())
