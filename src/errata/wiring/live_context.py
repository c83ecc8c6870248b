"""Context for the daily live job: the same transform and config in mode LIVE, without a run or a ledger write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from errata.engines.spark.compute.lineage_columns import deterministic_id, stamp
from errata.engines.spark.compute.sql_transforms import SqlTransform
from errata.engines.spark.inputs.row_rules import split_rows
from errata.errors import NotFound
from errata.model.context import Context, Mode
from errata.model.partition import expand_range, start_of
from errata.model.product import LINEAGE_COLUMNS
from errata.project import load_project


def read_sql_transform(path: str) -> SqlTransform:
    """The query in this file, to be called like a Python transform."""
    try:
        return SqlTransform(Path(path).read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{path} cannot be read: {error}; expected a file with one Spark SQL query") from error


def live_context(
    project: str,
    product: str,
    interval: tuple[str, str],
    quarantine: Callable[[Any, str], None] | None = None,
    emit: Callable[[str, Any], None] | None = None,
) -> Context:
    """The context that a governed run would pass to the transform, for partitions ``[interval[0], interval[1])``.

    ``quarantine`` is called with a frame of rows and the reason whenever the transform quarantines rows. ``emit`` is
    called with the name of a sink and a frame whenever the transform emits rows to one.
    """
    loaded = load_project(project)
    found = loaded.products.get(product)
    if found is None:
        raise NotFound(f"product {product!r} is not in {loaded.name}; expected one of {', '.join(loaded.products)}")
    grain = found.target.grain
    partitions = expand_range(grain, *interval)
    clock = datetime.now(UTC)
    lineage: dict[str, str | None] = dict.fromkeys(LINEAGE_COLUMNS) | {
        "produced_by_transform": found.transform.call,
        "transform_version": found.transform.version,
        "input_range_start": partitions[0],
        "input_range_end": partitions[-1],
        "processing_mode": Mode.LIVE.value,
        "produced_at": clock.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return Context(
        run_id=None,
        product=product,
        mode=Mode.LIVE,
        clock=clock,
        partitions=partitions,
        start=start_of(grain, interval[0]),
        end=start_of(grain, interval[1]),
        config=found.transform.config,
        version=found.transform.version,
        lineage={name: lineage[name] for name in found.lineage_columns},
        _deterministic_id=deterministic_id,
        _stamp=stamp,
        _quarantine=partial(split_rows, quarantine) if quarantine else None,
        _emit=emit,
    )
