"""The context of a chunk for its transform, and lineage columns: run, code, inputs and reason of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from errata.model.context import Context
from errata.model.graph.read_rule import rule_of_pin
from errata.model.kafka.outgoing import identify_input
from errata.model.partition import end_of, sort_oldest_first, start_of
from errata.ports.compute import ChunkWork

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def build_context(
    work: ChunkWork,
    quarantine: Callable[..., Any],
    emit: Callable[..., Any],
    deterministic_id: Callable[..., Any],
    stamp: Callable[..., Any],
    recorded: Callable[[], Any] | None = None,
    cut: Callable[[Any], Any] | None = None,
) -> Context:
    """The context passed to the transform; the functions work on the frames of the engine."""
    manifest, grain = work.manifest, work.manifest.target.grain
    partitions = sort_oldest_first(grain, work.chunk.partitions)
    timed = [name for name in partitions if grain.is_time and name != "null"]
    return Context(
        run_id=work.run_id,
        product=manifest.product,
        mode=work.mode,
        clock=datetime.fromisoformat(manifest.as_of),
        partitions=partitions,
        start=start_of(grain, timed[0]) if timed else None,
        end=end_of(grain, timed[-1]) if timed else None,
        config=manifest.code.config,
        version=manifest.code.version,
        lineage=build_lineage(work),
        _deterministic_id=deterministic_id,
        _stamp=stamp,
        _quarantine=quarantine,
        _emit=emit,
        reconstruction=manifest.reconstruct,
        _recorded=recorded,
        _cut=cut,
    )


def build_lineage(work: ChunkWork) -> dict[str, str | None]:
    """Values of all lineage columns for the rows of one chunk."""
    manifest, chunk = work.manifest, work.chunk
    pinned = [(pin, version) for pin in manifest.inputs if (version := identify_input(pin))]
    grain = manifest.target.grain
    # texts of different grains sort in time order too, because a coarser one is the beginning of a finer one
    read = {name for pin in manifest.inputs for name in rule_of_pin(pin, grain).list_reads(chunk.partitions)}
    reads = sort_oldest_first(grain, read or chunk.partitions)
    return {
        "produced_by_run_id": work.run_id,
        "produced_by_transform": manifest.code.call,
        "transform_version": manifest.code.version,
        "input_snapshot_id": ",".join(f"{pin.name}={version}" for pin, version in pinned) or None,
        "input_range_start": reads[0],
        "input_range_end": reads[-1],
        "processing_mode": work.mode.value,
        "reference_data_version": ",".join(
            f"{pin.name}{f'/{pin.version}' if pin.version else ''}@{version}:{pin.reference}"
            for pin, version in pinned
            if pin.reference
        )
        or None,
        "restatement_reason": manifest.reason,
        # the run's clock where no attempt began, so that a trial computed twice is the same
        "produced_at": work.started_at or manifest.as_of,
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
