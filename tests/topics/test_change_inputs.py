"""Products that read a change log: from a recording, a table and a topic, as state, changes and history."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from errata.errors import ErasedSince, PlanRefused, RunFailed
from errata.evidence.keys import generate_key_pair
from errata.model.product.input_policy import REDACTED
from support.capture import Mark
from support.invariants import assert_invariants
from support.story import STORY, read_marks, read_story
from support.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.kafka import KafkaBroker

pytestmark = pytest.mark.spark
MARKS = read_marks()
LOST = next(n for n, mark in enumerate(MARKS) if not mark.is_sent)
EMPTIED = next(n for n, mark in enumerate(MARKS) if not mark.rows)
PRODUCT = """
product: fin.sales
owner: finance
target:
  table: lake.fin.sales
  partition: {column: day, grain: day}
  key: [day, account]
transform: {call: "transforms.sales:build", version: 2.0.0}
inputs:
  orders:
    PLACE
    cdc: {key: [id], transactions: ENDS, CDC}
    columns: {id: long, account: string, amount: "decimal(12,2)", created: timestamptz, note: string}
    eras:
      - {name: before-note, lacks: [note], default: {note: n/a}}
      - {name: since-note, has: [note]}
    PARTITION
publish: PUBLISH
checks:
  - {metric: duplicateValues, columns: [day, account], mustBe: 0}
lineage_columns: [produced_by_run_id, restatement_reason, input_snapshot_id]
"""
MIRROR = """
from pyspark.sql import functions as F


def build(ctx, orders):
    return orders.select(
        F.to_date("created").alias("day"), F.col("id").cast("string").alias("account"),
        F.col("amount").alias("gross"), F.lit(1).cast("long").alias("n"),
    )
"""
APPLY = """
from pyspark.sql import Window
from pyspark.sql import functions as F


def build(ctx, orders):
    day = F.to_date("created")
    newest = Window.partitionBy(day, "id").orderBy(F.desc("cdc_position"), F.desc("cdc_lsn"), F.col("cdc_op") == "d")
    last = orders.withColumn("place", F.row_number().over(newest)).where("place = 1")
    return last.select(
        day.alias("day"), F.col("id").cast("string").alias("account"), F.col("amount").alias("gross"),
        F.lit(1).cast("long").alias("n"), "cdc_op",
    )
"""
COUNT = """
from pyspark.sql import functions as F


def build(ctx, orders):
    change = F.coalesce("amount", F.lit(0)) - F.coalesce("before_amount", F.lit(0))
    return orders.groupBy(F.lit("2026-01-01").cast("date").alias("day"), F.col("cdc_op").alias("account")).agg(
        F.sum(change).cast("decimal(12,2)").alias("gross"), F.count("*").alias("n")
    )
"""
VERSIONS = """
from pyspark.sql import functions as F


def build(ctx, orders):
    name = F.concat_ws("/", "id", "valid_from_position", "valid_to_position")
    return orders.select(
        F.lit("2026-01-01").cast("date").alias("day"), name.alias("account"), F.col("amount").alias("gross"),
        F.lit(1).cast("long").alias("n"),
    )
"""
WHO = """
from pyspark.sql import functions as F


def build(ctx, orders):
    people = F.concat_ws("/", *(name for name in ("account", "before_account") if name in orders.columns))
    return orders.groupBy(F.lit("2026-01-01").cast("date").alias("day"), people.alias("account")).agg(
        F.sum("amount").cast("decimal(12,2)").alias("gross"), F.count("*").alias("n")
    )
