"""Tables in memory keep the contracts of the ports."""

from __future__ import annotations

import pytest

from errata.testing.contracts import (
    CacheContract,
    CopyContract,
    LakeRowsContract,
    MeasurerContract,
    MemoryCacheSubject,
    MemoryCopySubject,
    MemoryMessageSubject,
    MemoryReadySubject,
    MemorySubject,
    MemoryTopicSubject,
    MemoryWatermarkSubject,
    MessageContract,
    PublishTableContract,
    ReaderContract,
    ReadyTableContract,
    StagingContract,
    TagContract,
    TopicContract,
    WatermarkContract,
)


@pytest.fixture
def subject() -> MemorySubject:
    """A fresh table in memory."""
    return MemorySubject()


class TestPublishing(PublishTableContract):
    """Publishing to a table in memory."""


class TestStaging(StagingContract):
    """Staging to a table in memory."""


class TestTags(TagContract):
    """Tags of a table in memory."""


class TestReaders(ReaderContract):
    """Reading a table in memory."""


class TestLakeRows(LakeRowsContract):
    """Rows of tables in memory, for copies."""


class TestMeasurer(MeasurerContract):
    """Measuring tables in memory."""


class TestCaches(CacheContract):
    """A cache in memory."""

    @pytest.fixture
    def cache_subject(self) -> MemoryCacheSubject:
        """An empty one."""
        return MemoryCacheSubject()


class TestWatermarks(WatermarkContract):
    """Watermarks in memory."""

    @pytest.fixture
    def watermark_subject(self) -> MemoryWatermarkSubject:
        """A fresh one."""
        return MemoryWatermarkSubject()


class TestMessages(MessageContract):
    """Messages in memory."""

    @pytest.fixture
    def message_subject(self) -> MemoryMessageSubject:
        """A fresh channel."""
        return MemoryMessageSubject()


class TestReadyTables(ReadyTableContract):
    """A ready table in memory."""

    @pytest.fixture
    def ready_subject(self) -> MemoryReadySubject:
        """A fresh one."""
        return MemoryReadySubject()


class TestCopies(CopyContract):
    """A copy in memory."""

    @pytest.fixture
    def copy_subject(self) -> MemoryCopySubject:
        """An empty one."""
        return MemoryCopySubject()


class TestTopics(TopicContract):
    """Topics in memory."""

    @pytest.fixture
    def topic_subject(self) -> MemoryTopicSubject:
        """See the suite."""
        return MemoryTopicSubject()
