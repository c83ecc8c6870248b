"""A topic of a million records: how long planning takes, and how fast sealed offsets are read, ÷ Spark's batch read.

Needs the broker of the tests; its jars are fetched once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.report import Goal, cases, goals, heading
from benchmarks.rounds import alternate

__all__ = ["main"]

START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = 24
_QUICK, _QUICK_SECONDS = 2_000, 240
COLUMNS = {"id": "long", "account": "string", "amount": "decimal(12,2)", "at": "timestamptz"}


def main(_root: Path, *, quick: bool) -> None:
    """Seconds to seal a day of hours, and records per second."""
    if not quick:
        _run(1_000_000)
        return
    # a process of its own: the session that other questions leave behind has no connector, and a limit ends it
    command = [sys.executable, "-m", "benchmarks.kafka"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=_QUICK_SECONDS)
    print(done.stdout)


def _run(count: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.kafka import KafkaBroker

    broker = KafkaBroker.start()
    try:
        topic = broker.make_topic(4)
        broker.send(topic, (_record(n, count) for n in range(count)))
        _measure(broker.bootstrap, topic, count)
    finally:
        broker.stop()


def _record(number: int, count: int) -> dict[str, Any]:
    at = START + timedelta(seconds=number * HOURS * 3600 / count)
    value = {"id": number, "account": f"a{number % 1000}", "amount": f"{number % 977}.25", "at": at.isoformat()}
    return {"value": json.dumps(value), "partition": number % 4, "timestamp": int(at.timestamp() * 1000)}


def _measure(bootstrap: str, topic: str, count: int) -> None:
    from pyspark.sql import SparkSession

    from errata.canonical import canonical_bytes
    from errata.engines.kafka.topics import KafkaTopics
    from errata.engines.spark.inputs.access import InputAccess
    from errata.engines.spark.inputs.frames import read_input_frame
    from errata.jars import fetch_jars, list_jars, require_jars
    from errata.model.kafka.declaration import KafkaCluster, KafkaTopic, RecordValue
    from errata.model.kafka.topic_range import TopicPin, merge_ranges
    from errata.model.manifest import InputPin
    from errata.model.partition import Grain
    from errata.model.product import Input
    from errata.project.build.sources.topic_inputs import build_record_eras, list_record_columns

    jars = list_jars("spark", "kafka")
    fetch_jars(jars=jars)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    path = ":".join(map(str, require_jars(jars=jars)))
    session = (
        builder.config("spark.driver.extraClassPath", path).config("spark.sql.session.timeZone", "UTC").getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    clusters = {"bench": KafkaCluster("bench", bootstrap)}
    declared = KafkaTopic("bench", topic, RecordValue("json", COLUMNS))
    source = Input(
        "raw",
        kafka=declared,
        partition="at",
        columns=list_record_columns(declared.value),
        eras=build_record_eras(declared.value),
    )
    names = [f"2026-01-01T{hour:02d}" for hour in range(HOURS)]
    states: list[Any] = []

    def plan() -> None:
        states.append(KafkaTopics(clusters).read_input(source, Grain.HOUR, names))

    plan()
    state = states[0]
    pin = InputPin(
        "raw", "kafka", declared.location, "at", "timestamptz", 0, 0, tuple(names), {}, 0, 0, 0, files_part="offsets",
        columns=source.columns, eras=source.eras, schemas=state.schemas,
        topic=TopicPin(declared, state.topic.topic_id, 4, state.topic.clock, merge_ranges(state.offsets.values())),
    )  # fmt: skip
    parts = {"offsets": canonical_bytes(state.offsets)}

    def sealed() -> None:
        rows = read_input_frame(session, pin, parts, names, Grain.HOUR, "timestamptz", InputAccess(clusters))
        _check(rows.selectExpr("count(*)", "sum(id)", "sum(amount)", "max(at)").collect(), count)

    def bare() -> None:
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        rows = session.read.format("kafka").options(**options).option("endingOffsets", "latest").load()
        parsed = rows.selectExpr(
            "from_json(cast(value as string), 'id bigint, account string, amount decimal(12,2), at timestamp') as v"
        )
        chosen = parsed.select("v.*").where("at >= '2026-01-01' AND at < '2026-01-02'")
        _check(chosen.selectExpr("count(*)", "sum(id)", "sum(amount)", "max(at)").collect(), count)

    found = alternate({"plan": plan, "sealed": sealed, "bare": bare}, warm=1)
    heading(
        f"A topic of {count:,} records",
        "Four partitions, JSON, one day. Planning resolves 24 hours to offsets; both reads parse, cut and add up all "
        "records. Errata's also casts exactly and finds records that cannot be read.",
    )
    cases(found, "bare")
    speed, effort = found.ratio("bare", "sealed"), found.ratio("bare", "sealed", "cpu")
    goals(
        Goal("sealing 24 hours, wall s", found.seconds("plan"), at_most=3),
        Goal("speed of sealed offsets ÷ Spark's batch read", speed, at_least=0.8),
        Goal("CPU of Spark's batch read ÷ that of sealed offsets", effort, at_least=0.8),
    )
    session.stop()


def _check(rows: list[Any], count: int) -> None:
    if rows[0][0] != count or rows[0][1] != count * (count - 1) // 2:
        raise AssertionError(f"expected {count} records, found {rows}")


if __name__ == "__main__":
    _run(_QUICK)
