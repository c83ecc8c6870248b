"""Events of the hours in which the app recorded none of three actions, from logs that did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from errata import reconstruct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    import errata

ROUTES = {"GET /product": "product_view", "POST /cart": "add_to_cart", "POST /checkout": "checkout_start"}
PREFETCH = {"GET /product?prefetch": "product_view"}


def build(ctx: errata.Context, retry: DataFrame, api: DataFrame, orders: DataFrame) -> DataFrame:
    """Recorded events as they are, and the missing ones by the rules of the product."""
    return reconstruct.rebuild(
        ctx,
        {
            "retry": retry,
            "api": read_requests(api, ROUTES | (PREFETCH if ctx.config["prefetches"] else {})),
            "orders": read_checkouts(orders),
        },
    )


def read_requests(api: DataFrame, routes: dict[str, str]) -> DataFrame:
    """The request that the app sends for an action. The log has the id of the event, where its module was loaded."""
    actions = F.create_map(*[F.lit(text) for pair in routes.items() for text in pair])
    known = api.withColumn("action", actions[F.col("route")]).where(F.col("action").isNotNull())
    return known.withColumn("event_id", F.col("client_event_id"))


def read_checkouts(orders: DataFrame) -> DataFrame:
    """Nobody orders without a checkout, which begins about 40 seconds before."""
    begun = (F.col("ordered_at") - F.expr("INTERVAL 40 SECONDS")).alias("ts")
    return orders.select(
        "order_id", "user_id", "product_id", begun, F.lit("checkout_start").alias("action"), "ordered_at"
    )
