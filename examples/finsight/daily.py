"""The live pipeline. It knows nothing about corrections and must not notice them.

Every second or two a batch of new transactions arrives for today, is priced with the released transform and
appended; twice a day, today's partition is rewritten completely. Days are short here: ten batches. Each commit carries
its batch name, so that a commit whose outcome is unknown is looked up and never repeated. A journal records what each
batch contained *before* it went through Spark, and the demo compares the table with the journal.

Ends after the batch in hand on SIGTERM, when its parent is gone, or when the stop file appears. With ``--history`` it
first writes the sixty days before today, as soon as their raw files are complete.

    python -m examples.finsight.daily PROJECT --journal FILE [--history] [--stop-file FILE] [--pause 2.5]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from examples.finsight import generate, history
from examples.finsight.lake import ACCOUNTS, CATALOG, REVENUE, TODAY, Lake
from examples.finsight.pipeline import Release, context, load_release, rates_version, revenue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES_PER_DAY = 10
ROWS_PER_BATCH = 600
TRIES = 5
BATCH_PROPERTY = "finsight.batch"


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit to make: new accounts appended, or the day so far written again."""

    name: str
    day: date
    number: int
    operation: str  # append | overwrite


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: what the batch held, and the snapshot that has it."""

    batch: str
    operation: str
    partition: str
    rows: int
    gross: str
    snapshot_id: str
    at: str


def batches() -> Iterator[Batch]:
    """Day after day: ten appends, with the day rewritten after the fifth and the last."""
    day = TODAY
    while True:
        for number in range(1, BATCHES_PER_DAY + 1):
            yield Batch(f"daily-{day}-b{number:02d}", day, number, "append")
            if number in (BATCHES_PER_DAY // 2, BATCHES_PER_DAY):
                yield Batch(f"daily-{day}-full{number:02d}", day, number, "overwrite")
        day += timedelta(1)


def arrivals(batch: Batch) -> pa.Table:
    """The transactions of an append: every tenth account, so that no key comes twice in a day."""
    accounts = pa.array(ACCOUNTS[batch.number - 1 :: BATCHES_PER_DAY])
    first = (batch.number - 1) * ROWS_PER_BATCH
    return generate.transactions(batch.day, ROWS_PER_BATCH, first=first, accounts=accounts)


class Pipeline:
    """A Spark session on the lake and the released transform."""

    def __init__(self, project: Path, spark: SparkSession) -> None:
        self.project = project
        self.spark = spark
        self.lake = Lake(project / "lake")
        self.release: Release = load_release(project / "transforms" / "daily_revenue.py", "2.4.1")
        self.rates = rates_version(self.lake)

    def write(self, batch: Batch) -> Entry:
        """Make the commit, once, and say what it held."""
        directory = self.lake.transactions_of(batch.day)
        if batch.operation == "append":
            generate.write_transactions(directory, arrivals(batch), name=f"batch-{batch.number:02d}")
        raw = sorted(directory.glob("batch-*.parquet"))
        taken = raw if batch.operation == "overwrite" else raw[-1:]
        ctx = context(self.project, batch.day, batch.day)
        rows = revenue(self.spark, self.release, ctx, taken, run_id=batch.name, rates=self.rates)
        snapshot_id = self._commit(rows, batch)
        count, gross = contents(pa.concat_tables([pq.read_table(path, partitioning=None) for path in taken]))
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Entry(batch.name, batch.operation, batch.day.isoformat(), count, gross, snapshot_id, at)

    def _commit(self, rows: DataFrame, batch: Batch) -> str:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        writer = rows.writeTo(f"{CATALOG}.{REVENUE}").option(f"snapshot-property.{BATCH_PROPERTY}", batch.name)
        deed: Callable[[], None] = writer.append if batch.operation == "append" else writer.overwritePartitions
        for number in range(1, TRIES + 1):
            try:
                deed()
            except (Py4JError, PySparkException):
                # The commit may have landed before the error did.
                if (found := self._landed(batch)) is not None:
                    return found
                if number == TRIES:
                    raise
                time.sleep(number)
            else:
                break
        found = self._landed(batch)
        assert found is not None, f"{batch.name} was committed and is not there"
        return found

    def _landed(self, batch: Batch) -> str | None:
        for snapshot in reversed(self.lake.catalog().load_table(REVENUE).snapshots()):
            if (
                snapshot.summary is not None
                and snapshot.summary.additional_properties.get(BATCH_PROPERTY) == batch.name
            ):
                return str(snapshot.snapshot_id)
        return None


def contents(transactions: pa.Table) -> tuple[int, str]:
    """How many rows of revenue these transactions make, and their gross: counted here, not by Spark."""
    keys = transactions.group_by(["account_id", "currency"]).aggregate([])
    return keys.num_rows, str(pc.sum(transactions["amount"]).as_py())


def run(pipeline: Pipeline, journal: Path, *, pause: float, stopped: Callable[[], bool]) -> None:
    """Write batch after batch until asked to stop."""
    with journal.open("a", encoding="utf-8") as lines:
        for batch in batches():
            if stopped():
                return
            lines.write(json.dumps(asdict(pipeline.write(batch))) + "\n")
            lines.flush()
            time.sleep(pause)


def wait_for(file: Path, stopped: Callable[[], bool]) -> bool:
    """Wait until the file is there; False if asked to stop first."""
    while not file.exists():
        if stopped():
            return False
        time.sleep(0.1)
    return True


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="FinSight's live pipeline.")
    parser.add_argument("project", type=Path)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--stop-file", type=Path)
    parser.add_argument("--pause", type=float, default=2.5)
    parser.add_argument("--history", action="store_true", help="write the sixty days before today first")
    arguments = parser.parse_args()
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    parent = os.getppid()

    def stopped() -> bool:
        has_file = arguments.stop_file is not None and arguments.stop_file.exists()
        return bool(told) or has_file or os.getppid() != parent

    project = arguments.project.absolute()
    lake = Lake(project / "lake")
    spark = lake.spark("finsight-daily", cores=2 if arguments.history else 1, memory="768m")
    try:
        if arguments.history and wait_for(lake.complete, stopped):
            history.write_history(spark, project)
        run(Pipeline(project, spark), arguments.journal, pause=arguments.pause, stopped=stopped)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
