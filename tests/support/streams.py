"""A streaming reader and writer of a table, as a team runs them beside Errata."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

Row = tuple[str, str]
_SECONDS = 90


@dataclass
class Reader:
    """Reads a table as a stream, and keeps the key of every row in the order in which it came, repeats included."""

    spark: SparkSession
    table: str
    checkpoint: Path
    sink: str | None = None  # a table of Iceberg to which it writes, instead of keeping the keys itself
    rows: list[Row] = field(default_factory=list)

    def start(self, *, options: dict[str, str] | None = None, **trigger: Any) -> StreamingQuery:
        """Start it."""
        _load_catalog(self.spark, self.table)
        source = self.spark.readStream.format("iceberg").options(**(options or {})).load(self.table)
        writer = source.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger)
        if self.sink is not None:
            return writer.toTable(self.sink)
        return writer.foreachBatch(self._take).start()

    def _take(self, batch: Any, _: int) -> None:
        self.rows += [(str(row["day"]), row["account"]) for row in batch.select("day", "account").collect()]

    def count(self) -> int:
        """Number of rows that it has passed on."""
        return len(self.rows) if self.sink is None else int(self.spark.table(self.sink).count())

    def run_available(self, **options: Any) -> str:
        """Read what is there with Trigger.AvailableNow; returns the error that ended it, or nothing."""
        return _wait(self.start(availableNow=True, **options))

    def run_until(self, is_done: Callable[[], bool], **options: Any) -> str:
        """Read with a processing time until a condition holds or the query fails; returns the error, or nothing."""
        query = self.start(processingTime="100 milliseconds", **options)
        end = time.monotonic() + _SECONDS
        while query.isActive and not (is_done() and self._is_settled()) and time.monotonic() < end:
            time.sleep(0.05)
        if query.isActive:
            query.stop()
        assert time.monotonic() < end, "the reader neither failed nor came so far"
        return _wait(query)

    def _is_settled(self) -> bool:
        """Whether every batch that was begun is committed."""
        begun, done = ({name.name for name in (self.checkpoint / one).glob("[0-9]*")} for one in ("offsets", "commits"))
        return begun == done

    def run_to_failure(self, **options: Any) -> str:
        """Read with a processing time until the query fails."""
        return self.run_until(lambda: False, **options)

    def files(self) -> dict[str, bytes]:
        """Every file of the checkpoint."""
        return {
            str(one.relative_to(self.checkpoint)): one.read_bytes()
            for one in self.checkpoint.rglob("*")
            if one.is_file()
        }


def _load_catalog(spark: SparkSession, table: str) -> None:
    """Let the session load its catalog: a streaming write would load that of the thread's active session."""
    spark.sql(f"DESCRIBE {table}").collect()


def _wait(query: StreamingQuery) -> str:
    from pyspark.errors import StreamingQueryException

    try:
        assert query.awaitTermination(_SECONDS), "the query did not end"
    except StreamingQueryException as error:
        return str(error)
    return ""


@dataclass
class Writer:
    """Appends numbered rows to one day of a table, batch after batch, until it is stopped."""

    spark: SparkSession
    table: str
    day: str
    checkpoint: Path
    query: StreamingQuery | None = None

    def start(self) -> None:
        """Start it, and wait until its first batch is in the table."""
        _load_catalog(self.spark, self.table)
        numbers = self.spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        columns = (
            f"date'{self.day}' AS day", "concat('s', value) AS account", "cast(1 AS decimal(12,2)) AS gross",
            "bigint(1) AS n", "cast(null AS string) AS produced_by_run_id",
            "cast(null AS string) AS restatement_reason",
        )  # fmt: skip
        writer = numbers.selectExpr(*columns).writeStream.option("checkpointLocation", str(self.checkpoint))
        self.query = writer.trigger(processingTime="200 milliseconds").toTable(self.table)
        self.wait_for_more()

    def wait_for_more(self) -> None:
        """Wait until it has written at least one more batch with rows."""
        before, end = self.count(), time.monotonic() + _SECONDS
        while self.count() == before:
            assert self.query is not None
            assert self.query.isActive, self.query.exception()
            assert time.monotonic() < end, "the writer wrote nothing"
            time.sleep(0.05)

    def count(self) -> int:
        """Number of rows that it has written."""
        assert self.query is not None
        return sum(int(one["numInputRows"]) for one in self.query.recentProgress)

    def stop(self) -> set[str]:
        """Stop it; returns the keys of all rows that it has written."""
        assert self.query is not None
        assert self.query.isActive, self.query.exception()
        self.query.processAllAvailable()
        self.query.stop()
        return {f"s{n}" for n in range(self.count())}


@dataclass
class NumberStream:
    """A stream that calls a function with 0, 1, 2 and so on, until it is stopped."""

    query: StreamingQuery

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        """Wait for a condition."""
        end = time.monotonic() + _SECONDS
        while not is_done():
            assert self.query.isActive, self.query.exception()
            assert time.monotonic() < end, "the stream did not come so far"
            time.sleep(0.05)


@contextmanager
def run_for_each(spark: SparkSession, act: Callable[[int], None], checkpoint: Path) -> Iterator[NumberStream]:
    """A stream of numbers; a batch that was begun is done before it ends."""

    def take(batch: Any, _: int) -> None:
        for row in batch.collect():
            act(int(row["value"]))

    numbers = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    writer = numbers.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(take)
    query = writer.trigger(processingTime="200 milliseconds").start()
    try:
        yield NumberStream(query)
        query.processAllAvailable()
    finally:
        query.stop()
