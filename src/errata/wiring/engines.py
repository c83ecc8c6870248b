"""The adapters of one project, each created on first use: metadata first, a JVM or Spark only when needed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.canonical import digest_of
from errata.errors import SetupError
from errata.ledger import Ledger
from errata.model.manifest import Code, Manifest, TargetPin
from errata.model.product import Product, Project
from errata.wiring.consumer_engines import ConsumerEngines
from errata.workspace import Engines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.engines.hooks.probes import SignalProbes
    from errata.engines.iceberg.commits.java import JavaIceberg
    from errata.engines.iceberg.commits.publish import IcebergPublishing
    from errata.engines.iceberg.commits.side_tables import IcebergSideTables
    from errata.engines.iceberg.commits.staging import IcebergStaging
    from errata.engines.spark.compute.chunks import SparkChunkEngine
    from errata.engines.spark.inputs.access import InputAccess
    from errata.engines.spark.measure.measurer import SparkMeasurer
    from errata.engines.spark.runtime.spark_session import SparkRuntime
    from errata.engines.spark.write.append import SparkWriter
    from errata.engines.spark.write.rewrite import SparkRewriter
    from errata.engines.spark.write.side_tables import SparkSideTables
    from errata.jars import Jar
    from errata.model.product.throttle import Throttle
    from errata.ports.change_logs import ChangeLogReader
    from errata.ports.clusters import Cluster
    from errata.ports.erasure import ErasedSubjects, SubjectSearch, Suppressions
    from errata.ports.outgoing_rows import EmittedTable
    from errata.ports.tables import (
        HistoryReader,
        OutsideReader,
        QuarantineTable,
        RowReader,
        TagKeeper,
    )


class ProjectEngines(ConsumerEngines):
    """The adapters of one project, each created on first use."""

    def __init__(self, project: Project, ledger: Ledger, spark: SparkSession | None = None) -> None:
        super().__init__(project, ledger)
        self._spark = spark

    @property
    def log(self) -> Path:
        """Log file for the output of Java and Spark."""
        return Path(self._project.root) / ".errata" / "logs" / f"spark-{datetime.now(UTC):%Y%m%d}.log"

    def close(self) -> None:
        """Close the catalog connections, if any; the JVM ends with the process."""
        if "catalogs" in self.__dict__:
            self.catalogs.close()
        if "runtime" in self.__dict__:
            self.runtime.close()

    def start_early(self, *, session: bool = True) -> None:
        """Start the JVM, and Spark unless ``session`` is false, in the background."""
        self.runtime.start_early(session=session)

    @property
    def jars(self) -> tuple[Jar, ...]:
        """The jars that this project's catalogs and storage need."""
        from errata.jars import find_required_groups, list_jars

        return list_jars(*find_required_groups(self._project))

    @property
    def available_jars(self) -> Mapping[str, str]:
        """See the port: all groups, because a product that was changed since may have needed others."""
        from errata.jars import load_jar_groups

        return {jar.coordinate: jar.sha256 for group in load_jar_groups().values() for jar in group}

    @cached_property
    def pins(self) -> TagKeeper:
        """Tags, without a JVM."""
        from errata.engines.iceberg.metadata.tags import IcebergTags

        return IcebergTags(self.catalogs)

    @cached_property
    def history(self) -> HistoryReader:
        """Commits of tables, without a JVM."""
        from errata.engines.iceberg.metadata.history import IcebergHistory

        return IcebergHistory(self.catalogs)

    @cached_property
    def rows(self) -> RowReader:
        """Single rows, without a JVM."""
        from errata.engines.iceberg.metadata.rows import IcebergRowReader

        return IcebergRowReader(self.catalogs)

    @cached_property
    def outside(self) -> OutsideReader:
        """Comparison of files outside a candidate's scope, without a JVM."""
        from errata.engines.iceberg.metadata.untouched import IcebergOutsideReader

        return IcebergOutsideReader(self.catalogs)

    @cached_property
    def quarantine(self) -> QuarantineTable:
        """Quarantine tables, without a JVM."""
        from errata.engines.iceberg.metadata.quarantine import IcebergQuarantine

        return IcebergQuarantine(self.catalogs)

    @cached_property
    def emitted(self) -> EmittedTable:
        """Tables of rows that runs emit for topics, without a JVM."""
        from errata.engines.iceberg.metadata.emitted_tables import IcebergEmitted

        return IcebergEmitted(self.catalogs)

    @cached_property
    def suppressions(self) -> Suppressions:
        """Suppression of erased subjects; empty if no product names subjects."""
        subjects: dict[str, tuple[str, ...]] = {}
        for product in self._project.products.values():
            if product.names_subjects:
                known = subjects.get(product.target.table, ())
                subjects[product.target.table] = tuple(dict.fromkeys((*known, *product.target.subjects)))
        if not subjects:
            return _NoSuppressions()
        from errata.engines.spark.measure.erasure import SparkSuppressions

        return SparkSuppressions(
            self.erased, subjects, lambda: self.runtime.session, self._access, self._ledger.parts.get
        )

    @cached_property
    def subject_search(self) -> SubjectSearch:
        """Searches tables for given subjects, without a JVM."""
        from errata.engines.iceberg.metadata.subject_search import IcebergSubjectSearch

        return IcebergSubjectSearch(self.catalogs)

    @cached_property
    def erased(self) -> ErasedSubjects:
        """The list of erased subjects, without a JVM."""
        from errata.engines.iceberg.metadata.erasure_list import IcebergErasureList

        settings = self._project.erasure
        if settings is None:
            raise SetupError(
                "there is no list of erased subjects; expected erasure in errata.yaml",
                hint="erasure: {table: lake.privacy.erased, key: …} in errata.yaml",
            )

        @cache
        def key() -> bytes:
            from errata.evidence.keys import derive_hashing_key, load_signing_key

            return derive_hashing_key(load_signing_key(settings.key, Path(self._project.root), "erasure.key"))

        return IcebergErasureList(self.catalogs, settings.table, key)

    def check_transform(self, product: Product, *, may_leave_out: bool = False) -> None:
        """See the port."""
        from errata.wiring.transform_problems import refuse_broken_transform

        refuse_broken_transform(self._project, product, self.tables, may_leave_out=may_leave_out)

    def code(self, product: Product) -> tuple[Code, bytes]:
        """The project's current code: its description, and the zip."""
        from errata._version import __version__
        from errata.project.code import compute_lock_digest, read_git_state, zip_code

        transform = product.transform
        sql = transform.call if transform.is_sql else None
        content, digest = zip_code(self._project.root, sql)
        commit, dirty = read_git_state(self._project.root, sql)
        code = Code(
            call=transform.call,
            version=transform.version,
            config=transform.config,
            zip_digest=digest,
            config_digest=digest_of(transform.config),
            lock_digest=compute_lock_digest(self._project.root),
            jars={jar.coordinate: jar.sha256 for jar in self.jars},
            git_commit=commit,
            git_dirty=dirty,
            errata_version=__version__,
        )
        return code, content

    @cached_property
    def runtime(self) -> SparkRuntime:
        """The JVM and the Spark session, each started on first use."""
        from errata.engines.spark.runtime.jvm import class_path, is_submitted
        from errata.engines.spark.runtime.spark_session import SparkRuntime
        from errata.jars import require_jars
        from errata.jars.shipped import require_shipped

        brought = self._spark is not None or is_submitted()
        runtime = SparkRuntime(self._project, () if brought else require_jars(jars=self.jars), self.log, self._spark)
        if self._spark is None and is_submitted():
            require_shipped(self.jars, class_path(runtime.gateway))
        return runtime

    @cached_property
    def java(self) -> JavaIceberg:
        """Iceberg's Java API in the JVM."""
        from errata.engines.iceberg.commits.java import JavaIceberg

        return JavaIceberg(self.runtime.gateway, self._project.catalogs, self.runtime.hadoop)

    @cached_property
    def staging(self) -> IcebergStaging:
        """Run branches and candidates."""
        from errata.engines.iceberg.commits.staging import IcebergStaging

        return IcebergStaging(self.java)

    @cached_property
    def publishing(self) -> IcebergPublishing:
        """Publications and their undo branches."""
        from errata.engines.iceberg.commits.publish import IcebergPublishing

        return IcebergPublishing(self.java, lambda: self._rewriter)

    @cached_property
    def _files(self) -> SparkWriter:
        """Appends of data frames, committed by Errata."""
        from errata.engines.spark.write.append import SparkWriter

        return SparkWriter(self.java)

    @cached_property
    def _rewriter(self) -> SparkRewriter:
        """Rewrites of rows, which few publications need."""
        from errata.engines.spark.write.rewrite import SparkRewriter

        return SparkRewriter(self.runtime, self._files, self._access)

    @cached_property
    def beside(self) -> IcebergSideTables:
        """Commits to side tables."""
        from errata.engines.iceberg.commits.side_tables import IcebergSideTables

        return IcebergSideTables(self.java)

    @cached_property
    def writer(self) -> SparkSideTables:
        """Writes of rows to side tables."""
        from errata.engines.spark.write.side_tables import SparkSideTables

        return SparkSideTables(self.runtime, self._files)

    def cluster(self, target: str) -> Cluster:
        """The cluster of this kind that errata.yaml declares."""
        from errata.wiring.clusters import open_cluster

        return open_cluster(self._project, target)

    def hold_to(self, throttle: Throttle) -> None:
        """Use the cores and pool of the current run."""
        self.runtime.hold_to(throttle)

    @cached_property
    def chunks(self) -> SparkChunkEngine:
        """Computation of chunks on Spark."""
        from errata.engines.spark.compute.chunks import SparkChunkEngine

        cache = choose_code_cache(Path(self._project.root))
        return SparkChunkEngine(
            self.runtime,
            self._files,
            self.sources,
            cache,
            self.quarantine.ensure,
            self.emitted.ensure,
            self.topics,
            self._access,
        )

    @cached_property
    def change_logs(self) -> ChangeLogReader:
        """Change logs, read with Spark."""
        from errata.engines.spark.inputs.log_facts import SparkChangeLogs

        return SparkChangeLogs(lambda: self.runtime.session, self._project.kafka)

    @cached_property
    def _access(self) -> InputAccess:
        """How inputs are reached; the key of the list of erased subjects is read only where it is needed."""
        from errata.engines.spark.inputs.access import InputAccess

        def hasher() -> Callable[[str], str]:
            return self.erased.hasher()  # only here, because a project without a list has none

        return InputAccess(self._project.kafka, hasher)

    @cached_property
    def measurer(self) -> SparkMeasurer:
        """Measurements on Spark."""
        from errata.engines.spark.measure.measurer import SparkMeasurer

        runtime = self.runtime
        parts, files = self._ledger.parts.get, self.publishing.files_of
        return SparkMeasurer(runtime.session, parts, files, pool=runtime.gate_pool, access=self._access)

    @cached_property
    def probes(self) -> SignalProbes:
        """Health signals."""
        from errata.engines.hooks.probes import SignalProbes

        def lake(query: str) -> Any:
            row = self.runtime.session.sql(query).first()
            return row[0] if row else None

        return SignalProbes(Path(self._project.root), {"ledger": self._ledger.scalar, "lake": lake})

    @property
    def content(self) -> _LazyContent:
        """Content digests, for cases that file lists cannot decide."""
        return _LazyContent(self)