"""
SOURCES = "sources: {orders: {format: json}, transactions: {format: json}}\n"
REPLACE = "{mode: replace_partitions, rollback_window: 30d}"
MERGE = "{mode: merge, rollback_window: 30d, merge: {delete: \"cdc_op = 'd'\"}}"


@pytest.fixture
def log_world(base_spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes a governed lake whose input is a change log; of a recording it has the story."""
    made: list[World] = []

    def make(
        cdc: str,
        *,
        transform: str = MIRROR,
        place: str = "recording: orders",
        ends: str = "transactions",
        partition: str = "partition: created",
        publish: str = REPLACE,
        project: str = SOURCES,
    ) -> World:
        product = PRODUCT.replace("PLACE", place).replace("ENDS", ends).replace("CDC", cdc)
        product = product.replace("PARTITION", partition).replace("PUBLISH", publish)
        world = World.make(
            tmp_path / f"world{len(made)}", base_spark, days=3, product=product, transform=transform, project=project
        )
        made.append(world)
        world.sql("ALTER TABLE lake.fin.sales ADD COLUMNS (input_snapshot_id string)")
        for name in ("orders", "transactions") if project == SOURCES else ():
            world.client.import_files(str(STORY / f"{name}.json.gz"), name, as_="ana")
        return world

    yield make
    for world in made:
        world.client.close()
        assert_invariants(world.root, world.lake.pyiceberg)


