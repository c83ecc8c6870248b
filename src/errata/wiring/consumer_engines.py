"""Adapters of what follows a publication: messages, topics, systems of consumers, copies in warehouses."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from errata.wiring.source_engines import SourceEngines

if TYPE_CHECKING:
    from errata.engines.channels.sender import ChannelSender
    from errata.engines.consumers.postgres_database import PostgresWatermarks
    from errata.engines.consumers.systems import DeclaredSystems
    from errata.engines.copies.snowflake_copies import SnowflakeCopies
    from errata.engines.hooks.alarm import CommandAlarm
    from errata.model.consumer.declaration import Warehouse
    from errata.model.graph.dbt_graph import DbtManifest
    from errata.ports.copies import LakeReader, LinkedTables, WarehouseCopies
    from errata.ports.hooks import DbtRunner
    from errata.ports.lineage import LineageSender
    from errata.ports.outgoing_rows import TopicWriter
    from errata.ports.ready import ReadyTables


class ConsumerEngines(SourceEngines):
    """Readers of one project, and its ways to consumers, each created on first use."""

    @cached_property
    def topic_writer(self) -> TopicWriter:
        """Records for topics of Kafka, without a JVM."""
        from errata.engines.kafka.record_writer import KafkaRecordWriter

        return KafkaRecordWriter(self._project.kafka, self._project.redact)

    @cached_property
    def ready(self) -> ReadyTables:
        """The table of ready partitions, without a JVM."""
        from errata.engines.iceberg.metadata.ready_table import IcebergReadyTables

        return IcebergReadyTables(self.catalogs)

    @cached_property
    def lake_rows(self) -> LakeReader:
        """Rows for copies, without a JVM."""
        from errata.engines.iceberg.metadata.lake_rows import IcebergLakeReader

        return IcebergLakeReader(self.catalogs)

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
    def lineage(self) -> LineageSender:
        """Lineage events, without a JVM."""
        from errata.engines.kafka.record_writer import KafkaRecordWriter
        from errata.engines.lineage.lineage_sender import OpenLineageSender

        project, settings = self._project, self._project.lineage
        seconds = settings.timeout_seconds if settings else 0
        topics = KafkaRecordWriter(project.kafka, project.redact, seconds)
        return OpenLineageSender(settings, project.name, topics, project.redact)

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

    @property
    def _warehouse_uris(self) -> dict[str, str]:
        return {name: one.uri for name, one in self._project.warehouses.items() if one.uri is not None}
