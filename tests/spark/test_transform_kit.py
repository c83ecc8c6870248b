"""Checks of transforms with Spark: the guide's example as printed, and what they find in frames and plans."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark reader knows

from errata.testing.transforms import TransformCase
from unit.testing.test_guide import example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = ["2026-01-01", "2026-01-02"]
RAW = [{"day": date(2026, 1, day), "n": n} for day in (1, 2) for n in range(4)]


def case(spark: SparkSession, build: Callable[..., Any]) -> TransformCase:
    return TransformCase(build, {"raw": RAW}, DAYS, column="day", read_by={"raw": "day"}, spark=spark)


def test_the_example_of_the_guide_passes(spark: SparkSession) -> None:
    """As printed."""
    example(0)["test_daily_revenue"](spark)


def test_chance_in_a_plan_is_found_twice(spark: SparkSession) -> None:
    """Its rows differ from run to run, and its name is in the plan."""

    def build(_ctx: Any, raw: Any) -> Any:
        return raw.withColumn("x", F.rand())

    with pytest.raises(AssertionError, match="only in run 1"):
        case(spark, build).assert_deterministic()
    with pytest.raises(AssertionError, match=r"uses rand\(\) in its plan"):
        case(spark, build).assert_no_side_effects()


def test_a_write_by_spark_is_found(spark: SparkSession, tmp_path: Any) -> None:
    """By a frame, and by a statement."""

    def by_frame(_ctx: Any, raw: Any) -> Any:
        raw.write.mode("overwrite").parquet(str(tmp_path / "out"))
        return raw

    def by_statement(_ctx: Any, raw: Any) -> Any:
        raw.sparkSession.sql("CREATE TEMPORARY VIEW seen_by_kit AS SELECT 1 AS n")
        return raw.crossJoin(raw.sparkSession.sql("SELECT 2 AS two"))

    with pytest.raises(AssertionError, match=r"uses DataFrame\.write"):
        case(spark, by_frame).assert_no_side_effects()
    with pytest.raises(AssertionError) as found:
        case(spark, by_statement).assert_no_side_effects()
    assert "runs the statement CREATE TEMPORARY VIEW" in str(found.value)
    assert "SELECT 2" not in str(found.value)
