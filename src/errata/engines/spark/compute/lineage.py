"""Lineage columns: the run, code, inputs and reason that a row came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from errata.model.context import Mode
from errata.model.manifest import Chunk, Manifest
from errata.model.partition import sort_oldest_first, widen_partitions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def build_lineage(run_id: str, manifest: Manifest, chunk: Chunk) -> dict[str, str | None]:
    """Values of all lineage columns for the rows of one chunk."""
    pinned = [pin for pin in manifest.inputs if pin.snapshot_id]
    grain = manifest.target.grain
    ranges = [
        widen_partitions(grain, chunk.partitions, pin.lookback, pin.lookahead)
        for pin in manifest.inputs
        if pin.partition
    ]
    reads = sort_oldest_first(grain, {name for names in ranges for name in names} or chunk.partitions)
    return {
        "produced_by_run_id": run_id,
        "produced_by_transform": manifest.code.call,
        "transform_version": manifest.code.version,
        "input_snapshot_id": ",".join(f"{pin.name}={pin.snapshot_id}" for pin in pinned) or None,
        "input_range_start": reads[0],
        "input_range_end": reads[-1],
        "processing_mode": Mode.BACKFILL.value,
        "reference_data_version": ",".join(
            f"{pin.name}{f'/{pin.version}' if pin.version else ''}@{pin.snapshot_id}:{pin.reference}"
            for pin in pinned
            if pin.reference
        )
        or None,
        "restatement_reason": manifest.reason,
    }


def stamp(frame: DataFrame, values: Mapping[str, str | None]) -> DataFrame:
    """Add these lineage columns to a frame, replacing columns of the same name."""
    from pyspark.sql import functions as F  # noqa: N812  the name every Spark reader knows

    return frame.withColumns({name: F.lit(value).cast("string") for name, value in values.items()})


def deterministic_id(*columns: str) -> Column:
    """A 64-digit id that depends only on these columns; NULL and the empty string differ."""
    from pyspark.sql import functions as F  # noqa: N812  the name every Spark reader knows

    def tagged(name: str) -> Any:
        text = F.col(name).cast("string")
        return F.when(text.isNull(), F.lit("n")).otherwise(
            F.concat(F.lit("v"), F.length(text).cast("string"), F.lit(":"), text)
        )

    return F.sha2(F.concat(*[tagged(name) for name in columns]), 256)