def _expect(mark: Mark) -> list[tuple[str, str, str]]:
    rows = [
        (int(created) // 86_400_000_000 - 20453, key, amount) for key, (_, amount, created, *_) in mark.rows.items()
    ]
    return sorted((f"2026-01-0{day}", key, str(amount)) for day, key, amount in rows)


def _held(world: World) -> list[tuple[str, str, str]]:
    return sorted((day, account, str(gross)) for day, account, gross, _ in world.rows())


def _edit(world: World, old: str, new: str) -> None:
    place = next(path for path in world.root.rglob("*.yaml") if "product: fin.sales" in path.read_text("utf-8"))
    text = place.read_text("utf-8")
    assert old in text
    place.write_text(text.replace(old, new), "utf-8")
    world.open()


def test_a_recorded_log_is_the_state_at_a_position(log_world: Callable[..., World]) -> None:
    """The published rows are what the database held when everything up to the position had been committed."""
    mark = MARKS[LOST - 2]
    world = log_world(f"as: state, at: {mark.position}")
    run = world.to("published")
    assert _held(world) == _expect(mark)
    view = world.client.show(run)
    ends, source = view.inputs
    assert source.log is not None
    assert (source.log.reading, source.log.position, source.log.transactions) == (
        "state",
        str(mark.position),
        ends.name,
    )
    assert ends.transactions_of == "orders"
    stamped = world.sql("SELECT DISTINCT input_snapshot_id FROM lake.fin.sales WHERE produced_by_run_id IS NOT NULL")
    assert f"orders=log:{source.log.base}-{mark.position}:" in stamped[0][0]


@pytest.mark.slow
def test_changes_have_the_row_and_what_it_was_before(log_world: Callable[..., World]) -> None:
    """Each once: what a connector sent again after it was killed does not count twice."""
    world = log_world("as: changes", transform=COUNT, partition="")
    world.to("published", "2026-01-01")
    told = [(json.loads(one.value), one.key) for one in read_story("orders") if one.value]
    sent = {(one["op"], one["source"]["txId"], one["source"]["lsn"], key): one for one, key in told}
    counts: dict[str, int] = {}
    moved: dict[str, Decimal] = {}
    for (op, *_), one in sent.items():
        row = one["before"] if op == "d" else one["after"]
        counts[op] = counts.get(op, 0) + 1
        now, was = (Decimal((side or {}).get("amount") or 0) for side in (row, one["before"]))
        moved[op] = moved.get(op, Decimal(0)) + now - was
    found = {account: (gross, n) for day, account, gross, n in world.rows() if day == "2026-01-01"}
    assert found == {op: (moved[op], n) for op, n in counts.items()}


@pytest.mark.slow
def test_the_history_of_a_recorded_log_contains_every_state(log_world: Callable[..., World]) -> None:
    """At each position that was sent, the versions that are valid there are the rows of the table."""
    world = log_world("as: history", transform=VERSIONS, partition="")
    world.to("published", "2026-01-01")
    versions = []
    for name, gross in ((name, gross) for day, name, gross, _ in world.rows() if day == "2026-01-01"):
        key, start, *end = name.split("/")
        versions.append((key, int(start), int(end[0]) if end else 2**63, gross))
    for mark in (mark for mark in MARKS if mark.is_sent):
        valid = {key: str(gross) for key, start, end, gross in versions if start <= mark.position < end}
        assert valid == {key: row[1] for key, row in mark.rows.items()}, mark.position


@pytest.mark.slow
def test_changes_since_the_accepted_run_bring_a_table_up_to_date(log_world: Callable[..., World]) -> None:
    """A bootstrap takes the state, later runs what changed since: no row twice, none missing, moved rows moved."""
    first, second, third = MARKS[EMPTIED + 3], MARKS[EMPTIED + 9], MARKS[LOST - 1]
    cdc = f"as: changes, since: accepted, at: {first.position}"
    world = log_world(cdc, transform=APPLY, publish=MERGE)
    world.remove_day("2026-01-01")
    for day in ("2026-01-02", "2026-01-03"):
        world.remove_day(day)
    world.to("published", kind="bootstrap")
    assert _held(world) == _expect(first)
    _edit(world, f"at: {first.position}", f"at: {second.position}")
    # one day is brought up to date before the others
    world.to("published", "2026-01-02")
    _edit(world, f"at: {second.position}", f"at: {third.position}")
    run = world.to("published")
    assert _held(world) == _expect(third)
    log = world.client.show(run).inputs[1].log
    assert log is not None
    assert sorted(log.since.values()) == sorted(map(str, (first.position, second.position, first.position)))


@pytest.mark.slow
def test_changes_since_before_a_truncate_are_refused(log_world: Callable[..., World]) -> None:
    """Changes alone do not tell which rows are gone."""
    before, after = MARKS[EMPTIED - 2], MARKS[EMPTIED + 3]
    world = log_world(f"as: changes, since: accepted, at: {before.position}", transform=APPLY, publish=MERGE)
    world.to("published")
    _edit(world, f"at: {before.position}", f"at: {after.position}")
    with pytest.raises(PlanRefused, match="changes alone do not tell which rows are gone"):
        world.plan()


@pytest.mark.slow
def test_a_table_of_raw_messages_is_read_at_its_snapshot(
    log_world: Callable[..., World], base_spark: SparkSession
) -> None:
    """Also messages of several tables and of transactions in one table; what comes later is not read."""
    mark = MARKS[-3]
    cdc = f"as: state, at: {mark.position}, source_table: public.orders"
    world = log_world(cdc, place="table: lake.raw.messages", ends="lake.raw.messages", project="")
    rows = [(one.topic, one.partition, one.offset, one.value) for name in ("orders", "transactions")
            for one in read_story(name)]  # fmt: skip
    other = json.loads(next(one.value for one in read_story("orders") if one.value))
    other["source"]["table"] = "customers"
    rows += [("cdc.public.customers", 0, 0, json.dumps(other))]
    world.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    frame = world.spark.createDataFrame(rows, "topic string, partition int, offset bigint, value string")
    frame.writeTo("lake.raw.messages").create()
    run = world.to("approved")
    world.sql("DELETE FROM lake.raw.messages WHERE partition = 0")
    for state in ("staged", "validated", "published"):
        world.step(state, run)
    assert _held(world) == _expect(mark)
    with pytest.raises(PlanRefused, match=r"begins at offset|no whole snapshot"):
        world.plan(supersede=run)


@pytest.mark.slow
def test_a_topic_is_read_by_the_offsets_of_both_topics(log_world: Callable[..., World], kafka: KafkaBroker) -> None:
    """Both are sealed and counted; what retention takes from either fails the run, and the next plan."""
    topic, ends = kafka.make_topic(2), kafka.make_topic(1)
    for name, messages in ((topic, read_story("orders")), (ends, read_story("transactions"))):
        kafka.send(name, [{"value": one.value, "key": one.key, "partition": one.partition} for one in messages])
    place = f"kafka: {{cluster: events, topic: {topic}}}"
    project = f'kafka:\n  events: {{bootstrap: "{kafka.bootstrap}"}}\n'
    world = log_world("as: state", place=place, ends=ends, project=project)
    run = world.to("published")
    assert _held(world) == _expect(MARKS[-1])
    view = world.client.show(run)
    assert {one.name: bool(one.offsets) for one in view.inputs} == {"orders": True, "orders_transactions": True}
    later = str(world.plan(supersede=run).id)
    kafka.cut(ends, 0, 4)
    with pytest.raises(RunFailed, match="retention removed 4"):
        world.step("staged", world.step("approved", later))
    world.client.cancel(later, reason="retention", as_="ana")
    # the newest snapshot is still whole, and every END since then is there
    world.client.cancel(str(world.plan().id), reason="enough", as_="ana")
    kafka.cut(topic, 1, max(one.offset for one in read_story("orders") if one.partition == 1))
    with pytest.raises(PlanRefused, match=f"{topic}/1 begins at offset"):
        world.plan()


RECORDED_TOPICS = """\
kafka:
  events: {{bootstrap: "{bootstrap}"}}
sources:
  orders: {{format: {form}, kafka: {{cluster: events, topic: {topic}}}}}
  transactions: {{format: {form}, kafka: {{cluster: events, topic: {ends}}}}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_recorded_topic_is_a_change_log(log_world: Callable[..., World], kafka: KafkaBroker, form: str) -> None:
    """Recorded from the broker in two windows and read when both topics are gone: what the database held."""
    topic, ends = kafka.make_topic(2), kafka.make_topic(1)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for name, messages in ((topic, read_story("orders")), (ends, read_story("transactions"))):
        first, half = int(noon.timestamp() * 1000), max(one.offset for one in messages) // 2
        kafka.send(
            name,
            [
                {"value": one.value, "key": one.key, "partition": one.partition,
                 "timestamp": first + one.offset + (86_400_000 if one.offset > half else 0)}
                for one in messages
            ],
        )  # fmt: skip
    project = RECORDED_TOPICS.format(bootstrap=kafka.bootstrap, form=form, topic=topic, ends=ends)
    world = log_world("as: state", project=project)
    for source in ("orders", "transactions"):
        for day in ("2026-01-01", "2026-01-02"):
            end = (date.fromisoformat(day) + timedelta(days=1)).isoformat()
            (done,) = world.client.record(source, start=day, end=end, as_="ana").files
            assert done.status == "accepted", done
    for name in (topic, ends):
        kafka.delete_topic(name)
    run = world.to("published")
    assert _held(world) == _expect(MARKS[-1])
    log = world.client.show(run).inputs[1].log
    assert log is not None
    assert log.position == str(MARKS[-1].position)
    earlier = MARKS[LOST - 2]
    _edit(world, "as: state", f"as: state, at: {earlier.position}")
    world.to("published", supersede=run)
    assert _held(world) == _expect(earlier)


@pytest.mark.slow
def test_bad_values_are_quarantined_with_their_message(log_world: Callable[..., World]) -> None:
    """A value that is not of its type is never NULL, and its row is named by topic, partition and offset."""
    world = log_world("as: state")
    _edit(world, 'amount: "decimal(12,2)"', 'amount: "decimal(12,2)", changed: date')
    run = world.to("staged")
    rows = world.client.quarantine(run).rows
    assert rows
    assert {(row.kind, row.reason) for row in rows} == {("cast", "cast changed")}
    assert all(row.origin.startswith("cdc.public.orders/") for row in rows)


def _protect(world: World, key: Path, input_keys: str, *, more: str = "") -> None:
    """The same world with a list of erased subjects, and with these keys of its input."""
    generate_key_pair(key)
    settings = world.root / "errata.yaml"
    settings.write_text(
        f'{settings.read_text("utf-8")}erasure: {{table: lake.privacy.erased, key: "{key}"}}\n', "utf-8"
    )
    _edit(world, "    eras:\n", f"    {input_keys}\n    eras:\n")
    if more:
        _edit(world, "account: string", f"account: string, {more}")
    world.client.erase([], reason="the list", as_="bo")


MOVED = "a3"
"""The story takes a row away from this account, in an update that shows both."""


def _expect_changes() -> dict[str, tuple[Decimal | None, int]]:
    """Sum and number of the changes by whom they show, from the messages alone; a move counts for each apart."""
    told = [(json.loads(one.value), one.key) for one in read_story("orders") if one.value]
    sent = {(one["op"], one["source"]["txId"], one["source"]["lsn"], key): one for one, key in told}
    found: dict[str, tuple[Decimal | None, int]] = {}
    moves = 0
    for one in sent.values():
        now, was = one["after"], one["before"]
        pieces = [(was if one["op"] == "d" else now, was)]
        if one["op"] == "u" and now["account"] != was["account"]:
            pieces, moves = [(was, was), (now, None)], moves + 1
        for row, earlier in pieces:
            name = "/".join(side["account"] for side in (row, earlier) if side)
            gross, n = found.get(name, (None, 0))
            found[name] = ((gross or 0) + Decimal(row["amount"]) if row else gross, n + 1)
    assert moves == 1
    return found


@pytest.mark.parametrize("reading", ["state", "changes", "history"])
@pytest.mark.slow
def test_erased_subjects_are_left_out_of_every_reading(
    log_world: Callable[..., World], tmp_path: Path, reading: str
) -> None:
    """Rows of everybody else are as before, nobody's earlier value shows them, and what was left out is counted."""
    world = log_world(f"as: {reading}", transform=WHO, partition="")
    _protect(world, tmp_path / "key", "subjects: [account]")
    run = world.to("published", "2026-01-01")
    before = {account: (gross, n) for day, account, gross, n in world.rows() if day == "2026-01-01"}
    shown = {name: found for name, found in before.items() if MOVED in name.split("/")}
    assert shown
    if reading == "changes":
        assert before == _expect_changes()
    world.client.erase([MOVED], reason="request 1", as_="bo")
    later = world.to("published", "2026-01-01", supersede=run)
    after = {account: (gross, n) for day, account, gross, n in world.rows() if day == "2026-01-01"}
    assert after == {name: found for name, found in before.items() if name not in shown}
    costs = [one.cost for one in world.ledger.progress.attempts(later)]
    assert sum(cost["rows_suppressed:orders"] for cost in costs) == sum(n for _, n in shown.values())
    assert all(c["rows_in:orders"] == c["rows_used:orders"] + c["rows_suppressed:orders"] for c in costs)


@pytest.mark.slow
def test_a_chunk_that_used_changes_of_someone_erased_since_is_computed_again(
    log_world: Callable[..., World], tmp_path: Path
) -> None:
    """The log is looked at again when the list grows."""
    world = log_world("as: state")
    _protect(world, tmp_path / "key", "subjects: [account]")
    run = world.to("validated")
    world.client.erase(["a2"], reason="request 1", as_="bo")
    with pytest.raises(ErasedSince):
        world.client.validate(run, as_="ana")
    world.client.run(run, as_="ana")
    world.client.validate(run, as_="ana")
    world.client.publish(run, as_="bo")
    mark = MARKS[-1]
    mine = {key for key, row in mark.rows.items() if row[0] == "a2"}
    assert _held(world) == [row for row in _expect(mark) if row[1] not in mine]


@pytest.mark.slow
def test_masks_cover_a_change_and_what_was_there_before(log_world: Callable[..., World], tmp_path: Path) -> None:
    """The transform sees no value of a masked column, and the quarantine keeps only positions."""
    world = log_world("as: changes", transform=WHO, partition="")
    _protect(world, tmp_path / "key", "policy: {mask: {account: redact}}", more="changed: date")
    run = world.to("staged", "2026-01-01")
    kept = world.client.quarantine(run, sample=5).rows
    assert kept
    assert not any("account" in str(row) for row in kept)
    world = log_world("as: changes", transform=WHO, partition="")
    _protect(world, tmp_path / "key2", "policy: {mask: {account: redact}}")
    world.to("published", "2026-01-01")
    shown = {account for day, account, *_ in world.rows() if day == "2026-01-01"}
    assert {part for name in shown for part in name.split("/")} <= {REDACTED, ""}


def _refusal(world: World) -> str:
    with pytest.raises(PlanRefused) as caught:
        world.plan()
    return caught.value.message


def test_a_position_that_was_never_sent_is_refused(log_world: Callable[..., World]) -> None:
    """The connector had lost its offsets then; and a column that came later needs an era."""
    lost = MARKS[LOST].position - 1
    world = log_world(f"as: state, at: {lost}")
    said = _refusal(world)
    assert f"position {lost} " in said
    assert "is inside the snapshot" in said
