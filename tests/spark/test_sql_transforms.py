"""SQL transforms on Spark: inputs by name, values of the context, parallel chunks, and errors with their line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

import pytest

import errata
from errata.errors import RunFailed, TransformFailed
from errata.testing.transforms import TransformCase
from support.world import PRODUCT, PRODUCT_FILE, World
from support.worlds import WorldAt

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Make = Callable[..., World]
ONE_DAY = "1"  # bytes: every day is a chunk of its own
SQL_PRODUCT = PRODUCT_FILE.replace('call: "transforms.sales:build"', "sql: transforms/sales.sql")
RATES = "lake.fin.rates"
TWO_INPUTS = SQL_PRODUCT.replace("version: 2.0.0", "version: 2.0.0, config: {least: 0}").replace(
    "    partition: day\n", f"    partition: day\n    lookback: 1d\n  rates: {{table: {RATES}}}\n"
)
QUERY = """-- totals by day and account; a name of the query hides an input
WITH raw AS (
  SELECT * FROM raw
  WHERE array_contains(:partitions, CAST(day AS STRING))  -- the frame has the day before as well
)
SELECT
  `Raw`.day, account,
  CAST(sum(amount * rate) AS DECIMAL(12, 2)) AS gross,
  count(*) AS n
FROM `raw` JOIN rates ON rates.account_group = substr(raw.account, 1, 1)
WHERE raw.day >= :start AND raw.day < :end
  AND EXISTS (SELECT 1 FROM rates AS r WHERE r.rate > :config_least)
GROUP BY ALL;
"""


def test_a_query_over_two_inputs_corrects_the_table(make_world: Make) -> None:
    """Chunks in parallel, each with its own days under the same names; determinism is proven on the way."""
    world = make_world(days=3, chunk_bytes=ONE_DAY, product=TWO_INPUTS, transform=QUERY)
    world.sql(f"CREATE TABLE {RATES} (account_group STRING, rate DECIMAL(4, 2)) USING iceberg")
    world.sql(f"INSERT INTO {RATES} VALUES ('a', 1)")
    assert world.client.check() == ()
    days = f"{world.days[1]}..{world.days[-1]}"
    view = world.client.try_out(PRODUCT, world.days[1], as_="ana")
    assert (view.rows, view.transform) == (3, "transforms/sales.sql 2.0.0")
    run = world.to("planned", days, prove_determinism=1)
    (world.root / "transforms/sales.sql").write_text("SELECT 'edited after the plan'")
    for state in ("approved", "staged", "validated", "published"):
        world.step(state, run)
    assert world.rows() == sorted([*world.wrong(world.days[:1]), *world.expected(world.days[1:])])
    assert [view.name for view in world.spark.catalog.listTables() if view.isTemporary] == []


def test_a_query_sees_an_input_as_its_eras_make_it(make_world: Make) -> None:
    """The declared columns, under the names of today."""
    declared = SQL_PRODUCT.replace(
        "    partition: day\n",
        "    partition: day\n    columns: {day: date, who: string, amount: 'decimal(12,2)'}\n"
        "    eras: [{rename: {account: who}}]\n",
    )
    query = (
        "SELECT day, who AS account, CAST(sum(amount) AS DECIMAL(12, 2)) AS gross, count(*) AS n FROM raw GROUP BY ALL"
    )
    world = make_world(days=1, product=declared, transform=query)
    assert world.client.check() == ()
    world.to("published")
    assert world.rows() == world.expected()


BROKEN = {
    "a value": ("CAST(1 / (count(*) - count(account)) AS BIGINT) AS n", "DIVIDE_BY_ZERO"),
    "a function": ("no_such_function(1) AS n", "UNRESOLVED_ROUTINE"),
    "a type": ("sum(account > date'2026-01-01') AS n", "DATATYPE_MISMATCH"),
}


@pytest.mark.parametrize("name", ["a value", "a function", pytest.param("a type", marks=pytest.mark.slow)])
def test_an_error_of_the_query_has_the_line_of_its_file(world_at: WorldAt, name: str) -> None:
    """What only Spark finds, when it analyses the query or in a task; the way on is a new plan."""
    text, cause = BROKEN[name]
    query = f"SELECT day, account,\n  CAST(sum(amount) AS DECIMAL(12, 2)) AS gross,\n  {text}\nFROM raw GROUP BY ALL"
    world, run = world_at("approved", days=1, product=SQL_PRODUCT, transform=query)
    with pytest.raises(RunFailed) as failed:
        world.client.run(run, as_="ana")
    failure = failed.value.fields["run"].failures[0]
    assert failure["code"] == "transform-failed"
    assert "failed in transforms/sales.sql:3: " in failure["error"]
    assert cause in failure["error"]
    assert failure["error"].endswith(f"\n  transforms/sales.sql:3\n      {text}")
    assert f"--supersede {run}" in str(failed.value.hint)
    with pytest.raises(TransformFailed, match=r"the trial of 2026-01-01 failed in transforms/sales\.sql:3") as tried:
        world.client.try_out(PRODUCT, world.days[0], as_="ana")
    assert tried.value.fields["frames"] == [{"file": "transforms/sales.sql", "line": 3, "function": "", "source": text}]


def test_the_kit_checks_a_query_and_a_live_job_calls_it(spark: SparkSession, tmp_path: Path) -> None:
    """As a function of a context and frames."""
    place = tmp_path / "daily.sql"
    place.write_text(
        "SELECT day, sum(n) AS n FROM raw WHERE array_contains(:partitions, CAST(day AS STRING)) GROUP BY day"
    )
    raw = [{"day": date(2026, 1, day), "n": n} for day in (1, 2) for n in range(4)]
    days, build = ["2026-01-01", "2026-01-02"], errata.sql_transform(str(place))
    case = TransformCase(build, {"raw": raw}, days, column="day", key=("day",), read_by={"raw": "day"}, spark=spark)
    case.assert_sound()
    case.assert_totals({"2026-01-02": {"sum(n)": 6}})
