"""What FinSight's scheduler runs every day: the product's own transform, its lineage columns, one write.

The history and the live job share this path, so that the table looks as the daily job leaves it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from examples.finsight.lake import CATALOG, RATES, Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import errata

PRODUCT = "fin.daily_revenue"


@dataclass(frozen=True, slots=True)
class Release:
    """One version of the transform, as deployed on some days."""

    version: str
    build: Callable[..., DataFrame]


def load_release(path: Path, version: str) -> Release:
    """The transform in that file."""
    spec = importlib.util.spec_from_file_location(f"finsight_release_{version.replace('.', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Release(version, module.build)


def context(project: Path, first: date, last: date) -> errata.Context:
    """The ``ctx`` of a live job: no run, and nothing written to a ledger."""
    import errata

    after = last + timedelta(1)
    return errata.live_context(str(project), PRODUCT, (first.isoformat(), after.isoformat()))


def revenue(
    spark: SparkSession, release: Release, ctx: errata.Context, raw: Sequence[Path], *, run_id: str, rates: str
) -> DataFrame:
    """The rows of these raw files, with lineage. ``run_id`` may contain ``{business_date}``; ``rates`` is a version."""
    from pyspark.sql import functions as F  # noqa: N812

    transactions = spark.read.parquet(*(str(path) for path in raw))
    built = release.build(ctx, transactions, spark.table(f"{CATALOG}.{RATES}"))
    day = F.col("business_date").cast("string")
    # The rest is the same for every live job; these the job knows better.
    own = {
        "produced_by_run_id": F.replace(F.lit(run_id), F.lit("{business_date}"), day),
        "transform_version": F.lit(release.version),
        "input_range_start": day,
        "input_range_end": day,
        "reference_data_version": F.lit(f"fx_rates@{rates}"),
    }
    stamped: DataFrame = ctx.with_lineage(built)
    return stamped.withColumns(own)


def rates_version(lake: Lake) -> str:
    """The snapshot of the rates that a job reads now."""
    current = lake.catalog().load_table(RATES).current_snapshot()
    assert current is not None
    return str(current.snapshot_id)
