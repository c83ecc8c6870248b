"""A streaming reader and writer of a table, as a team runs them beside Errata."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.model.consumer.checkpoint import Offset

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
    rows: list[Row] = field(default_factory=list)

    def start(self, *, options: dict[str, str] | None = None, **trigger: Any) -> StreamingQuery:
        """Start it."""
        source = self.spark.readStream.format("iceberg").options(**(options or {})).load(self.table)
        writer = source.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger)
        return writer.foreachBatch(self._take).start()

    def _take(self, batch: Any, _: int) -> None:
        self.rows += [(str(row["day"]), row["account"]) for row in batch.select("day", "account").collect()]

    def run_available(self, **options: Any) -> str:
        """Read what is there with Trigger.AvailableNow; returns the error that ended it, or nothing."""
        return _wait(self.start(availableNow=True, **options))

    def run_until(self, is_done: Callable[[], bool], **options: Any) -> str:
        """Read with a processing time until a condition holds or the query fails; returns the error, or nothing."""
        query = self.start(processingTime="100 milliseconds", **options)
        end = time.monotonic() + _SECONDS
        while query.isActive and not is_done() and time.monotonic() < end:
            time.sleep(0.05)
        if query.isActive:
            query.stop()
        assert time.monotonic() < end, "the reader neither failed nor came so far"
        return _wait(query)

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


def _wait(query: StreamingQuery) -> str:
    from pyspark.errors import StreamingQueryException

    try:
        assert query.awaitTermination(_SECONDS), "the query did not end"
    except StreamingQueryException as error:
        return str(error)
    return ""


def write_checkpoint(
    offsets: Sequence[tuple[str, int]],
    *,
    committed: int | None = None,
    first: str | None = None,
    others: Sequence[str] = (),
) -> dict[str, bytes]:
    """The files of a checkpoint whose batches end at these snapshots and positions; all are committed by default."""
    done = len(offsets) - 1 if committed is None else committed
    files = {"metadata": b'{"id":"query"}'}
    for n, (snapshot, position) in enumerate(offsets):
        lines = ("v1", '{"batchWatermarkMs":0}', Offset(snapshot, position).to_json(), *others)
        files[f"offsets/{n}"] = "\n".join(lines).encode()
    files |= {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(done + 1)}
    if first is not None:
        files["sources/0/offsets/0"] = Offset(first, 0).to_json().encode()
    return files
