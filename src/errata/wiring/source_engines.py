"""Adapters of what runs read: tables, files, topics and recordings, without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from errata.ledger import Ledger
from errata.model.product import Project
from errata.wiring.input_router import InputRouter

if TYPE_CHECKING:
    from errata.engines.files.recorded import RecordingReader
    from errata.engines.files.source import FileSource
    from errata.engines.iceberg.metadata.tables import IcebergMetadata, TableLoader
    from errata.engines.kafka.topics import KafkaTopics
    from errata.model.recording.declaration import Source
    from errata.model.recording.recorded_file import RecordedFile
    from errata.ports.checkpoints import CheckpointStore
    from errata.ports.datasets import DatasetReader, DatasetTables
    from errata.ports.recordings import RecordingStore, ScanReader, WindowReader
    from errata.ports.tables import (
        InputReader,
        TableReader,
        TargetReader,
    )


class SourceEngines:
    """Readers of one project, each created on first use."""

    def __init__(self, project: Project, ledger: Ledger) -> None:
        self._project = project
        self._ledger = ledger

    @cached_property
    def catalogs(self) -> TableLoader:
        """Catalogs without a JVM, shared by all metadata readers."""
        from errata.engines.iceberg.metadata.tables import TableLoader

        return TableLoader(self._project.catalogs)

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

    def find_silent_clusters(self, clusters: Iterable[str]) -> Mapping[str, str]:
        """See the port."""
        return self.topics.find_silent(clusters)

    @cached_property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of streams, local or on S3."""
        from errata.engines.files.checkpoints import CheckpointFiles

        return CheckpointFiles(self._project.root, self._project.s3)

    @cached_property
    def recordings(self) -> RecordingStore:
        """Recorded files, local or on S3."""
        from errata.engines.recordings.landing import RecordedFileStore

        return RecordedFileStore(self._project.root, self._project.recordings.location, self._project.s3)

    @cached_property
    def recorded(self) -> RecordingReader:
        """Inputs of recorded files, as the ledger has them."""
        from errata.engines.files.recorded import RecordingReader

        def list_files(source: str) -> Sequence[RecordedFile]:
            with self._ledger.or_empty() as ledger:
                return ledger.recordings.list(source)

        return RecordingReader(list_files, self._project.recordings.location)

    def scans(self, source: Source) -> ScanReader | None:
        """See the port."""
        if source.http is None or source.http.window == "time":
            return None
        from errata.engines.recordings.http_window import HttpWindows

        return HttpWindows(self._project.redact)

    def windows(self, source: Source) -> WindowReader | None:
        """See the port."""
        if source.sql is not None:
            declared = self._project.warehouses[source.sql.warehouse]
            if declared.type == "snowflake":
                from errata.engines.recordings.snowflake_window import SnowflakeWindows
                from errata.wiring.warehouse_accounts import build_account

                return SnowflakeWindows(lambda _name: build_account(declared, Path(self._project.root)))
            from errata.engines.recordings.sql_window import SqlWindows

            return SqlWindows(self._project.warehouses)
        if source.http is not None:
            from errata.engines.recordings.http_window import HttpWindows

            return HttpWindows(self._project.redact)
        if source.kafka is not None:
            from errata.engines.kafka.topic_window import TopicWindows

            return TopicWindows(self._project.kafka, self._project.redact)
        return None

    @cached_property
    def datasets(self) -> DatasetReader:
        """Plain Parquet files, local or on S3."""
        from errata.engines.files.dataset import ParquetDatasets

        return ParquetDatasets(self._project.root, self._project.s3)

    @cached_property
    def dataset_tables(self) -> DatasetTables:
        """Tables made of such files."""
        from errata.engines.iceberg.commits.datasets import IcebergDatasets

        return IcebergDatasets(self.catalogs)

    @property
    def inputs(self) -> InputReader:
        """Inputs, tables or files."""
        return InputRouter(self.metadata, self.sources, self.recorded, self.topics)
