"""Value per customer and day, release 2.0.0; the nightly job and every backfill call this same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import errata

FEATURES = ("direct_orders", "largest_order", "margin_rate")  # new in 2.0.0, for the churn model
CONTRACT = ("event_date", "customer_id", "orders", "revenue", "cost", "margin", *FEATURES)
DIRECT = "direct"  # the campaign of an order that no touch came before


def build(ctx: errata.Context, events: DataFrame, campaigns: DataFrame) -> DataFrame:  # noqa: ARG001 - the contract
    """Orders, revenue, what the campaigns take of it, what is left, and three features of the day."""
    fee = F.bround(F.col("amount") * F.col("share"), 2)
    revenue, cost = F.sum("amount").cast("decimal(18,2)"), F.sum(fee).cast("decimal(18,2)")
    direct = F.count_if(F.col("campaign_id") == DIRECT)
    rate = F.round(F.col("margin") / F.col("revenue"), 4).cast("decimal(9,4)")
    return (
        attributed(events)
        .join(F.broadcast(campaigns), on="campaign_id", how="left")
        .groupBy("event_date", "customer_id")
        .agg(
            F.count(F.lit(1)).alias("orders"),
            revenue.alias("revenue"),
            cost.alias("cost"),
            direct.alias("direct_orders"),
            F.max("amount").alias("largest_order"),
        )
        .withColumn("margin", (F.col("revenue") - F.col("cost")).cast("decimal(18,2)"))
        .withColumn("margin_rate", rate)
        .select(*CONTRACT)
    )


def attributed(events: DataFrame) -> DataFrame:
    """Orders, each with the campaign of the customer's last touch of that day before it."""
    until_now = (
        Window.partitionBy("event_date", "customer_id")
        .orderBy("event_ts", "event_id")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    last_touch = F.last("campaign_id", ignorenulls=True).over(until_now)
    is_order = F.col("event_type") == "order"
    return events.withColumn("campaign_id", F.coalesce(last_touch, F.lit(DIRECT))).where(is_order)
