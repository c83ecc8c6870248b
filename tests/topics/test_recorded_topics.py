"""A topic that is recorded: every record once, resumable, and read by the product in place of the topic."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from errata.engines.kafka.topic_window import TopicWindows
from errata.errors import NotFound, PlanRefused, SourceChanged, UsageError
from errata.model.kafka.declaration import KafkaCluster
from errata.model.recording.business_range import BusinessRange, parse_range
from errata.model.recording.declaration import Source, TopicSource
from support import attached
from support.kafka import KafkaBroker
from support.world import World
from topics.records import START, record

Make = Callable[..., tuple[World, str]]
DAY = parse_range("2026-01-01", "2026-01-02")


def _fetch(
    kafka: KafkaBroker, topic: str, place: Path, window: BusinessRange = DAY, form: str = "parquet", **more: Any
) -> Any:
    reader = TopicWindows({"events": KafkaCluster("events", kafka.bootstrap)}, block=10, silence_seconds=20)
    return reader.fetch(Source("raw", form, kafka=TopicSource("events", topic, **more)), window, str(place))


def _rows(path: str) -> list[dict[str, Any]]:
    from pyarrow import parquet

    if path.endswith(".parquet"):
        return parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_every_record_is_kept_as_it_came(kafka: KafkaBroker, tmp_path: Path) -> None:
    """Text as text, bytes that are no text as base64, a missing value as missing; in both formats."""
    topic = kafka.make_topic(2)
    at = int(START.timestamp() * 1000)
    kafka.send(
        topic,
        [
            {"key": "k", "value": "größe", "partition": 0, "timestamp": at, "headers": [("h", b"1"), ("b", b"\xff")]},
            {"key": b"\xff\x00", "value": b"\x00\xfe", "partition": 0, "timestamp": at + 1},
            {"key": "k", "value": None, "partition": 1, "timestamp": at + 2},
            *({"value": str(n), "partition": 1, "timestamp": at + n} for n in range(25)),
        ],
    )
    made = _fetch(kafka, topic, tmp_path / "a")
    rows = _rows(made.path)
    assert [(row["partition"], row["offset"]) for row in rows] == [(0, 0), (0, 1), *((1, n) for n in range(26))]
    first, second, third = rows[:3]
    assert (first["key"], first["value"], first["value_base64"]) == ("k", "größe", None)
    assert json.loads(first["headers"]) == [{"key": "h", "value": "1"}, {"key": "b", "value": "0xFF"}]
    assert (second["key"], second["key_base64"], second["value_base64"]) == (None, "/wA=", "AP4=")
    assert (third["value"], third["value_base64"], third["timestamp"]) == (
        None,
        None,
        datetime.fromtimestamp(at / 1000 + 0.002, UTC),
    )
    assert "offsets 0 [0, 2), 1 [0, 26)" in made.mark
    told = _rows(_fetch(kafka, topic, tmp_path / "b", form="json").path)
    assert [(row["offset"], row["value"]) for row in told] == [(row["offset"], row["value"]) for row in rows]


def test_a_repeated_read_has_the_offsets_of_the_first(kafka: KafkaBroker, tmp_path: Path) -> None:
    """A block that is missing is read again, those that are there are not, and the file has the same bytes."""
    topic = kafka.make_topic(1)
    kafka.send(topic, [record(n / 4, "a", "1.00") for n in range(35)])
    first = Path(_fetch(kafka, topic, tmp_path).path).read_bytes()
    kafka.send(topic, [record(1, "late", "9.00")])
    blocks = sorted(tmp_path.glob("block-*"))
    assert len(blocks) == 4
    blocks[2].unlink()
    before = blocks[1].stat().st_mtime_ns
    assert Path(_fetch(kafka, topic, tmp_path).path).read_bytes() == first
    assert blocks[1].stat().st_mtime_ns == before


def test_markers_and_aborted_records_need_an_explanation(kafka: KafkaBroker, tmp_path: Path) -> None:
    """Without transactions: true the recording has a flaw, also where the range ends with a marker."""
    from confluent_kafka import Producer

    topic = kafka.make_topic(1)
    kafka.send(topic, [record(1, "a", "1.00")])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "log_level": "0"})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, **record(2, "tx", "5.00"))
        producer.flush(30)
        end(30)
    assert "3 offsets have no record" in _fetch(kafka, topic, tmp_path / "a").flaw
    made = _fetch(kafka, topic, tmp_path / "b", transactions=True)
    assert made.flaw is None
    assert [row["offset"] for row in _rows(made.path)] == [0, 1]


def test_what_is_lost_or_not_there_is_refused(kafka: KafkaBroker, tmp_path: Path) -> None:
    """No topic, a compacted one, one that retention has cut, and a window that is not over."""
    with pytest.raises(UsageError, match="may still arrive"):
        _fetch(kafka, "any", tmp_path, parse_range("2026-01-01", "2999-01-01"))
    with pytest.raises(NotFound, match="has no topic nowhere"):
        _fetch(kafka, "nowhere", tmp_path / "a")
    with pytest.raises(UsageError, match="is compacted"):
        _fetch(kafka, kafka.make_topic(1, cleanup__policy="compact"), tmp_path / "b")
    topic = kafka.make_topic(1)
    kafka.send(topic, [record(n, "a", "1.00") for n in range(10)])
    kafka.cut(topic, 0, 4)
    with pytest.raises(SourceChanged, match="partition 0 begins at offset 4"):
        _fetch(kafka, topic, tmp_path / "c")


SOURCE = """
sources:
  views: {{format: {form}, kafka: {{cluster: events, topic: {topic}, lateness: 2h}}}}
