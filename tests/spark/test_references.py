"""A reference table on Iceberg that changed over time: each day is computed from the version of its own time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from errata.errors import PlanRefused
from support.world import FIRST, PRODUCT_FILE, World

Make = Callable[..., World]
RATES = "lake.fin.rates"
PRODUCT = PRODUCT_FILE.replace("publish:", f"  rates: {{table: {RATES}, reference: as_recorded}}\npublish:").replace(
    '  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n', ""
)
PRODUCT = PRODUCT.replace("reconcile:\n", "").replace(
    "checks:\n",
    "checks:\n  - {metric: missingReferences, column: account, references: {input: rates, columns: [account]}, "
    "mustBe: 0}\n",
)
TRANSFORM = """
from pyspark.sql import functions as F


def build(ctx, raw, rates):
    rows = raw.groupBy("day", "account").agg(F.count("*").alias("n"))
    return rows.join(rates, "account").select("day", "account", F.col("rate").alias("gross"), "n")
"""


def set_times(world: World, *moments: datetime) -> None:
    """Let the snapshots of the table be of these times, in the order in which they were committed."""
    with closing(load_catalog("lake", **world.lake.pyiceberg)) as catalog:
        place = Path(catalog.load_table("fin.rates").metadata_location.removeprefix("file:"))
    data = json.loads(place.read_text())
    ordered = sorted(data["snapshots"], key=lambda one: one["sequence-number"])
    times = {one["snapshot-id"]: int(at.timestamp() * 1000) for one, at in zip(ordered, moments, strict=True)}
    for one in (*data["snapshots"], *data["snapshot-log"]):
        one["timestamp-ms"] = times[one["snapshot-id"]]
    place.write_text(json.dumps(data))
    place.with_name(f".{place.name}.crc").unlink(missing_ok=True)


def noon_of(day: int) -> datetime:
    """Noon of the nth day of the history."""
    return datetime.combine(FIRST + timedelta(days=day), datetime.min.time(), UTC) + timedelta(hours=12)


@pytest.mark.slow
@pytest.mark.spark
def test_each_day_is_computed_from_the_version_of_its_own_end(make_world: Make) -> None:
    """Over versions that come and go: what is pinned survives an expiry, and what is not is refused by name."""
    world = make_world(days=4, product=PRODUCT, transform=TRANSFORM)
    accounts = sorted({account for _, account, _, _ in world.expected()})
    world.sql(f"CREATE TABLE {RATES} (account string, rate decimal(12,2)) USING iceberg")
    for rate in ("1.00", "2.00", "3.00", "9.00"):
        values = ", ".join(f"('{name}', {rate})" for name in accounts)
        world.sql(f"INSERT OVERWRITE {RATES} VALUES {values}")
    set_times(world, noon_of(-1), noon_of(1), noon_of(2), datetime(2026, 6, 1, tzinfo=UTC))
    plan = world.plan()
    (rates,) = [one for one in plan.inputs if one.name == "rates"]
    one, two, three, four = world.days
    assert [span.partitions for span in rates.snapshots] == [(one,), (two,), (three, four)]
    world.sql("CALL lake.system.expire_snapshots(table => 'fin.rates', older_than => timestamp'2100-01-01')")
    world.client.approve(plan.id, digest=plan.digest, as_="bo")
    world.client.run(plan.id, as_="ana")
    world.client.validate(plan.id, as_="ana")
    world.client.publish(plan.id, as_="bo")
    found = {(day, str(gross)) for day, _, gross, _ in world.rows()}
    assert found == {(one, "1.00"), (two, "2.00"), (three, "3.00"), (four, "3.00")}
    world.sql("CALL lake.system.expire_snapshots(table => 'fin.rates', older_than => timestamp'2100-01-01')")
    with pytest.raises(PlanRefused, match=r"rates \(as_recorded\): no snapshot for 4 of 4 partitions"):
        world.plan(reason="again")
