"""Attest, reconcile and migrate on real Spark and Iceberg: all rows are compared, and main keeps its snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import Differs, ValidationRejected
from support.world import PRODUCT_FILE, TABLE, World, correct_rows

Make = Callable[..., World]
OLD = "lake.fin.old"
MIGRATION = (
    PRODUCT_FILE.replace('files: "raw/day={day}/*.parquet"', f"table: {OLD}")
    .partition("reconcile:")[0]
    .replace("checks:", "lineage_columns: [produced_by_run_id, restatement_reason]\nchecks:")
)
TAKE_OVER = """
from pyspark.sql import functions as F


def build(ctx, raw):
    return raw.withColumn("n", F.col("n") + F.lit(ctx.config.get("more", 0)))
"""


def _check(world: World, kind: str) -> Any:
    plan = world.plan(kind=kind, reason="nightly")
    world.client.run(plan.id, as_="ana")
    return world.client.validate(plan.id, as_="ana")


def _main(world: World) -> list[int]:
    return [entry.snapshot_id for entry in world.table().history()]


@pytest.mark.slow
@pytest.mark.spark
def test_checks_of_main_find_what_is_wrong_and_leave_no_trace_on_it(make_world: Make) -> None:
    """Wrong history differs by both kinds, a published correction is attested by both, and main is only read."""
    world = make_world(days=2)
    before = _main(world)
    with pytest.raises(Differs, match="3 rows with other values in main"):
        _check(world, "attest")
    with pytest.raises(Differs, match="gross"):
        _check(world, "reconcile")
    assert _main(world) == before
    world.to("published")
    after, refs = _main(world), world.refs()
    assert [_check(world, kind).state for kind in ("attest", "reconcile")] == ["attested", "attested"]
    assert (_main(world), world.count_publications()) == (after, 1)
    assert world.refs() == refs


@pytest.mark.spark
def test_a_migration_is_compared_with_its_source_row_by_row(make_world: Make) -> None:
    """The same count with one other value per row does not pass."""
    world = make_world(days=1, product=MIGRATION, transform=TAKE_OVER, history=False)
    columns = "day date, account string, gross decimal(12,2), n bigint"
    world.sql(f"CREATE TABLE {OLD} ({columns}) USING iceberg PARTITIONED BY (day)")
    values = ", ".join(f"(date'{d}', '{a}', {g}, {n}L)" for d, a, g, n in correct_rows(world.root, world.days[0]))
    world.sql(f"INSERT INTO {OLD} VALUES {values}")
    world.to("published", kind="migrate")
    assert world.rows() == world.expected()
    product = world.root / "products/sales.yaml"
    product.write_text(product.read_text().replace("version: 2.0.0", "version: 2.0.1, config: {more: 1}"))
    world.sql(f"DELETE FROM {TABLE}")
    world.open()
    with pytest.raises(ValidationRejected, match="not with the same values"):
        world.to("validated", kind="migrate")
