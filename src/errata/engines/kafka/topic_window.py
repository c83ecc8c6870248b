"""Read a window of a topic to a file, block by block, so that it can be continued after a crash.

Times become offsets once; they are on disk before the first record is read, so a repeated command reads the same ones.
Every block of offsets is a file of its own until all are there. Joins no group, commits no offset.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.canonical import canonical_bytes, from_plain
from errata.engines.kafka.settings import build_client_settings
from errata.engines.kafka.topics import KafkaTopics
from errata.errors import EngineError, NotFound, SourceChanged, UsageError
from errata.failpoints import failpoint
from errata.model.kafka.declaration import KafkaCluster, KafkaTopic, RecordValue
from errata.model.kafka.recorded_record import RECORDED_COLUMNS, RecordedRecord
from errata.model.kafka.topic_range import OffsetRange, TopicPin, describe_ranges, find_changes, find_lost_ranges
from errata.model.recording.business_range import BusinessRange
from errata.model.recording.declaration import Source, TopicSource
from errata.ports.recordings import Fetched, WindowReader

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 50_000
"""Offsets in one block."""
_AT_A_TIME = 5_000
_SILENCE_SECONDS = 60.0
_KEPT = "blocks that were read are kept, and the same command continues"


class TopicWindows:
    """Reads windows of topics."""

    def __init__(
        self,
        clusters: Mapping[str, KafkaCluster],
        redact: Callable[[str], str] = str,
        silence_seconds: float = _SILENCE_SECONDS,
        block: int = _BLOCK,
    ) -> None:
        self._clusters = clusters
        self._redact = redact
        self._silence = silence_seconds
        self._block = block
        self._topics = KafkaTopics(clusters, redact)

    def fetch(self, source: Source, window: BusinessRange, directory: str) -> Fetched:
        """See the port."""
        if source.kafka is None:
            raise UsageError(f"source {source.name} has no topic")
        place, declared = Path(directory), source.kafka
        place.mkdir(parents=True, exist_ok=True)
        pin, told = self._resolve(source.name, declared, window, place / "offsets.json")
        reader = _BlockReader(self._clusters[declared.cluster], pin, place, self._redact, self._silence, self._block)
        records = sum(reader.read(one) for one in pin.ranges)
        # again, because retention or another topic of the same name may have come while it was read
        if changes := find_changes(pin, pin.ranges, self._topics.describe(pin.declared)):
            raise SourceChanged(
                f"source {source.name} could not be recorded: {'; '.join(changes)}", state="nothing was recorded"
            )
        made = _write_rows(reader.list_parts(), place / f"rows.{source.format}", source.format)
        missing = sum(one.size for one in pin.ranges) - records
        flaw = f"{missing:,} offsets have no record" if missing and not declared.has_gaps else None
        hint = "; say transactions: true in the source if producers use them" if flaw else ""
        notes = (f"{missing:,} offsets have no record",) if missing else ()
        mark = f"topic {pin.topic_id}, offsets {describe_ranges(pin.ranges)}"
        return Fetched(str(made), mark, notes, flaw and flaw + hint, str(told))

    def _resolve(self, name: str, declared: TopicSource, window: BusinessRange, told: Path) -> tuple[TopicPin, Path]:
        """The offsets of the window: those on disk, or those that the broker names now."""
        if told.exists():
            return from_plain(TopicPin, json.loads(told.read_bytes())), told
        topic = KafkaTopic(
            declared.cluster, declared.topic, RecordValue("text"), lateness_seconds=declared.lateness_seconds,
            compacted=declared.compacted, transactions=declared.transactions,
        )  # fmt: skip
        first, last = (_to_ms(one) for one in (window.start, window.end))
        late, now = 1000 * declared.lateness_seconds, int(time.time() * 1000)
        if last + late > now:
            raise UsageError(
                f"source {name} was not recorded: records of {window.text} may still arrive, with a lateness of "
                f"{declared.lateness_seconds} s",
                state="nothing was recorded",
                hint="record a window that is over",
            )
        found = self._topics.resolve_window(topic, first - late, last + late)
        if found is None:
            raise NotFound(
                f"source {name}: {declared.cluster} has no topic {declared.topic}",
                state="nothing was recorded",
                hint=f"look at sources.{name}.kafka in errata.yaml, and at the topics of the cluster",
            )
        state, ranges = found
        if state.is_compacted and not declared.compacted:
            raise UsageError(
                f"source {name}: topic {declared.topic} is compacted (cleanup.policy {state.cleanup}), so that older "
                "values of a key may be gone",
                state="nothing was recorded",
                hint=f"if the newest value of each key is enough: sources.{name}.kafka.compacted: true",
            )
        if lost := find_lost_ranges(state, first - late, now):
            raise SourceChanged(
                f"source {name}: topic {declared.topic} no longer has all records of {window.text}: partition "
                f"{lost[0].partition} begins at offset {lost[0].earliest}",
                state="nothing was recorded",
                hint="record a later window, or read what is gone from another place",
            )
        pin = TopicPin(topic, state.topic_id, len(state.logs), state.clock, tuple(one for one in ranges if one.size))
        part = told.with_suffix(".part")
        part.write_bytes(canonical_bytes(pin))
        part.replace(told)
        return pin, told


@dataclass(slots=True)
class _BlockReader:
    cluster: KafkaCluster
    pin: TopicPin
    place: Path
    redact: Callable[[str], str]
    silence: float
    block: int

    def read(self, wanted: OffsetRange) -> int:
        """Read the blocks of one topic partition that are not on disk; returns the records of all."""
        starts = list(range(wanted.start, wanted.end, self.block))
        missing = [start for start in starts if not self._name(wanted.partition, start).exists()]
        if missing:
            self._read_from(wanted, [start for start in starts if start >= missing[0]])
        return sum(_count_rows(self._name(wanted.partition, start)) for start in starts)

    def list_parts(self) -> list[Path]:
        """The blocks on disk, by topic partition and offset."""
        return [
            self._name(one.partition, start)
            for one in self.pin.ranges
            for start in range(one.start, one.end, self.block)
        ]

    def _read_from(self, wanted: OffsetRange, starts: Sequence[int]) -> None:
        rows: list[RecordedRecord] = []
        left = list(starts)
        for record in self._iterate(wanted, left[0]):
            while left and record.offset >= min(left[0] + self.block, wanted.end):
                self._write(wanted.partition, left.pop(0), rows)
                rows = []
            if record.offset >= wanted.end:
                break
            rows.append(record)
        while left:
            self._write(wanted.partition, left.pop(0), rows)
            rows = []

    def _iterate(self, wanted: OffsetRange, start: int) -> Iterator[RecordedRecord]:
        """Records from an offset to the end of the range, or the first one after it."""
        from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, TopicPartition

        settings = {
            **build_client_settings(self.cluster),
            "group.id": "errata-reader",  # the client wants a name; nothing joins or commits
            "enable.auto.commit": "false",
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "log_level": "0",
        }
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(self.pin.declared.topic, wanted.partition, start)])
            heard = time.monotonic()
            while time.monotonic() - heard < self.silence:
                for message in consumer.consume(_AT_A_TIME, 1.0):
                    heard = time.monotonic()
                    error = message.error()
                    if error is None:
                        yield _to_record(message)
                    elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                        raise self._build_error(wanted, self.redact(error.str()))
                    elif (message.offset() or OFFSET_INVALID) >= wanted.end:
                        return
            raise self._build_error(wanted, f"no record came in {self.silence:.0f} s")
        finally:
            consumer.close()

    def _build_error(self, wanted: OffsetRange, why: str) -> EngineError:
        where = f"{self.pin.declared.location}, partition {wanted.partition}"
        return EngineError(f"{where} could not be read: {why}", state=f"nothing was recorded; {_KEPT}")

    def _name(self, partition: int, start: int) -> Path:
        return self.place / f"block-{partition:06}-{start:020}.parquet"

    def _write(self, partition: int, start: int, records: Sequence[RecordedRecord]) -> None:
        from pyarrow import parquet

        path = self._name(partition, start)
        part = path.with_suffix(".part")
        parquet.write_table(_build_table(records, self.pin), part, compression="zstd")
        part.replace(path)
        failpoint("record.after_page")


def _to_record(message: Any) -> RecordedRecord:
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    kind, moment = message.timestamp()
    known = None if kind == TIMESTAMP_NOT_AVAILABLE else moment
    return RecordedRecord(
        message.key(), message.value(), message.headers() or (), message.partition(), message.offset(), known
    )


def _build_schema() -> pa.Schema:
    import pyarrow as pa

    kinds = {
        "string": pa.string(), "int": pa.int32(), "long": pa.int64(), "timestamptz": pa.timestamp("ms", "UTC"),
    }  # fmt: skip
    return pa.schema([pa.field(name, kinds[kind]) for name, kind in RECORDED_COLUMNS.items()])


def _build_table(records: Sequence[RecordedRecord], pin: TopicPin) -> pa.Table:
    import pyarrow as pa

    rows = [one.to_row(pin.declared.topic, pin.topic_id) for one in records]
    return pa.Table.from_pylist(rows, schema=_build_schema())


def _count_rows(path: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def _write_rows(parts: Sequence[Path], made: Path, form: str) -> Path:
    """All blocks in one file, in their order; the same blocks give the same bytes."""
    from pyarrow import parquet

    if form == "parquet":
        with parquet.ParquetWriter(made, _build_schema(), compression="zstd", write_page_checksum=True) as writer:
            for part in parts:
                writer.write_table(parquet.read_table(part))
        return made
    with made.open("w", encoding="utf-8", newline="\n") as file:
        for part in parts:
            for row in parquet.read_table(part).to_pylist():
                moment = row["timestamp"]
                told = {**row, "timestamp": None if moment is None else moment.isoformat(timespec="milliseconds")}
                file.write(f"{json.dumps(told, ensure_ascii=False, separators=(',', ':'))}\n")
    return made


def _to_ms(instant: str) -> int:
    return int(datetime.fromisoformat(instant).astimezone(UTC).timestamp() * 1000)


_conforms: type[WindowReader] = TopicWindows