@dataclass(frozen=True, slots=True)
class _LazyContent:
    """Content digests; starts Spark only on the first call."""

    engines: ProjectEngines

    def content(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Sequence[str]
    ) -> dict[str, str]:
        """Row count and checksums of each partition, as the gate measures them."""
        found = self.engines.measurer.checksums(target.table, snapshot_id, target, partitions, columns)
        return {name: digest.text for name, digest in found.items()}

    def filled(
        self, target: TargetPin, snapshot_id: str, partitions: Sequence[str], columns: Mapping[str, str | None]
    ) -> dict[str, tuple[str, ...]]:
        """Columns that differ from their default, by partition; reads only these columns."""
        return self.engines.measurer.filled(target.table, snapshot_id, target, partitions, columns)


class _NoSuppressions:
    """Suppressions for a project in which no product names subjects."""

    def watermark(self, _table: str) -> str:
        """Empty: there is no list."""
        return ""

    def held(self, _table: str, _target: TargetPin, _snapshots: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Empty: no subject is listed."""
        return ()

    def used(self, _manifest: Manifest, _since: str | None) -> tuple[str, ...]:
        """Empty: no subject is listed."""
        return ()


def choose_code_cache(root: Path) -> Path:
    """The cache in the project, or a temporary directory if that is read-only, as in a cluster's unpacked archive."""
    own = root / ".errata" / "cache"
    there = next(place for place in (own, *own.parents) if place.exists())
    return own if os.access(there, os.W_OK) else Path(tempfile.mkdtemp(prefix="errata-code-"))


_conforms: type[Engines] = ProjectEngines
