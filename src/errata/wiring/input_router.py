"""Inputs of a project, each read from where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errata.model.partition import Grain
from errata.model.product import Input

if TYPE_CHECKING:
    from errata.engines.files.recorded import RecordingReader
    from errata.engines.files.source import FileSource
    from errata.engines.iceberg.metadata.tables import IcebergMetadata
    from errata.engines.kafka.topics import KafkaTopics
    from errata.model.near_miss import NearMiss
    from errata.ports.tables import (
        InputReader,
        InputState,
    )


@dataclass(frozen=True, slots=True)
class InputRouter:
    """Reads inputs, each from where it is."""

    tables: IcebergMetadata
    files: FileSource
    recorded: RecordingReader
    topics: KafkaTopics

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """Read a table from its catalog, a recording from the ledger, a topic from its brokers, files by listing."""
        if source.is_message_log:
            from errata.engines.message_logs import read_message_log

            return read_message_log(source, grain, partitions, self._choose(source))
        state = self._choose(source).read_input(source, grain, partitions)
        if source.complete is None or source.complete.rows_from is None:
            return state
        from errata.ports.tables import add_announced

        return add_announced(state, self.tables.read_announced(source, grain, partitions))

    def find_near_miss(self, source: Input) -> NearMiss | None:
        """Search for the files of an input."""
        return self._choose(source).find_near_miss(source)

    def _choose(self, source: Input) -> InputReader:
        if source.kafka:
            return self.topics
        return self.tables if source.table else self.recorded if source.recording else self.files
