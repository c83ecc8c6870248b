"""Rows that a run sets aside: named, counted four ways, shown, and never lost or counted twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata.commands.upkeep.cleanup import cleanup
from errata.errors import RunFailed, TransformFailed, ValidationRejected
from errata.failpoints import arm
from errata.model.audit import Actor
from support.world import PRODUCT_FILE, World

ERAS = """\
inputs:
  raw:
    files: "raw/day={day}/*.parquet"
    partition: day
    lookback: 1d
    columns: {account: string, amount: "decimal(12,2)", channel: string, booked: date}
    eras:
      - {name: text, has: [amt], rename: {amt: amount, acct: account}, cast: {amount: "decimal(12,2)", booked: date},
         default: {channel: web}}
      - {name: floats, from: 2026-01-02, until: 2026-01-02, lacks: [amt], cast: {amount: "decimal(12,2)"},
         default: {channel: null}}
      - {name: today, from: 2026-01-03, has: [channel]}
    rows:
      - {name: test accounts, expression: "account like 'test%'", action: suppress}
      - {name: negative, expression: "amount < 0", action: quarantine}
    quarantine: {warn: 70%, block: 90%}
"""
PRODUCT = PRODUCT_FILE.replace(PRODUCT_FILE[PRODUCT_FILE.index("inputs:") : PRODUCT_FILE.index("publish:")], ERAS)
PRODUCT += "classified: [account]\n"
TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw):
    raw = raw.where(F.col("day").cast("string").isin(list(ctx.partitions)))
    raw = ctx.quarantine(raw, F.col("channel") == "fax", "fax is no channel")
    gross = F.sum("amount").cast("decimal(12,2)").alias("gross")
    return raw.groupBy("day", "account").agg(gross, F.count("*").alias("n"))
"""


def _write(root: Path, day: str, columns: dict[str, Any]) -> Path:
    place = root / f"raw/day={day}/part-0.parquet"
    pq.write_table(pa.table(columns), place)
    return place


def _strings(*values: bytes | None) -> pa.Array:
    """Text as writers leave it, valid or not."""
    return pa.array(values, pa.binary()).view(pa.string())


def poisoned(make_world: Any, **options: Any) -> World:
    """Three days of three eras, each with values that cannot be what they should be."""
    world: World = make_world(days=3, product=PRODUCT, transform=TRANSFORM, **options)
    surrogate = b"a\xed\xa0\x80"
    first = {
        "acct": _strings(b"a0", b"a1", b"a2", b"a3", surrogate, b"test1", b"test2", b"a4", b"a5"),
        "amt": ["1.50", "abc", "1.005", "1.00", "1.00", "abc", "5.00", "-1.00", "2.00"],
        "booked": ["2026-01-01"] * 3 + ["2026-02-30"] + ["2026-01-01"] * 5,
    }
    second = {
        "account": ["a0", "a1", "a2", "a3"],
        "amount": [2.5, float("nan"), 1e300, 0.1],
        "booked": pa.array([20454] * 4, pa.int32()).cast(pa.date32()),
    }
    third = {
        "account": ["a0", "a1", "a1"],
        "amount": pa.array([Decimal("3.00"), Decimal("0.00"), Decimal("4.00")], pa.decimal128(12, 2)),
        "channel": ["web", "fax", "app"],
        "booked": pa.array([20455] * 3, pa.int32()).cast(pa.date32()),
    }
    for day, columns in zip(world.days, (first, second, third), strict=True):
        _write(world.root, day, columns)
    return world


def _checks(world: World, run: str, name: str) -> dict[str | None, tuple[str, str]]:
    found = world.client.validate(run, as_="ana").checks
    return {check["partition"]: (check["level"], check["message"]) for check in found if check["name"] == name}


