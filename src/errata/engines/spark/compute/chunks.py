"""Compute one chunk and append it to the run branch: inputs, transform, lineage, output contract, one write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from errata.engines.failures import cause_of, classify_error, comes_from_java
from errata.engines.files.changed_sources import build_source_changed, build_topic_changed
from errata.engines.files.source import FileSource
from errata.engines.kafka.topics import KafkaTopics
from errata.engines.spark.columns import in_scope, partition_name
from errata.engines.spark.compute.lineage_columns import build_context, build_lineage, deterministic_id, stamp
from errata.engines.spark.compute.merge import DELETED, find_merge_violation, mark_deletions, merge_rows
from errata.engines.spark.compute.output_contract import conform_output, find_null_violation
from errata.engines.spark.compute.restore import read_restored_rows
from errata.engines.spark.compute.transforms import load_transform, pickle_by_value
from errata.engines.spark.inputs.access import NO_ACCESS, InputAccess
from errata.engines.spark.inputs.frames import list_pinned_files, read_input_frames
from errata.engines.spark.inputs.prior_rows import PriorRows, read_prior_rows
from errata.engines.spark.inputs.recorded_events import read_recorded
from errata.engines.spark.inputs.topic_records import list_ranges
from errata.engines.spark.measure.aggregates import digest_partitions
from errata.engines.spark.measure.measurer import SparkMeasurer
from errata.engines.spark.runtime.costs import read_job_costs
from errata.engines.spark.runtime.spark_session import SparkRuntime, override_conf
from errata.engines.spark.write.append import SparkWriter
from errata.engines.spark.write.emitted_rows import EmittedRows, write_emitted
from errata.engines.spark.write.quarantine import TransformQuarantine, write_quarantine
from errata.engines.transform_errors import build_transform_error
from errata.errors import EngineError, ErrataError, TransformFailed, UsageError
from errata.failpoints import failpoint
from errata.model.context import Context
from errata.model.graph.read_rule import rule_of_pin
from errata.model.product import Merge
from errata.model.refs import run_branch
from errata.ports.compute import TRIAL, ChunkEngine, ChunkWork

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from errata.ports.measure import Measurer


class SparkChunkEngine:
    """Computes chunks on one Spark session."""

    def __init__(
        self,
        runtime: SparkRuntime,
        writer: SparkWriter,
        sources: FileSource,
        cache: Path,
        ensure_quarantine: Callable[[str], None],
        ensure_emitted: Callable[[str], None],
        topics: KafkaTopics | None = None,
        access: InputAccess = NO_ACCESS,
    ) -> None:
        self._runtime = runtime
        self._writer = writer
        self._sources = sources
        self._cache = cache
        self._ensure_quarantine = ensure_quarantine
        self._ensure_emitted = ensure_emitted
        self._topics = topics
        self._access = access
        self._fates: dict[str, Mapping[str, int]] = {}  # counts of input rows by outcome, by attempt

    def check_sources(self, work: ChunkWork) -> None:
        """Look again at every pinned file and topic that this chunk reads."""
        files = list_pinned_files(work.manifest, work.parts, work.chunk.partitions)
        if problems := self._sources.verify(files):
            raise build_source_changed(work, len(files), problems)
        for pin in work.manifest.inputs:
            if pin.topic is not None and self._topics is not None:
                wanted = rule_of_pin(pin, work.manifest.target.grain).list_reads(work.chunk.partitions)
                ranges = list_ranges(pin, work.parts, wanted)
                if changes := self._topics.find_changes(pin.topic, ranges):
                    raise build_topic_changed(work, pin, ranges, changes)

    def append(self, work: ChunkWork) -> None:
        """Compute the chunk and append it once, marked with the attempt; its Spark jobs run in a group of that name."""
        session = self._runtime.session
        session.sparkContext.setJobGroup(work.attempt, f"chunk {work.chunk.chunk_id}", interruptOnCancel=True)
        if self._runtime.pool is not None:
            session.sparkContext.setLocalProperty("spark.scheduler.pool", self._runtime.pool)
        aside, emitted = TransformQuarantine(work.manifest), EmittedRows(work)
        prior = PriorRows(work.manifest.target.table)
        output = self._compute_output(work, aside, emitted, prior=prior)
        # quarantine first, so that every row is accounted for once the output lands
        fates = self._translate_errors(
            work,
            partial(write_quarantine, session, self._writer, work, aside, self._ensure_quarantine, self._access),
        )
        sent = self._translate_errors(
            work, partial(write_emitted, session, self._writer, emitted, self._ensure_emitted)
        )
        self._fates[work.attempt] = {**fates, **sent}
        failpoint("stage.before_commit")
        started = time.monotonic()
        table, mark = work.manifest.target.staging.table, ("errata.attempt", work.attempt)
        properties = {"errata.run": work.run_id}
        self._translate_errors(
            work, partial(self._writer.append, output, table, run_branch(work.run_id), mark, properties)
        )
        self._fates[work.attempt] = {
            **self._fates[work.attempt],
            **prior.count(),
            "write_ms": round(1000 * (time.monotonic() - started)),
        }
        failpoint("stage.after_commit")

    def _compute_output(
        self,
        work: ChunkWork,
        aside: TransformQuarantine | None = None,
        emitted: EmittedRows | None = None,
        spread: int | None = None,
        prior: PriorRows | None = None,
    ) -> DataFrame:
        manifest = work.manifest
        if manifest.restored is not None:
            session, partitions = self._runtime.session, work.chunk.partitions
            access = self._access.for_list(manifest.erasure)
            return read_restored_rows(session, manifest, manifest.restored, work.parts, partitions, access)
        code = manifest.code
        content = work.parts[code.zip_digest]
        build = self._translate_errors(
            work, partial(load_transform, content, code.zip_digest, code.call, self._cache), calls_transform=True
        )
        inputs = read_input_frames(
            self._runtime.session, manifest, work.parts, work.chunk.partitions, work.earlier, self._access
        )
        if spread is not None:
            inputs = {name: rows.repartition(spread) for name, rows in inputs.items()}
        partitions, target = work.chunk.partitions, manifest.target
        context = build_context(
            work,
            aside or TransformQuarantine(manifest),
            emitted or EmittedRows(work),
            deterministic_id,
            stamp,
            recorded=partial(read_recorded, self._runtime.session, manifest, partitions, self._access, spread),
            cut=lambda frame: frame.where(in_scope(target, partitions)),
        )
        frame = self._translate_errors(work, partial(_call_transform, build, context, inputs), calls_transform=True)
        pickle_by_value()
        lineage = build_lineage(work)
        wanted = {name: lineage[name] for name in manifest.lineage_columns}
        frame, leave_out = stamp(frame, wanted), manifest.has_override("schema")
        if manifest.publish.merge is None:
            return conform_output(frame, manifest.target, may_leave_out=leave_out)
        return self._merge_output(work, frame, prior, may_leave_out=leave_out)

    def _merge_output(
        self, work: ChunkWork, frame: DataFrame, counted: PriorRows | None, *, may_leave_out: bool
    ) -> DataFrame:
        """The rows of the base snapshot in these partitions, with the transform's rows merged in.

        Those of erased subjects are not there any more.
        """
        target, merge = work.manifest.target, work.manifest.publish.merge or Merge()
        changes = self._translate_errors(work, partial(mark_deletions, frame, merge))
        markers = [name for name in changes.columns if name in merge.markers and name not in target.columns]
        changes = conform_output(changes.drop(*markers), target, may_leave_out=may_leave_out, beside=(DELETED,))
        partitions = work.chunk.partitions
        prior = read_prior_rows(self._runtime.session, work.manifest, partitions, self._access, counted)
        return merge_rows(prior, changes, target, merge.version, partitions, work.manifest.classified)

    def explain(self, work: ChunkWork, error: Exception) -> ErrataError:
        """See the port."""
        known = classify_error(error, work.where, self._runtime.exit_code)
        return known or EngineError(
            f"{work.where} failed: {cause_of(error)}",
            state="nothing of this chunk was adopted; main is unchanged",
            hint=f"log: {self._runtime.log}",
        )

    def cost(self, work: ChunkWork) -> Mapping[str, int]:
        """See the port."""
        fates = self._fates.pop(work.attempt, {})
        return {**read_job_costs(self._runtime.session.sparkContext, work.attempt), **fates}

    def digests(self, work: ChunkWork, parallelism: int) -> Mapping[str, str]:
        """See the port. Computes the chunk with other tasks, splits and row order, which must not change the result."""
        target, session = work.manifest.target, self._runtime.session
        columns = sorted(set(target.columns) - set(work.manifest.lineage_columns))
        with override_conf(session, {"spark.sql.shuffle.partitions": str(parallelism)}):
            output = self._compute_output(work, spread=parallelism)
            try:
                found = self._translate_errors(
                    work, partial(digest_partitions, output, target, work.chunk.partitions, columns)
                )
            except UsageError as error:
                # a digest that cannot be computed is a fault of the transform's output, not of a check
                raise TransformFailed(f"{work.where}: {error.message}") from error
        return {name: digest.text for name, digest in found.items()}

    @contextmanager
    def trial(self, work: ChunkWork) -> Iterator[tuple[Measurer, Mapping[str, int]]]:
        """See the port. The output is computed once and cached, because both the gate and the diff read it."""
        target, session = work.manifest.target, self._runtime.session
        output = self._compute_output(work).persist()
        try:
            text = partition_name(target).alias("partition")
            counted = self._translate_errors(work, output.groupBy(text).count().collect)
            rows = {row["partition"]: int(row["count"]) for row in counted}
            yield (
                SparkMeasurer(session, work.parts.__getitem__, unwritten={TRIAL: output}, access=self._access),
                rows,
            )
        finally:
            output.unpersist()

    def _translate_errors(self, work: ChunkWork, act: Callable[[], Any], *, calls_transform: bool = False) -> Any:
        """What the act returns; an error of it is the engine's, or the transform's if that caused it.

        Spark runs the transform's expressions while it writes, so an error of Spark may be the transform's at any time.
        One of Python is so only where the transform is called.
        """
        try:
            return act()
        except ErrataError:
            raise
        except (Exception, SystemExit) as error:
            if broken := find_null_violation(error, work.where) or find_merge_violation(error, work.where):
                raise broken from error
            if known := classify_error(error, work.where, self._runtime.exit_code):
                raise known from error
            is_ours = work.manifest.restored is not None or not (calls_transform or comes_from_java(error))
            if is_ours and isinstance(error, Exception):
                raise self.explain(work, error) from error
            raise build_transform_error(work, error, self._runtime.log, self._runtime.redact) from error

    def cancel(self, work: ChunkWork) -> None:
        """Cancel the attempt's Spark jobs; does nothing if the JVM is gone."""
        with suppress(Py4JError, OSError):
            self._runtime.session.sparkContext.cancelJobGroup(work.attempt)


def _call_transform(build: Callable[..., Any], context: Context, inputs: Mapping[str, DataFrame]) -> DataFrame:
    from pyspark.sql import DataFrame

    made = build(context, **inputs)
    if not isinstance(made, DataFrame):
        raise TypeError(f"the transform returned {type(made).__name__}; expected a DataFrame")
    return made


_conforms: type[ChunkEngine] = SparkChunkEngine
