"""A subject who is erased in the middle of a campaign on Spark and Iceberg, which reads the table it corrects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from errata.evidence.keys import generate_key_pair
from errata.failpoints import arm
from support.world import PRODUCT_FILE, World

Make = Callable[..., World]
LIST = "lake.privacy.erased"
SALES = (
    PRODUCT_FILE.replace("    partition: day\n", "    partition: day\n    subjects: [account]\n")
    .replace("key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n")
    .replace("rollback_window: 30d}", "rollback_window: 30d, manual: false}")
)
MONTHLY = """
product: fin.monthly
owner: finance
target: {table: lake.fin.monthly, partition: {column: month, grain: month}, subjects: [account]}
transform: {call: "transforms.monthly:build", version: 1.0.0}
inputs:
  days: {table: lake.fin.sales, partition: day, grain: day, subjects: [account]}
publish: {manual: false}
"""
CODE = """
from pyspark.sql import functions as F


def build(ctx, days):
    month = F.date_format("day", "yyyy-MM").alias("month")
    return days.groupBy(month, "account").agg(F.sum("gross").cast("decimal(12,2)").alias("gross"))
"""


@pytest.mark.slow
def test_whoever_is_erased_in_the_middle_of_a_campaign_is_in_no_table_published_after(
    make_world: Make, tmp_path: Path
) -> None:
    """One is erased between intent and commit of the first member, one after it was published; the second reads it."""
    generate_key_pair(tmp_path / "key")
    world = make_world(days=2, product=SALES, project=f'erasure: {{table: {LIST}, key: "{tmp_path / "key"}"}}\n')
    (world.root / "transforms/monthly.py").write_text(CODE)
    (world.root / "products/monthly.yaml").write_text(MONTHLY)
    world.client.close()
    world.open()
    world.client.erase([], reason="the list", as_="bo")
    world.spark.sql(
        "CREATE TABLE lake.fin.monthly (month string, account string, gross decimal(12,2)) USING iceberg "
        "PARTITIONED BY (month)"
    )
    world.spark.sql("INSERT INTO lake.fin.monthly VALUES ('2026-01', 'a0', 1), ('2026-01', 'a1', 1)")
    plan = world.client.plan_campaign(
        "fin.sales", partitions=f"{world.days[0]}..{world.days[-1]}", reason="doubled", as_="ana"
    )
    assert [one.product for one in plan.members] == ["fin.sales", "fin.monthly"]
    world.client.approve_campaign(plan.campaign_id, digest=plan.campaign_digest, as_="bo")
    intents, members = iter(["a1"]), iter(["a2"])
    with (
        arm("publish.after_intent", lambda: world.client.erase(list(intents), reason="request 1", as_="bo")),
        arm("campaign.after_member", lambda: world.client.erase(list(members), reason="request 2", as_="bo")),
    ):
        view = world.client.run_campaign(plan.campaign_id, publish=True, as_="cy")
    assert (view.state, view.exit_code) == ("done", 0), view.problems
    assert {str(row[1]) for row in world.rows()} == {"a0", "a2"}  # a2 asked when it was out: its owner deletes the rows
    monthly = world.spark.sql("SELECT * FROM lake.fin.monthly").collect()
    gross = sum(row[2] for row in world.rows() if row[1] == "a0")
    assert [tuple(row) for row in monthly] == [("2026-01", "a0", gross)]
    assert world.workspace.ledger.audit.verify().ok
