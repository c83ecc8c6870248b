"""The adapters of one project, each created on first use: metadata first, a JVM or Spark only when needed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errata.canonical import digest_of
from errata.errors import SetupError
from errata.ledger import Ledger
from errata.model.manifest import Code, TargetPin
from errata.model.partition import Grain
from errata.model.product import Input, Product, Project
from errata.workspace import Engines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from errata.engines.channels.sender import ChannelSender
    from errata.engines.consumers.postgres_database import PostgresWatermarks
    from errata.engines.consumers.systems import DeclaredSystems
    from errata.engines.copies.snowflake_copies import SnowflakeCopies
    from errata.engines.files.source import FileSource
    from errata.engines.hooks.alarm import CommandAlarm
    from errata.engines.hooks.probes import SignalProbes
    from errata.engines.iceberg.commits.java import JavaIceberg
    from errata.engines.iceberg.commits.publish import IcebergPublishing
    from errata.engines.iceberg.commits.side_tables import IcebergSideTables
    from errata.engines.iceberg.commits.staging import IcebergStaging
    from errata.engines.iceberg.metadata.tables import IcebergMetadata, TableLoader
    from errata.engines.kafka.topics import KafkaTopics
    from errata.engines.spark.compute.chunks import SparkChunkEngine
    from errata.engines.spark.measure.measurer import SparkMeasurer
    from errata.engines.spark.runtime.spark_session import SparkRuntime
    from errata.engines.spark.write.append import SparkWriter
    from errata.engines.spark.write.rewrite import SparkRewriter
    from errata.engines.spark.write.side_tables import SparkSideTables
    from errata.jars import Jar
    from errata.model.consumer.declaration import Warehouse
    from errata.model.graph.dbt_graph import DbtManifest
    from errata.model.near_miss import NearMiss
    from errata.model.product.throttle import Throttle
    from errata.ports.checkpoints import CheckpointStore
    from errata.ports.copies import LakeReader, LinkedTables, WarehouseCopies
    from errata.ports.erasure import ErasedSubjects, Suppressions
    from errata.ports.hooks import DbtRunner
    from errata.ports.ready import ReadyTables
    from errata.ports.tables import (
        HistoryReader,
        InputReader,
        InputState,
        OutsideReader,
        QuarantineTable,
        RowReader,
        TableReader,
        TagKeeper,
        TargetReader,
    )


class ProjectEngines:
    """The adapters of one project, each created on first use."""

    def __init__(self, project: Project, ledger: Ledger, spark: SparkSession | None = None) -> None:
        self._project = project
        self._ledger = ledger
        self._spark = spark

    @property
    def log(self) -> Path:
        """Log file for the output of Java and Spark."""
        return Path(self._project.root) / ".errata" / "logs" / f"spark-{datetime.now(UTC):%Y%m%d}.log"

    @cached_property
    def catalogs(self) -> TableLoader:
        """Catalogs without a JVM, shared by all metadata readers."""
        from errata.engines.iceberg.metadata.tables import TableLoader

        return TableLoader(self._project.catalogs)

    def close(self) -> None:
        """Close the catalog connections, if any; the JVM ends with the process."""
        if "catalogs" in self.__dict__:
            self.catalogs.close()
        if "runtime" in self.__dict__:
            self.runtime.close()

    def start_early(self, *, session: bool = True) -> None:
        """Start the JVM, and Spark unless ``session`` is false, in the background."""
        self.runtime.start_early(session=session)

    @cached_property
    def metadata(self) -> IcebergMetadata:
        """Table metadata without a JVM."""
        from errata.engines.iceberg.metadata.tables import IcebergMetadata

        return IcebergMetadata(self.catalogs)

    @property
    def targets(self) -> TargetReader:
        """Targets, read only."""
        return self.metadata

    @property
    def tables(self) -> TableReader:
        """Table descriptions, read only."""
        return self.metadata

    @cached_property
    def sources(self) -> FileSource:
        """Plain files, local or on S3."""
        from errata.engines.files.source import FileSource

        return FileSource(self._project.root, self._project.s3)

    @cached_property
    def topics(self) -> KafkaTopics:
        """Topics of Kafka, without a JVM."""
        from errata.engines.kafka.topics import KafkaTopics

        return KafkaTopics(self._project.kafka, self._project.redact)

    @cached_property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of streams, local or on S3."""
        from errata.engines.files.checkpoints import CheckpointFiles

        return CheckpointFiles(self._project.root, self._project.s3)

    @property
    def jars(self) -> tuple[Jar, ...]:
        """The jars that this project's catalogs and storage need."""
        from errata.jars import find_required_groups, list_jars

        return list_jars(*find_required_groups(self._project))

    @property
    def inputs(self) -> InputReader:
        """Inputs, tables or files."""
        return InputRouter(self.metadata, self.sources, self.topics)

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
    def ready(self) -> ReadyTables:
        """The table of ready partitions, without a JVM."""
        from errata.engines.iceberg.metadata.ready_table import IcebergReadyTables

        return IcebergReadyTables(self.catalogs)

    @cached_property
    def suppressions(self) -> Suppressions:
        """Suppression of erased subjects; empty if no product names subjects."""
        subjects: dict[str, tuple[str, ...]] = {}
        for product in self._project.products.values():
            known = subjects.get(product.target.table, ())
            subjects[product.target.table] = tuple(dict.fromkeys((*known, *product.target.subjects)))
        if not any(subjects.values()):
            return _NoSuppressions()
        from errata.engines.spark.measure.erasure import SparkSuppressions

        return SparkSuppressions(self.erased, subjects, lambda: self.runtime.session)

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

    def dbt(self) -> DbtManifest | None:
        """See the port."""
        if self._project.dbt is None:
            return None
        from errata.engines.files.dbt_manifest import read_dbt_manifest

        return read_dbt_manifest(self._project.dbt.manifest)

    @property
    def dbt_runner(self) -> DbtRunner | None:
        """See the port."""
        if self._project.dbt is None or self._project.dbt.project is None:
            return None
        from errata.engines.hooks.dbt_runner import DbtProcess

        return DbtProcess(Path(self._project.dbt.project))

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

        return SparkRewriter(self.runtime, self._files)

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

    def hold_to(self, throttle: Throttle) -> None:
        """Use the cores and pool of the current run."""
        self.runtime.hold_to(throttle)

    @cached_property
    def chunks(self) -> SparkChunkEngine:
        """Computation of chunks on Spark."""
        from errata.engines.spark.compute.chunks import SparkChunkEngine

        cache = choose_code_cache(Path(self._project.root))
        return SparkChunkEngine(
            self.runtime, self._files, self.sources, cache, self.quarantine.ensure, self.topics, self._project.kafka
        )

    @cached_property
    def measurer(self) -> SparkMeasurer:
        """Measurements on Spark."""
        from errata.engines.spark.measure.measurer import SparkMeasurer

        runtime = self.runtime
        parts, files, clusters = self._ledger.parts.get, self.publishing.files_of, self._project.kafka
        return SparkMeasurer(runtime.session, parts, files, pool=runtime.gate_pool, clusters=clusters)

    @cached_property
    def probes(self) -> SignalProbes:
        """Health signals."""
        from errata.engines.hooks.probes import SignalProbes

        def lake(query: str) -> Any:
            row = self.runtime.session.sql(query).first()
            return row[0] if row else None

        return SignalProbes(Path(self._project.root), {"ledger": self._ledger.scalar, "lake": lake})

    @property
    def alarm(self) -> CommandAlarm:
        """The break-glass alarm."""
        from errata.engines.hooks.alarm import CommandAlarm

        return CommandAlarm(Path(self._project.root), self._project.alarm)

    @property
    def channels(self) -> ChannelSender:
        """Messages to consumers."""
        from errata.engines.channels.sender import ChannelSender

        return ChannelSender(Path(self._project.root))

    @property
    def consumers(self) -> DeclaredSystems:
        """Caches, databases and programs of consumers."""
        from errata.engines.consumers.systems import DeclaredSystems

        return DeclaredSystems(Path(self._project.root), self._warehouse_uris)

    @property
    def watermarks(self) -> PostgresWatermarks:
        """Watermarks of incremental jobs."""
        from errata.engines.consumers.postgres_database import PostgresWatermarks

        return PostgresWatermarks(self._warehouse_uris)

    def copies(self, warehouse: str) -> WarehouseCopies:
        """See the port."""
        declared = self._project.warehouses.get(warehouse)
        if declared is not None and declared.type == "snowflake":
            return self._open_snowflake(declared)
        from errata.engines.copies.postgres_copies import PostgresCopies

        return PostgresCopies(self._warehouse_uris)

    def linked_tables(self, warehouse: str) -> LinkedTables:
        """See the port."""
        return self._open_snowflake(self._project.warehouses[warehouse])

    def _open_snowflake(self, declared: Warehouse) -> SnowflakeCopies:
        from errata.engines.copies.snowflake_copies import SnowflakeCopies
        from errata.wiring.warehouse_accounts import build_account

        return SnowflakeCopies({declared.name: build_account(declared, Path(self._project.root))})

    @cached_property
    def lake_rows(self) -> LakeReader:
        """Rows for copies, without a JVM."""
        from errata.engines.iceberg.metadata.lake_rows import IcebergLakeReader

        return IcebergLakeReader(self.catalogs)

    @property
    def _warehouse_uris(self) -> dict[str, str]:
        return {name: one.uri for name, one in self._project.warehouses.items() if one.uri is not None}

    @property
    def content(self) -> _LazyContent:
        """Content digests, for cases that file lists cannot decide."""
        return _LazyContent(self)


@dataclass(frozen=True, slots=True)
class InputRouter:
    """Reads inputs, each from where it is."""

    tables: IcebergMetadata
    files: FileSource
    topics: KafkaTopics

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """Read a table input from the catalog, a file input from the file listing, a topic from its brokers."""
        state = self._choose(source).read_input(source, grain, partitions)
        if source.complete is None or source.complete.rows_from is None:
            return state
        from errata.ports.tables import add_announced

        return add_announced(state, self.tables.read_announced(source, grain, partitions))

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """Search for the files of an input."""
        return self._choose(source).find_near_miss(source)

    def _choose(self, source: Input) -> InputReader:
        return self.tables if source.table else self.topics if source.kafka else self.files


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


def choose_code_cache(root: Path) -> Path:
    """The cache in the project, or a temporary directory if that is read-only, as in a cluster's unpacked archive."""
    own = root / ".errata" / "cache"
    there = next(place for place in (own, *own.parents) if place.exists())
    return own if os.access(there, os.W_OK) else Path(tempfile.mkdtemp(prefix="errata-code-"))


_conforms: type[Engines] = ProjectEngines
