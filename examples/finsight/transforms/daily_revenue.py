"""Daily revenue in US dollars, release 2.4.1; the daily job and every backfill call this same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    import errata

CONTRACT = ("business_date", "account_id", "currency", "gross", "fx_rate", "revenue_usd", "event_count")
ROUNDINGS = {"half_even": F.bround, "half_up": F.round}


def build(ctx: errata.Context, transactions: DataFrame, fx_rates: DataFrame) -> DataFrame:
    """Revenue per business date, account and currency."""
    rounded = ROUNDINGS[ctx.config["rounding"]]
    revenue_usd = rounded(F.col("gross") * F.col("fx_rate"), 2)
    return (
        per_account(transactions)
        .join(one_rate_per_day(fx_rates), on=["business_date", "currency"], how="left")
        .withColumn("fx_rate", F.col("usd_per_unit"))
        .withColumn("revenue_usd", revenue_usd.cast("decimal(18,2)"))
        .select(*CONTRACT)
    )


def per_account(transactions: DataFrame) -> DataFrame:
    """Transactions added up; the sum keeps the cents exact."""
    return transactions.groupBy("business_date", "account_id", "currency").agg(
        F.sum("amount").cast("decimal(18,2)").alias("gross"),
        F.count(F.lit(1)).alias("event_count"),
    )


def one_rate_per_day(fx_rates: DataFrame) -> DataFrame:
    """Rates by business date and currency; a second rate for one of them fails the job instead of doubling rows."""
    is_unique = F.col("rates") == 1
    return (
        fx_rates.groupBy(F.col("rate_date").alias("business_date"), "currency")
        .agg(F.max("usd_per_unit").alias("usd_per_unit"), F.count(F.lit(1)).alias("rates"))
        .withColumn("usd_per_unit", F.when(is_unique, F.col("usd_per_unit")).otherwise(_duplicate_rate()))
        .drop("rates")
    )


def _duplicate_rate() -> Column:
    which = F.concat_ws(" ", F.col("business_date").cast("string"), F.col("currency"))
    return F.raise_error(F.concat(F.lit("more than one FX rate for "), which)).cast("decimal(18,6)")
