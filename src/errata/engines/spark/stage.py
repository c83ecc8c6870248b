"""Compute one chunk and append it to the run branch: inputs, transform, output contract, lineage, one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.engines.files.source import FileSource
from errata.engines.spark.columns import in_partitions, table_name
from errata.engines.spark.contract import conform
from errata.engines.spark.inputs import frames, pinned_files
from errata.engines.spark.lineage import deterministic_id, lineage_values, stamp
from errata.engines.spark.session import SparkRuntime
from errata.engines.spark.transforms import load_transform, ship
from errata.errors import ChunkError, EngineError, SourceChanged, TransformFailed
from errata.executor.ports import ChunkEngine, ChunkWork
from errata.failpoints import failpoint
from errata.model.context import Context, Mode
from errata.model.manifest import TargetPin
from errata.model.partition import fold_text, oldest_first, shift, start_of
from errata.model.refs import run_branch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkChunks"]

# one task per 64 MB of output instead of Iceberg's 384 MB: a typical chunk would otherwise be written by one core
_WRITE_OPTIONS = {"fanout-enabled": "false", "advisory-partition-size": str(64 * 1024 * 1024)}


class SparkChunks:
    """Chunks on one Spark session."""

    def __init__(self, runtime: SparkRuntime, sources: FileSource, cache: Path) -> None:
        self._runtime = runtime
        self._sources = sources
        self._cache = cache

    def check_sources(self, work: ChunkWork) -> None:
        """Re-stat every pinned file this chunk reads."""
        files = pinned_files(work.manifest, work.parts, work.chunk.partitions)
        if problems := self._sources.verify(files):
            shown = "\n".join(f"  {problem}" for problem in problems[:20])
            raise SourceChanged(
                f"{len(problems)} of {len(files)} source files of chunk {work.chunk.chunk_id} are not as planned:\n"
                + shown,
                state="nothing of this chunk was staged; main is unchanged",
                hint=f"restore the files and errata retry {work.run_id}, or plan again with --supersede {work.run_id}",
                files=problems,
            )

    def append(self, work: ChunkWork) -> None:
        """One append, named after the attempt; Spark jobs run in a group of that name."""
        session = self._runtime.session
        session.sparkContext.setJobGroup(work.attempt, f"chunk {work.chunk.chunk_id}", interruptOnCancel=True)
        output = self._output(work)
        failpoint("stage.before_commit")
        branch = f"{table_name(work.manifest.target.table)}.`branch_{run_branch(work.run_id)}`"
        writer = output.writeTo(branch).option("snapshot-property.errata.attempt", work.attempt)
        writer = writer.option("snapshot-property.errata.run", work.run_id)
        for key, value in _WRITE_OPTIONS.items():
            writer = writer.option(key, value)
        self._blaming_the_chunk(work, writer.append)
        failpoint("stage.after_commit")

    def _output(self, work: ChunkWork) -> DataFrame:
        manifest = work.manifest
        code = manifest.code
        build = load_transform(work.parts[code.zip_digest], code.zip_digest, code.call, self._cache)
        inputs = frames(self._runtime.session, manifest, work.parts, work.chunk.partitions)
        frame = self._blaming_the_chunk(work, partial(build, context_for(work), **inputs))
        ship()
        lineage = lineage_values(work.run_id, manifest, work.chunk)
        wanted = {name: lineage[name] for name in manifest.lineage_columns}
        return conform(stamp(frame, wanted), manifest.target)

    @staticmethod
    def _blaming_the_chunk(work: ChunkWork, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except ChunkError:
            raise
        except (Exception, SystemExit) as error:
            # a dead gateway is not the transform's fault: let it through as it is, the attempt is lost
            if type(error).__name__ in ("Py4JNetworkError", "ConnectionRefusedError"):
                raise
            grain = work.manifest.target.grain
            if "CommitFailedException" in str(error):
                raise EngineError(
                    f"chunk {work.chunk.chunk_id} was computed, but other commits kept it from the run branch",
                    state="nothing of this chunk was adopted; main is unchanged",
                    hint=f"errata retry {work.run_id}; raise commit.retry.num-retries of {work.manifest.target.table}",
                ) from error
            raise TransformFailed(
                f"chunk {work.chunk.chunk_id} ({fold_text(grain, work.chunk.partitions)}) failed in "
                f"{work.manifest.code.call}: {_cause(error)}",
                state="nothing of this chunk was staged; main is unchanged",
                chunk_id=work.chunk.chunk_id,
                partitions=list(work.chunk.partitions),
            ) from error

    def cancel(self, work: ChunkWork) -> None:
        """Stop the attempt's Spark jobs."""
        self._runtime.session.sparkContext.cancelJobGroup(work.attempt)

    def copy_rows(self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], branch: str) -> None:
        """Rows of a snapshot as new files on a branch: how a partition with delete files is brought back."""
        session = self._runtime.session
        rows = session.read.option("versionAsOf", snapshot_id).table(table_name(target.table))
        rows = rows.where(in_partitions(target.column, target.column_type, target.grain, partitions))
        writer = rows.writeTo(f"{table_name(target.table)}.`branch_{branch}`")
        writer.option("snapshot-property.errata.rewrite", branch).options(**_WRITE_OPTIONS).append()


def context_for(work: ChunkWork) -> Context:
    """What the transform of this attempt is told."""
    manifest, grain = work.manifest, work.manifest.target.grain
    partitions = oldest_first(grain, work.chunk.partitions)
    timed = [name for name in partitions if grain.is_time and name != "null"]
    return Context(
        run_id=work.run_id,
        product=manifest.product,
        mode=Mode.BACKFILL,
        clock=datetime.fromisoformat(manifest.as_of),
        partitions=partitions,
        start=start_of(grain, timed[0]) if timed else None,
        end=start_of(grain, shift(grain, timed[-1], 1)) if timed else None,
        config=manifest.code.config,
        version=manifest.code.version,
        lineage=lineage_values(work.run_id, manifest, work.chunk),
        _deterministic_id=deterministic_id,
        _stamp=stamp,
    )


def _cause(error: BaseException) -> str:
    """The first line that says what went wrong, without Java's stack."""
    text = str(getattr(error, "desc", "") or error)
    if java := getattr(error, "java_exception", None):
        while java.getCause() is not None:
            java = java.getCause()
        text = str(java.toString())
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return f"{type(error).__name__}: {first}" if java is None else first


_conforms: type[ChunkEngine] = SparkChunks