"""


def _declare(world: World, topic: str, form: str = "parquet") -> None:
    place = world.root / "errata.yaml"
    place.write_text(place.read_text() + SOURCE.format(topic=topic, form=form))
    world.client.close()
    world.open()


def _read_recording(world: World) -> None:
    place = world.root / "products/sales.yaml"
    before, _, rest = place.read_text().partition("    kafka:\n")
    value = next(line.strip() for line in rest.splitlines() if line.strip().startswith("value:"))
    after = rest.partition("partition: at\n")[2]
    place.write_text(f"{before}    recording: views\n    {value}\n    partition: at\n{after}")
    world.client.close()
    world.open()


@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", pytest.param("json", marks=pytest.mark.slow)])
def test_a_product_reads_the_recording_as_it_read_the_topic(topic_world: Make, kafka: KafkaBroker, form: str) -> None:
    """The same rows and the same quarantine, after the topic is gone; hours and days may be recorded."""
    bad = {"value": b"\xfe{", "partition": 0, "timestamp": int(START.timestamp() * 1000)}
    late = record(25, "late", "3.00", said=26.5)
    ahead = record(30, "ahead", "4.00", said=9000)
    events = [record(hour, f"a{hour % 3}", f"{hour}.25", partition=hour % 2) for hour in range(48)]
    world, topic = topic_world(
        [*events[:20], ahead, *events[20:], bad, late], more="      lateness: 2h\n", chunk_bytes="1",
        quarantine="    quarantine: {block: 100%}\n",
    )  # fmt: skip
    _declare(world, topic, form)
    days = "2026-01-01..2026-01-02"
    run = world.to("published", days)
    before = world.rows()
    set_aside = [(row.partition, row.reason) for row in world.client.quarantine(run, sample=9).rows]
    assert set_aside == [("2026-01-01", "value is no JSON object")]
    windows = [("2026-01-01", "2026-01-01T12:00"), ("2026-01-01T12:00", "2026-01-03")]
    for start, end in windows:
        (done,) = world.client.record("views", start=start, end=end, as_="ana").files
        assert (done.status, done.already) == ("accepted", False)
    kafka.delete_topic(topic)
    assert world.client.record("views", start=windows[0][0], end=windows[0][1], as_="ana").files[0].already
    _read_recording(world)
    with pytest.raises(PlanRefused):
        world.plan("2026-01-01..2026-01-04")
    again = world.to("published", days, supersede=run)
    assert world.rows() == before
    assert [(row.partition, row.reason) for row in world.client.quarantine(again, sample=9).rows] == set_aside


@pytest.mark.spark
@pytest.mark.slow
def test_a_recording_that_is_killed_goes_on(topic_world: Make, kafka: KafkaBroker) -> None:
    """Killed after the second block; the same command ends it, and another one finds it done."""
    world, topic = topic_world([record(n / 50, "a", "1.00", partition=n % 2) for n in range(1200)])
    _declare(world, topic)
    said = ("-C", str(world.root), "--as", "ana", "record", "views", "--from", "2026-01-01", "--to", "2026-01-02")
    process = attached.start(world.spark, *said, ERRATA_FAILPOINTS="record.after_page=kill@2")
    _, error = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, error
    assert world.client.recordings("views").files == ()
    kafka.send(topic, [record(1, "later", "9.00")])
    (done,) = world.client.record("views", start="2026-01-01", end="2026-01-02", as_="ana").files
    assert (done.rows, done.already) == (1200, False)
    (again,) = world.client.record("views", start="2026-01-01", end="2026-01-02", as_="ana").files
    assert (again.file_id, again.already) == (done.file_id, True)


@pytest.mark.spark
def test_the_refusal_of_a_run_that_retention_overtakes_names_the_command(topic_world: Make, kafka: KafkaBroker) -> None:
    """The command works as it is printed, and the product that reads the recording can be planned."""
    keep = int((datetime.now(UTC) - START).total_seconds() * 1000) + 2_000
    world, topic = topic_world(
        [record(n, "a", "1.00") for n in range(48)], more="      lateness: 2h\n", config={"retention__ms": str(keep)}
    )
    said = _refuse(world)
    topic_text = f"{{cluster: events, topic: {topic}, lateness: 7200s}}"
    assert f"sources: {{raw_topic: {{format: parquet, kafka: {topic_text}}}}}" in said
    assert "errata record raw_topic --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z" in said
    _declare(world, topic)
    assert "errata record views --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z" in _refuse(world)
    kafka.configure(topic, retention__ms="-1")  # or the broker might be faster than this test
    world.client.record("views", start="2026-01-01T00:00:00Z", end="2026-01-03T00:00:00Z", as_="ana")
    _read_recording(world)
    assert world.plan("2026-01-01..2026-01-02").id


def _refuse(world: World) -> str:
    with pytest.raises(PlanRefused) as refused:
        world.plan("2026-01-01..2026-01-02")
    return f"{refused.value} {refused.value.hint} {refused.value.fields}"
