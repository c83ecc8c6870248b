"""The adapters for Iceberg and Spark keep the contracts of the ports, as tables in memory do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from errata.testing.contracts import (
    LakeRowsContract,
    MeasurerContract,
    PublishTableContract,
    ReaderContract,
    StagingContract,
    TagContract,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from contract.iceberg_subject import IcebergSubject
    from errata.wiring.engines import ProjectEngines

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engines(base_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectEngines]:
    """The engines of one project, on the session of all tests."""
    from contract.iceberg_subject import open_engines

    with open_engines(tmp_path_factory.mktemp("contract"), base_spark) as opened:
        yield opened


@pytest.fixture
def subject(engines: ProjectEngines) -> IcebergSubject:
    """A fresh table of that project."""
    from contract.iceberg_subject import IcebergSubject

    return IcebergSubject(engines)


class TestPublishing(PublishTableContract):
    """Publishing to an Iceberg table."""


class TestStaging(StagingContract):
    """Staging to an Iceberg table."""


class TestTags(TagContract):
    """Tags of an Iceberg table."""


class TestReaders(ReaderContract):
    """Reading an Iceberg table."""


class TestLakeRows(LakeRowsContract):
    """Rows of an Iceberg table, for copies."""


class TestMeasurer(MeasurerContract):
    """Measuring Iceberg tables with Spark."""
