"""FinSight's lake before anything went wrong: raw transactions, FX rates, and an empty table of daily revenue.

The same seed gives the same bytes' worth of rows on every machine: only additions, multiplications and a counter-based
generator are used, never the clock. Needs no JVM.

    python -m examples.finsight.generate DIRECTORY [--rows-per-day 20000]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from examples.finsight.lake import (
    ACCOUNTS,
    CURRENCIES,
    FIRST_DAY,
    LAST_RATE,
    RATES,
    REVENUE,
    TODAY,
    Lake,
    days,
)

SEED = 20260101
ROWS_PER_DAY = 20_000
FILES_PER_DAY = 4

TRANSACTIONS = pa.schema(
    [
        ("transaction_id", pa.string()),
        ("business_date", pa.date32()),
        ("account_id", pa.string()),
        ("currency", pa.string()),
        ("amount", pa.decimal128(18, 2)),
        ("event_ts", pa.timestamp("us", tz="UTC")),
        ("channel", pa.string()),
    ]
)
FX_RATES = pa.schema(
    [("rate_date", pa.date32()), ("currency", pa.string()), ("usd_per_unit", pa.decimal128(18, 6))],
)
LINEAGE = (
    "produced_by_run_id",
    "produced_by_transform",
    "transform_version",
    "input_snapshot_id",
    "input_range_start",
    "input_range_end",
    "processing_mode",
    "reference_data_version",
    "restatement_reason",
)
# With Iceberg's 4 retries a live job beside two other drivers lost 1 of 25 appends; with 30 none.
TABLE_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "30",
    "commit.retry.min-wait-ms": "50",
    "commit.retry.max-wait-ms": "1000",
}
CHANNELS = ("card", "transfer", "direct_debit")


def transactions(
    day: date, rows: int, *, seed: int = SEED, first: int = 0, accounts: pa.Array | None = None
) -> pa.Table:
    """The transactions of one business date, numbered from ``first``.

    Every account has a home currency and now and then spends in another; amounts are many small and few large.
    """
    names = pa.array(ACCOUNTS) if accounts is None else accounts
    draw = _draws(f"{seed}/{day.isoformat()}/{first}", rows)
    account = names.take(_index(draw(), len(names)))
    home = pc.cast(pc.utf8_slice_codeunits(account, 2), pa.int64())
    currency = pa.array(_SPENT).take(
        pc.add(
            pc.multiply(_remainder(home, 10), 20),  # ten kinds of account …
            _index(draw(), 20),  # … each with twenty equally likely choices
        )
    )
    skew = draw()
    cents = pc.add(_index(pc.multiply(skew, pc.multiply(skew, skew)), 60_000), 100)
    midnight = datetime.combine(day, time(), UTC)
    micros = pc.cast(_index(draw(), 86_400_000_000), pa.duration("us"))
    number = pc.utf8_lpad(pc.cast(pa.array(range(first, first + rows), pa.int64()), pa.string()), 7, "0")
    columns = {
        "transaction_id": pc.binary_join_element_wise(pa.scalar(f"T-{day:%Y%m%d}"), number, "-"),
        "business_date": pa.repeat(pa.scalar(day, pa.date32()), rows),
        "account_id": account,
        "currency": currency,
        "amount": pc.cast(
            pc.multiply(pc.cast(cents, pa.decimal128(19, 0)), pa.scalar(Decimal("0.01"))), pa.decimal128(18, 2)
        ),
        "event_ts": pc.add(pa.scalar(midnight, pa.timestamp("us", tz="UTC")), micros),
        "channel": pa.array(CHANNELS).take(_index(draw(), len(CHANNELS))),
    }
    return pa.table(columns, schema=TRANSACTIONS)


def _spending() -> list[str]:
    """For ten kinds of account (5 USD, 3 EUR, 2 GBP) the currency of each of twenty choices: home 17 times of 20."""
    homes = [CURRENCIES[0]] * 5 + [CURRENCIES[1]] * 3 + [CURRENCIES[2]] * 2
    return [
        home if choice < 17 else CURRENCIES[(CURRENCIES.index(home) + 1 + choice % 2) % 3]
        for home in homes
        for choice in range(20)
    ]


_SPENT = _spending()


def _draws(name: str, rows: int) -> Callable[[], pa.Array]:
    source = random.Random(name)
    return lambda: pc.random(rows, initializer=source.getrandbits(62))


def _index(uniform: pa.Array, size: int) -> pa.Array:
    return pc.cast(pc.floor(pc.multiply(uniform, float(size))), pa.int64())


def _remainder(number: pa.Array, by: int) -> pa.Array:
    return pc.subtract(number, pc.multiply(pc.divide(number, by), by))


def fx_rates() -> pa.Table:
    """US dollars per unit of currency for every day: a slow walk around 1.09 for the euro and 1.27 for the pound."""
    source = random.Random(SEED)
    level = {"USD": 1_000_000, "EUR": 1_091_300, "GBP": 1_272_400}  # millionths
    rows = []
    for day in days(FIRST_DAY, LAST_RATE + timedelta(1)):
        for currency in CURRENCIES:
            if currency != "USD":
                level[currency] += source.randrange(-4_000, 4_001)
            rows.append({"rate_date": day, "currency": currency, "usd_per_unit": Decimal(level[currency]).scaleb(-6)})
    return pa.Table.from_pylist(rows, schema=FX_RATES)


def write_transactions(directory: Path, table: pa.Table, *, files: int = 1, name: str = "part") -> None:
    """The table as that many Parquet files, each visible only when it is whole."""
    directory.mkdir(parents=True, exist_ok=True)
    size = -(-table.num_rows // files)
    for number in range(files):
        hidden = directory / f".{name}-{number:05d}.parquet"
        pq.write_table(table.slice(number * size, size), hidden, compression="zstd")
        hidden.rename(directory / hidden.name.removeprefix("."))


def create_tables(lake: Lake) -> None:
    """The reference table with its rates, and the governed table with every lineage column and no rows."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType

    money, rate, text = DecimalType(18, 2), DecimalType(18, 6), StringType()
    columns = {
        "business_date": DateType(),
        "account_id": text,
        "currency": text,
        "gross": money,
        "fx_rate": rate,
        "revenue_usd": money,
        "event_count": LongType(),
        **dict.fromkeys(LINEAGE, text),
    }
    revenue = Schema(*(NestedField(n, name, kind, required=False) for n, (name, kind) in enumerate(columns.items(), 1)))
    by_date = PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="business_date")
    catalog = lake.catalog()
    for namespace in ("ref", "fin"):
        catalog.create_namespace(namespace)
    catalog.create_table(RATES, FX_RATES, properties={"format-version": "2"}).append(fx_rates())
    catalog.create_table(REVENUE, revenue, partition_spec=PartitionSpec(by_date), properties=TABLE_PROPERTIES)


def generate(root: Path, *, rows_per_day: int = ROWS_PER_DAY) -> int:
    """Make the lake in an empty directory; returns the number of transactions."""
    lake = Lake(root.absolute())
    lake.create()
    create_tables(lake)
    total = 0
    for number, day in enumerate(days(FIRST_DAY, TODAY)):
        rows = rows_per_day * (80 + (number * 13) % 40) // 100  # no two neighbouring days are alike
        write_transactions(lake.transactions_of(day), transactions(day, rows), files=FILES_PER_DAY)
        total += rows
    lake.complete.touch()
    return total


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Generate FinSight's lake.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows-per-day", type=int, default=ROWS_PER_DAY)
    arguments = parser.parse_args()
    total = generate(arguments.directory, rows_per_day=arguments.rows_per_day)
    print(f"{total:,} transactions in {arguments.directory}")


if __name__ == "__main__":
    main()
