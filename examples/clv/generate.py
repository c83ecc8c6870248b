"""The shop's lake before anybody looked: five years of raw events, the campaigns, and empty tables of value.

The same seed gives the same rows on every machine: a counter-based generator, never the clock. Needs no JVM.

    python -m examples.clv.generate DIRECTORY [--days 1825] [--events-per-day 100]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from examples.clv.lake import CAMPAIGNS, DAYS, FIRST_DAY, MONTH, VALUE, WEEK, Lake, days

SEED = 20210101
EVENTS_PER_DAY = 100
EVENTS_PER_CUSTOMER = 4  # of those who come on a day
CUSTOMERS = 5_000
ORDERS_AMONG_EVENTS = 0.35

EVENTS = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_ts", pa.timestamp("us", tz="UTC")),
        ("customer_id", pa.string()),
        ("event_type", pa.string()),  # touch | order
        ("campaign_id", pa.string()),  # of a touch
        ("amount", pa.decimal128(12, 2)),  # of an order
    ]
)
CAMPAIGN_SCHEMA = pa.schema([("campaign_id", pa.string()), ("channel", pa.string()), ("share", pa.decimal128(6, 4))])
# What a campaign takes of the revenue it is credited with; those further down show up later in the day.
CAMPAIGN_ROWS = (
    ("newsletter", "mail", "0.0200"),
    ("search-brand", "search", "0.0500"),
    ("search-generic", "search", "0.1200"),
    ("social-video", "social", "0.1500"),
    ("affiliate-a", "affiliate", "0.2200"),
    ("retargeting", "display", "0.3000"),
    ("direct", "none", "0.0000"),
)
LINEAGE = ("produced_by_run_id", "transform_version", "restatement_reason")
TABLE_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "30",
    "commit.retry.min-wait-ms": "50",
    "commit.retry.max-wait-ms": "1000",
}


def events(day: date, count: int, *, seed: int = SEED) -> pa.Table:
    """Touches and orders of one day, by time of day; a quarter as many customers as events."""
    draw = _draws(f"{seed}/{day.isoformat()}", count)
    moment, kind, who, campaign, price = draw(), draw(), draw(), draw(), draw()
    is_order = pc.less(kind, ORDERS_AMONG_EVENTS)
    visitors = max(1, count // EVENTS_PER_CUSTOMER)
    first = (day - FIRST_DAY).days * 7  # another stretch of the customers every day
    customer = _remainder(pc.add(_index(who, visitors), first), CUSTOMERS)
    # The later in the day, the dearer the campaign: so crediting late touches costs real money.
    touched = pa.array([name for name, *_ in CAMPAIGN_ROWS[:-1]]).take(
        _index(pc.multiply(0.5, pc.add(campaign, moment)), len(CAMPAIGN_ROWS) - 1)
    )
    cents = pc.add(_index(pc.multiply(price, pc.multiply(price, price)), 40_000), 500)
    amount = pc.cast(pc.multiply(pc.cast(cents, pa.decimal128(19, 0)), pa.scalar(Decimal("0.01"))), EVENTS.types[5])
    midnight = pa.scalar(datetime.combine(day, time(), UTC), EVENTS.types[1])
    columns = {
        "event_id": pc.binary_join_element_wise(pa.scalar(f"E-{day:%Y%m%d}"), _padded(range(count), 6), "-"),
        "event_ts": pc.add(midnight, pc.cast(_index(moment, 86_400_000_000), pa.duration("us"))),
        "customer_id": pc.binary_join_element_wise(pa.scalar("C"), _padded(customer, 5), "-"),
        "event_type": pc.if_else(is_order, "order", "touch"),
        "campaign_id": pc.if_else(is_order, pa.scalar(None, pa.string()), touched),
        "amount": pc.if_else(is_order, amount, pa.scalar(None, EVENTS.types[5])),
    }
    return pa.table(columns, schema=EVENTS).sort_by("event_ts")


def _draws(name: str, count: int) -> Callable[[], pa.Array]:
    source = random.Random(name)
    return lambda: pc.random(count, initializer=source.getrandbits(62))


def _index(uniform: pa.Array, size: int) -> pa.Array:
    return pc.cast(pc.floor(pc.multiply(uniform, float(size))), pa.int64())


def _remainder(number: pa.Array, by: int) -> pa.Array:
    return pc.subtract(number, pc.multiply(pc.divide(number, by), by))


def _padded(numbers: pa.Array | range, width: int) -> pa.Array:
    return pc.utf8_lpad(pc.cast(pa.array(numbers, pa.int64()), pa.string()), width, "0")


def campaigns() -> pa.Table:
    """The reference data."""
    rows = [
        {"campaign_id": name, "channel": channel, "share": Decimal(share)} for name, channel, share in CAMPAIGN_ROWS
    ]
    return pa.Table.from_pylist(rows, schema=CAMPAIGN_SCHEMA)


def create_tables(lake: Lake) -> None:
    """The campaigns, and the governed tables without rows, each partitioned by its first column."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType

    day, money, number, text = DateType(), DecimalType(18, 2), LongType(), StringType()
    tables = {
        VALUE: {
            "event_date": day, "customer_id": text, "orders": number, "revenue": money, "cost": money, "margin": money,
        },
        MONTH: {"event_month": text, "customers": number, "orders": number, "revenue": money, "margin": money},
        WEEK: {"event_date": day, "orders": number, "margin": money},
    }  # fmt: skip
    catalog = lake.catalog()
    for namespace in ("ref", "crm"):
        catalog.create_namespace(namespace)
    catalog.create_table(CAMPAIGNS, CAMPAIGN_SCHEMA, properties={"format-version": "2"}).append(campaigns())
    for table, columns in tables.items():
        named = enumerate({**columns, **dict.fromkeys(LINEAGE, text)}.items(), 1)
        schema = Schema(*(NestedField(n, name, kind, required=False) for n, (name, kind) in named))
        by = PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name=next(iter(columns)))
        catalog.create_table(table, schema, partition_spec=PartitionSpec(by), properties=TABLE_PROPERTIES)


def generate(root: Path, *, count: int = DAYS, events_per_day: int = EVENTS_PER_DAY) -> int:
    """Make the lake in an empty directory; returns the number of events."""
    lake = Lake(root.absolute())
    lake.create()
    lake.events.mkdir(parents=True)
    create_tables(lake)
    total = 0
    for number, day in enumerate(days(count)):
        rows = max(EVENTS_PER_CUSTOMER, events_per_day * (80 + (number * 13) % 40) // 100)  # no two days are alike
        lake.events_of(day).mkdir()
        pq.write_table(events(day, rows), lake.events_of(day) / "part-00000.parquet", compression="zstd")
        total += rows
    return total


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Generate the shop's lake.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--events-per-day", type=int, default=EVENTS_PER_DAY)
    asked = parser.parse_args()
    total = generate(asked.directory, count=asked.days, events_per_day=asked.events_per_day)
    print(f"{total:,} events of {asked.days:,} days in {asked.directory}")


if __name__ == "__main__":
    main()
