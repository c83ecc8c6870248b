"""A table rebuilt from change messages: at any commit it is what the database held then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from errata.engines.spark.inputs.change_messages import normalize_changes, parse_messages, read_commits
from errata.engines.spark.inputs.log_facts import LogMessages, examine_log
from errata.engines.spark.inputs.table_rebuild import build_history, list_changes, rebuild_state
from errata.model.change_log.declaration import ChangeCapture
from errata.model.change_log.log_pin import LogState, find_log_refusals
from errata.model.change_log.log_positions import choose_span
from errata.model.product import Input
from errata.ports.tables import InputState
from support.change_log import START_US, Message, Row, SimulatedDatabase
from support.log_state import build_source, list_differences, read_state, replay_by_lsn
from support.story import read_marks, read_story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SAMPLES = Path(__file__).with_name("samples") / "debezium.jsonl"
SEEDS = (3, 11, 24)
PARAMS = [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])]
CDC = ChangeCapture(("id",), "cdc.transaction")
SOURCE = Input("orders", table="lake.raw.messages", columns={"id": "string", "status": "string"}, cdc=CDC)
PLACE = InputState("orders", "table", "lake.raw.messages", None, {})


class Log:
    """Messages as frames, read once."""

    def __init__(self, spark: SparkSession, events: Sequence[Message], ends: Sequence[Message]) -> None:
        self.messages, self.marks = (_to_frame(spark, one).cache() for one in (events, ends))
        self.normal = normalize_changes(self.messages, read_commits(self.marks), CDC).cache()

    def examine(self, **asked: Any) -> LogState:
        """What planning finds in them."""
        declared = replace(CDC, **asked)
        columns = dict(SOURCE.columns)
        source = replace(SOURCE, cdc=declared, columns=columns)
        return examine_log(source, LogMessages(self.messages, self.marks, PLACE, PLACE), {}, ())

    def close(self) -> None:
        """Free the memory."""
        for frame in (self.normal, self.messages, self.marks):
            frame.unpersist()


def _to_frame(spark: SparkSession, messages: Sequence[Message]) -> DataFrame:
    rows = [(one.topic, one.partition, one.offset, one.value, None) for one in messages]
    return parse_messages(
        spark.createDataFrame(rows, "topic string, partition int, offset bigint, value string, problem string")
    )


@pytest.fixture(scope="module", params=PARAMS)
def history(request: pytest.FixtureRequest, base_spark: SparkSession) -> Iterator[tuple[SimulatedDatabase, Log]]:
    """A simulated database, and what its connector sent."""
    base = SimulatedDatabase.run(request.param)
    log = Log(base_spark, base.events, base.transactions)
    yield base, log
    log.close()


def _answerable(base: SimulatedDatabase) -> list[int]:
    """Commit positions that the connector sent everything about."""
    return [at for at in base.states if not any(start < at < end for start, end in base.lost)]


def _fill(row: Row) -> Row:
    """A column that was added later is not in messages of rows that nobody changed since."""
    return {"note": "", **row}


def test_the_state_at_a_commit_is_what_the_database_held(history: tuple[SimulatedDatabase, Log]) -> None:
    """Whatever the interleaving, repetition, truncation or new snapshot."""
    base, log = history
    state = log.examine()
    positions = _answerable(base)
    for at in positions[:: max(1, len(positions) // 4)]:
        declared = replace(CDC, at=str(at))
        assert find_log_refusals(declared, replace(state, held=None)) == ()
        span = choose_span(declared, state.facts)
        assert span is not None
        found = {row["key"][0]: _fill(row["row"]) for row in rebuild_state(log.normal, span).collect()}
        assert found == {key: _fill(row) for key, row in base.states[at].items()}, f"seed {base.seed}, position {at}"


def test_the_history_at_a_commit_is_the_state_there(history: tuple[SimulatedDatabase, Log]) -> None:
    """Versions of a row do not overlap, and those that are valid at a position are the table then."""
    base, log = history
    state = log.examine(reading="history")
    assert state.span is not None
    versions = build_history(log.normal, state.span).collect()
    for at in _answerable(base):
        valid = [one for one in versions if one["at"] <= at and (one["until"] is None or at < one["until"]["at"])]
        found = {one["key"][0]: _fill(one["row"]) for one in valid}
        assert len(found) == len(valid)
        assert found == {key: _fill(row) for key, row in base.states[at].items()}, f"seed {base.seed}, position {at}"
    assert all(one["until"] is None or one["until"]["time_us"] > one["time_us"] for one in versions)


def test_every_change_is_there_once(history: tuple[SimulatedDatabase, Log]) -> None:
    """A connector that starts again repeats itself; a delete and a truncate are facts of their own."""
    base, log = history
    state = log.examine(reading="changes")
    assert state.span is not None
    found = [
        (row["op"], row["tx"], row["lsn"], (row["key"] or [None])[0])
        for row in list_changes(log.normal, state.span).collect()
    ]
    told = [json.loads(one.value) for one in base.events if one.value]
    sent = {
        (one["op"], one["source"]["txId"], one["source"]["lsn"], ((one["after"] or one["before"]) or {}).get("id"))
        for one in told
    }
    assert sorted(found, key=str) == sorted(sent, key=str)


def test_a_position_that_was_never_sent_is_refused(history: tuple[SimulatedDatabase, Log]) -> None:
    """Between the last END before a connector forgot where it was and the snapshot that it took then."""
    base, log = history
    state = log.examine()
    for at in (at for at in base.states if at not in _answerable(base)):
        refusals = find_log_refusals(replace(CDC, at=str(at)), replace(state, held=None))
        assert any("is inside the snapshot" in one for one in refusals), refusals


def test_an_instant_is_the_state_before_the_first_later_commit(history: tuple[SimulatedDatabase, Log]) -> None:
    """Times of commits become a position once, in planning."""
    base, log = history
    at = _answerable(base)[1]
    instant = f"2026-01-01T00:00:00.{at:06d}Z"
    assert START_US % 1_000_000 == 0
    state = log.examine(at=instant)
    assert state.span is not None
    found = {row["key"][0]: _fill(row["row"]) for row in rebuild_state(log.normal, state.span).collect()}
    assert found == {key: _fill(row) for key, row in base.states[at].items()}


def _replay(base: SimulatedDatabase, order: Callable[[dict[str, Any], int], Any], at: int) -> dict[str, Row]:
    """What a simpler rule makes of the same events: the last of each key, of those up to a position."""
    told = [(n, json.loads(one.value)) for n, one in enumerate(base.events) if one.value is not None]
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


def test_a_recorded_connector_gives_what_the_table_held(base_spark: SparkSession) -> None:
    """A real connector through interleaved transactions, a truncate, a kill, lost offsets and a new column.

    The order of log records alone is wrong for the same messages.
    """
    orders = read_story("orders")
    log = Log(base_spark, orders, read_story("transactions"))
    source = build_source()
    state = examine_log(source, LogMessages(log.messages, log.marks, PLACE, PLACE), {}, ())
    marks = [mark for mark in read_marks() if mark.is_sent]
    for mark in marks[::9]:
        found = read_state(log.normal, source, state, mark.position)
        assert list_differences(found, mark) == [], mark.position
    by_lsn = [replay_by_lsn(orders, mark.position).keys() == mark.rows.keys() for mark in marks]
    assert not all(by_lsn)
    log.close()


def test_real_messages_of_debezium_are_understood(base_spark: SparkSession) -> None:
    """An update below the position of the row that it replaces, a new key, a repeated insert, TRUNCATE."""
    samples = [json.loads(line) for line in SAMPLES.read_text("utf-8").splitlines()]
    events = [
        Message(one["topic"], one["partition"], one["offset"], json.dumps(one["value"]) if one["value"] else None)
        for one in samples
        if one["topic"] != "cdc.transaction"
    ]
    marks = []
    for tx, first, at in ((744, 26685456, 26686500), (746, 26686712, 26686900), (747, 26686952, 26687200)):
        marks += [("BEGIN", tx, first), ("END", tx, at)]
    for tx, first, at in ((751, 26712864, 26713500), (761, 26728776, 26729000), (767, 26743840, 26744000)):
        marks += [("BEGIN", tx, first), ("END", tx, at)]
    ends = [
        Message("cdc.transaction", 0, n, json.dumps({"status": status, "id": f"{tx}:{at}"}))
        for n, (status, tx, at) in enumerate(marks)
    ]
    log = Log(base_spark, events, ends)
    facts = log.examine().facts
    assert facts.sources == ("cdc/shop/public.orders",)
    assert [(mark.at, mark.has_first, mark.has_last) for mark in facts.snapshots] == [(26686176, False, True)]
    assert facts.fresh == (26686500,)
    kinds = {(row["op"], row["key"][0] if row["key"] else None, row["at"]) for row in log.normal.collect()}
    assert ("t", None, 26744000) in kinds
    assert ("u", "5", None) in kinds  # its END is not there: open
    state = log.examine(at="26687200", starts_empty=True)
    assert any("lacks its first row" in one for one in find_log_refusals(replace(CDC, at="26687200"), state))
    assert state.span is not None
    paid = {row["key"][0]: row["row"]["status"] for row in rebuild_state(log.normal, state.span).collect()}
    assert paid["10"] == "paid"
    assert paid["2"] == "T2-before-consistent-point"
    log.close()
