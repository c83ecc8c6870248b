"""The guide of change data capture: its files, on the recorded story of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from errata.wiring import build_client, open_workspace
from support.guides import list_steps
from support.story import STORY, read_marks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.wiring.engines import ProjectEngines

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_products_of_the_guide_give_what_the_database_held(base_spark: SparkSession, tmp_path: Path) -> None:
    """Both the state and the bootstrap, with every column of the guide."""
    for path, text in list_steps("change-data-capture.md"):
        if path != "$":
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, "utf-8")
    for folder in (".errata", "lake"):
        (tmp_path / folder).mkdir()
    workspace = open_workspace(tmp_path, spark=base_spark)
    client, spark = build_client(workspace), cast("ProjectEngines", workspace.engines).runtime.session
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    for table in ("orders", "orders_as_of"):
        columns = "day date, id bigint, account string, amount decimal(12,2), note string"
        spark.sql(f"CREATE TABLE lake.shop.{table} ({columns}) USING iceberg PARTITIONED BY (day)")
    for name in ("orders", "transactions"):
        client.import_files(str(STORY / f"{name}.json.gz"), name)
    mark = read_marks()[-1]
    expected = sorted((int(key), row[0], row[1], row[5]) for key, row in mark.rows.items())
    for product, kind in (("shop.orders_as_of", "restate"), ("shop.orders", "bootstrap")):
        plan = client.plan(product, partitions="2026-01-01..2026-01-03", kind=kind, reason="first load")
        run = str(plan.id)
        client.approve(run, digest=plan.digest)
        client.run(run)
        client.validate(run)
        client.publish(run)
        rows = spark.sql(f"SELECT id, account, string(amount), note FROM lake.{product}").collect()
        assert sorted(map(tuple, rows)) == expected, product
    client.close()
