"""What every adapter of a port must do, as pytest classes.

To check an adapter, derive from a suite and give it the fixture ``subject``: one table, and the ports that work on it
(:class:`Subject`). Suites about consumers have the fixtures ``cache_subject``, ``watermark_subject`` and
``ready_subject``, those about copies and topics ``copy_subject`` and
``topic_subject``, those about clusters ``cluster_subject``. ``tests/contract`` runs each suite in memory and on
Iceberg, Redis, PostgreSQL or Kafka, so that the two cannot drift apart.
Needs pytest.
"""

from __future__ import annotations

from errata.testing.contracts.caches import CacheContract, CacheSubject, MemoryCacheSubject
from errata.testing.contracts.copies import CopyContract, CopySubject, MemoryCopySubject
from errata.testing.contracts.lake_rows import LakeRowsContract
from errata.testing.contracts.measuring import MeasurerContract
from errata.testing.contracts.publishing_to_a_table import PublishTableContract
from errata.testing.contracts.reading_a_table import ReaderContract
from errata.testing.contracts.ready_table import MemoryReadySubject, ReadySubject, ReadyTableContract
from errata.testing.contracts.sending import MemoryMessageSubject, MessageContract, MessageSubject
from errata.testing.contracts.sending_records import MemoryTopicSubject, TopicContract, TopicSubject
from errata.testing.contracts.staging_to_a_table import StagingContract
from errata.testing.contracts.starting_workers import ClusterContract, ClusterSubject, MemoryClusterSubject
from errata.testing.contracts.subject import MemorySubject, Subject
from errata.testing.contracts.tagging import TagContract
from errata.testing.contracts.watermarks import MemoryWatermarkSubject, WatermarkContract, WatermarkSubject

__all__ = [
    "CacheContract",
    "CacheSubject",
    "ClusterContract",
    "ClusterSubject",
    "CopyContract",
    "CopySubject",
    "LakeRowsContract",
    "MeasurerContract",
    "MemoryCacheSubject",
    "MemoryClusterSubject",
    "MemoryCopySubject",
    "MemoryMessageSubject",
    "MemoryReadySubject",
    "MemorySubject",
    "MemoryTopicSubject",
    "MemoryWatermarkSubject",
    "MessageContract",
    "MessageSubject",
    "PublishTableContract",
    "ReaderContract",
    "ReadySubject",
    "ReadyTableContract",
    "StagingContract",
    "Subject",
    "TagContract",
    "TopicContract",
    "TopicSubject",
    "WatermarkContract",
    "WatermarkSubject",
]
