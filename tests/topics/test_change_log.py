"""A table rebuilt from change events: at any commit it is what the database held then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.inputs.table_rebuild import normalize_changes, read_commits, rebuild_state
from support.change_log import Row, SimulatedDatabase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SAMPLES = Path(__file__).with_name("samples") / "debezium.jsonl"
SEEDS = (3, 11, 24)


def _frames(spark: SparkSession, base: SimulatedDatabase) -> Any:
    events = spark.createDataFrame([(value,) for value in base.events], "value string")
    ends = spark.createDataFrame([(value,) for value in base.transactions], "value string")
    return normalize_changes(events, read_commits(ends), ["id"]).cache()


def _answerable(base: SimulatedDatabase) -> list[int]:
    """Commit positions that the connector told everything about."""
    return [at for at in base.states if not any(start < at < end for start, end in base.lost)]


def _fill(row: Row) -> Row:
    """A column that was added later is not in events of rows that nobody changed since."""
    return {"note": "", **row}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_state_at_a_commit_is_what_the_database_held(spark: SparkSession, seed: int) -> None:
    """Whatever the interleaving, repetition, truncation or new snapshot."""
    base = SimulatedDatabase.run(seed)
    changes = _frames(spark, base)
    positions = _answerable(base)
    for at in positions[:: max(1, len(positions) // 4)]:
        found = {row["key"][0]: _fill(row["row"]) for row in rebuild_state(changes, at).collect()}
        assert found == {key: _fill(row) for key, row in base.states[at].items()}, f"seed {seed}, position {at}"
    changes.unpersist()


def _replay(base: SimulatedDatabase, order: Callable[[dict[str, Any], int], Any], at: int) -> dict[str, Row]:
    """What a simpler rule makes of the same events: the last of each key, of those up to a position."""
    told = [(n, json.loads(value)) for n, value in enumerate(base.events) if value is not None]
    inside = [(n, one) for n, one in told if one["source"]["lsn"] <= at]
    rows: dict[str, Row] = {}
    for _, one in sorted(inside, key=lambda pair: order(pair[1], pair[0])):
        if one["op"] == "t":
            rows.clear()
        elif one["op"] == "d":
            rows.pop(one["before"]["id"], None)
        else:
            rows[one["after"]["id"]] = one["after"]
    return rows


TRAPS: dict[str, Callable[[dict[str, Any], int], Any]] = {
    "lsn": lambda one, _: one["source"]["lsn"],
    "txId": lambda one, n: (one["source"]["txId"], n),
    "total_order": lambda one, n: (one["transaction"]["total_order"], n),
    "Kafka offset": lambda _, n: n,
}


@pytest.mark.parametrize("trap", TRAPS)
def test_simpler_orders_are_wrong(trap: str) -> None:
    """Each of them fails the test above: at some commit it gives other rows than the database held."""
    wrong = 0
    for seed in SEEDS:
        base = SimulatedDatabase.run(seed)
        wrong += sum(_replay(base, TRAPS[trap], at) != base.states[at] for at in _answerable(base))
    assert wrong > 0


def test_real_messages_of_debezium_are_understood(spark: SparkSession) -> None:
    """An update below the position of the row that it replaces, a new key, a repeated insert, TRUNCATE."""
    samples = [json.loads(line) for line in SAMPLES.read_text("utf-8").splitlines()]
    values = [
        json.dumps(one["value"]) if one["value"] is not None else None
        for one in samples
        if one["topic"] != "cdc.transaction"
    ]
    ends = []
    for tx, first, at in ((744, 26685456, 26686500), (746, 26686712, 26686900), (747, 26686952, 26687200)):
        ends += [{"status": "BEGIN", "id": f"{tx}:{first}"}, {"status": "END", "id": f"{tx}:{at}"}]
    for tx, first, at in ((751, 26712864, 26713500), (761, 26728776, 26729000), (767, 26743840, 26744000)):
        ends += [{"status": "BEGIN", "id": f"{tx}:{first}"}, {"status": "END", "id": f"{tx}:{at}"}]
    numbers = {one["value"]["source"]["txId"] for one in samples if one["value"] and "source" in one["value"]}
    assert numbers >= {746, 747, 751, 761, 767}
    events = spark.createDataFrame([(value,) for value in values], "value string")
    log = spark.createDataFrame([(json.dumps(one),) for one in ends], "value string")
    changes = normalize_changes(events, read_commits(log), ["id"]).cache()
    kinds = {(row["op"], row["key"][0] if row["key"] else None, row["at"]) for row in changes.collect()}
    assert ("t", None, 26744000) in kinds
    assert sum(op == "c" and key == "40" for op, key, _ in kinds) == 1
    assert ("u", "5", None) in kinds  # its END is not there: open
    paid = {row["key"][0]: row["row"]["status"] for row in rebuild_state(changes, 26687200).collect()}
    assert paid["10"] == "paid"
    moved = {row["key"][0] for row in rebuild_state(changes, 26713500).collect()}
    assert "104" in moved
    assert "4" not in moved
    assert rebuild_state(changes, 26744000).count() == 0
    changes.unpersist()