def test_poison_rows_are_set_aside_by_name_and_every_row_is_accounted_for(make_world: Any) -> None:
    """Bad dates, NaN, overflow, rounding and broken text leave the chunk alive; the books balance to the row."""
    world = poisoned(make_world)
    run = world.to("validated")
    first, second, third = world.days
    view = world.client.quarantine(run, sample=9)
    assert {(one.kind, one.reason): (one.rows, one.partitions) for one in view.reasons} == {
        ("cast", "cast amount"): (5, (first, second)),
        ("cast", "cast booked"): (1, (first,)),
        ("cast", "text account"): (1, (first,)),
        ("rule", "negative"): (1, (first,)),
        ("transform", "fax is no channel"): (1, (third,)),
    }
    assert view.inputs == {
        "raw": {"rows_in": 16, "rows_used": 7, "rows_quarantined": 8, "rows_suppressed": 1, "rows_set_aside": 1}
    }
    said = _checks(world, run, "accounting")
    assert said[first] == ("ok", "raw: 9 rows in = 2 used + 6 quarantined + 1 suppressed")
    assert said[third] == (
        "ok",
        "raw: 3 rows in = 3 used, of which the transform set 1 aside + 0 quarantined + 0 suppressed",
    )
    rows = {row.reason: row for row in view.rows if row.partition != second}
    assert rows["cast booked"].row == {"acct": "•••", "amt": "1.00", "booked": "2026-02-30"}
    assert rows["cast booked"].origin.endswith(f"raw/day={first}/part-0.parquet")
    assert rows["fax is no channel"].row["amount"] == "0.00"
    (kept,) = world.sql(f"SELECT row FROM {view.table} WHERE reason = 'text account'")
    assert '"acct":"0x61EDA080"' in kept[0]
    world.client.publish(run, as_="bo")
    assert world.rows() == [
        (first, "a0", Decimal("1.50"), 1),
        (first, "a5", Decimal("2.00"), 1),
        (second, "a0", Decimal("2.50"), 1),
        (second, "a3", Decimal("0.10"), 1),
        (third, "a0", Decimal("3.00"), 1),
        (third, "a1", Decimal("4.00"), 1),
    ]
    assert world.client.status(run).input_rows == view.inputs
    assert any(view.table == item["table"] for item in world.client.cleanup(run, as_="ana").kept)
    workspace = world.workspace
    later = replace(workspace, now=lambda: workspace.now() + timedelta(days=40))
    removed = cleanup(later, Actor("ana", "ana", "host", single_user=False), run, dry_run=False).removed
    assert view.table in {item["table"] for item in removed}
    assert world.client.quarantine(run).table is None


@pytest.mark.slow
def test_only_rows_of_adopted_attempts_count_and_one_that_vanished_is_missed(make_world: Any) -> None:
    """An attempt that dies after it set rows aside leaves nothing in the books; a row taken out of them blocks."""
    world = poisoned(make_world)
    run = world.to("approved", world.days[0])

    def die() -> None:
        raise TransformFailed("died here")

    with arm("stage.before_commit", die), pytest.raises(RunFailed, match="died here"):
        world.client.run(run, as_="ana")
    world.client.retry(run, as_="ana")
    world.client.run(run, as_="ana")
    view = world.client.quarantine(run, sample=0)
    (kept,) = world.sql(f"SELECT count(*) FROM {view.table}")
    assert kept[0] == 2 * sum(one.rows for one in view.reasons) == 12
    world.sql(f"DELETE FROM {view.table} WHERE reason = 'negative'")
    with pytest.raises(ValidationRejected) as refused:
        world.client.validate(run, as_="ana")
    blocked = [check for check in refused.value.fields["validation"].checks if check["level"] == "block"]
    assert [(check["name"], check["partition"], check["message"]) for check in blocked] == [
        ("accounting", world.days[0], "raw: negative: 1 rows were taken out, the quarantine table has 0")
    ]


@pytest.mark.slow
def test_a_trial_judges_rows_by_the_same_limits(make_world: Any) -> None:
    """Nothing is written, and the share of bad rows is known before anything is planned."""
    world = poisoned(make_world)
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("warn: 70%, block: 90%", "warn: 1%, block: 60%"))
    world.configure("project: test", "project: test")
    tried = world.client.try_out("fin.sales", world.days[0], as_="ana")
    levels = {(check.name, check.partition): check.level for check in tried.checks}
    assert levels["quarantine", world.days[0]] == "block"
    assert levels["accounting", world.days[0]] == "ok"
