"""The state of every active case at the end of a month, release 2.4.1: the one that was wrong (REG-2071).

A row of a month is computed from that month and the one before, and knows nothing of what came later, so it does not
matter which other months are computed along with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    import errata

CONTRACT = (
    "report_month",
    "case_id",
    "jurisdiction",
    "case_type",
    "zone",
    "opened_at",
    "opened_on",
    "sla_days",
    "paused_days",
    "due_on",
    "due_at",
    "effective_on",
    "days_used",
    "breached_on",
    "new_breach",
)


def build(ctx: errata.Context, case_events: DataFrame, calendar: DataFrame) -> DataFrame:
    """One row per month and case that was opened or carried forward in it."""
    days = numbered(calendar)
    known = as_known_at_month_end(docket(case_events, ctx.partitions), placed(case_events, days))
    return with_deadline(known, days, ctx.config["sla_days"]).select(*CONTRACT)


def local_day(moment: str) -> Column:
    """The date in the jurisdiction at that moment."""
    return F.to_date(F.col(moment))


def numbered(calendar: DataFrame) -> DataFrame:
    """Every day with the number of business days before it and up to it, so that counting them is a subtraction."""
    from pyspark.sql import Window

    one = F.col("is_business_day").cast("int")
    so_far = F.sum(one).over(
        Window.partitionBy("jurisdiction").orderBy("day").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return calendar.select(
        "jurisdiction", "zone", "day", "is_business_day", so_far.alias("up_to"), (so_far - one).alias("before")
    )


def docket(case_events: DataFrame, months: tuple[str, ...]) -> DataFrame:
    """The cases of a month: those opened in it and those the register carried forward into it."""
    is_listed = F.col("event_type").isin("opened", "carried")
    month = F.trunc("event_date", "month")
    return (
        case_events.filter(is_listed & F.date_format(month, "yyyy-MM").isin(*months))
        .select(month.alias("report_month"), "case_id")
        .withColumn("month_after", F.add_months("report_month", 1))
    )


def placed(case_events: DataFrame, days: DataFrame) -> DataFrame:
    """Events with their local day and its numbers; an unknown jurisdiction has none, and the gate stops it."""
    zones = days.groupBy("jurisdiction").agg(F.max("zone").alias("zone"))
    numbers = days.select("jurisdiction", F.col("day").alias("local_day"), "up_to", "before")
    return (
        case_events.join(F.broadcast(zones), on="jurisdiction", how="left")
        .withColumn("local_day", local_day("event_ts"))
        .join(F.broadcast(numbers), on=["jurisdiction", "local_day"], how="left")
    )


def as_known_at_month_end(docket: DataFrame, events: DataFrame) -> DataFrame:
    """One row per month and case, from the events that had happened by the end of the month."""

    def of(kind: str, value: str | Column) -> Column:
        return F.when(F.col("event_type") == kind, value)

    had_happened = F.col("event_date") < F.col("month_after")
    return (
        docket.join(events, on="case_id", how="left")
        .filter(had_happened)
        .groupBy("report_month", "month_after", "case_id", "jurisdiction", "zone")
        .agg(
            F.max(of("opened", F.col("case_type"))).alias("case_type"),
            F.max(of("opened", F.col("event_ts"))).alias("opened_at"),
            F.max(of("opened", F.col("local_day"))).alias("opened_on"),
            F.max(of("opened", F.col("up_to"))).alias("opened_number"),
            F.max(of("decided", F.col("effective_on"))).alias("effective_on"),
            F.count(of("paused", F.lit(1))).alias("paused"),
            F.count(of("resumed", F.lit(1))).alias("resumed"),
            F.coalesce(F.sum(of("paused", F.col("before"))), F.lit(0)).alias("paused_numbers"),
            F.coalesce(F.sum(of("resumed", F.col("before"))), F.lit(0)).alias("resumed_numbers"),
        )
    )


def with_deadline(known: DataFrame, days: DataFrame, sla_days: dict[str, int]) -> DataFrame:
    """Pauses, deadline, duration and breach as of the end of the month."""
    limits = F.create_map(*(F.lit(item) for pair in sorted(sla_days.items()) for item in pair))
    last_day = F.date_add("month_after", -1)
    ends = days.select("jurisdiction", F.col("day").alias("month_after"), F.col("before").alias("end_number"))
    reached = days.select("jurisdiction", F.col("day").alias("measured_on"), F.col("up_to").alias("measured_number"))
    business = days.filter("is_business_day")
    deadlines = business.select("jurisdiction", F.col("up_to").alias("due_number"), F.col("day").alias("due_on"))
    # An escalation that is still pending stops the clock up to the end of the month.
    pending = (F.col("paused") - F.col("resumed")) * F.col("end_number")
    paused_days = F.when(
        F.col("opened_number").isNotNull(), F.col("resumed_numbers") - F.col("paused_numbers") + pending
    )
    is_late = F.col("due_on") < F.col("measured_on")
    is_new = F.trunc("breached_on", "month") == F.col("report_month")
    midnight = F.date_add("due_on", 1).cast("timestamp")
    return (
        known.join(F.broadcast(ends), on=["jurisdiction", "month_after"], how="left")
        .withColumn("paused_days", paused_days.cast("int"))
        .withColumn("sla_days", limits[F.col("case_type")].cast("int"))
        .withColumn("due_number", F.col("opened_number") + F.col("sla_days") + F.col("paused_days"))
        .join(F.broadcast(deadlines), on=["jurisdiction", "due_number"], how="left")
        .withColumn("due_at", F.to_utc_timestamp(midnight, F.col("zone")))
        .withColumn("measured_on", F.least("effective_on", last_day))
        .join(F.broadcast(reached), on=["jurisdiction", "measured_on"], how="left")
        .withColumn("days_used", (F.col("measured_number") - F.col("opened_number") - F.col("paused_days")).cast("int"))
        .withColumn("breached_on", F.when(is_late, F.date_add("due_on", 1)))
        .withColumn("new_breach", F.when(is_new, 1).otherwise(0))
    )
