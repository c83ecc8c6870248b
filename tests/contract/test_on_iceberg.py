"""The adapters for Iceberg and Spark keep the contracts of the ports, as tables in memory do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from errata.testing.contracts import (
    LakeRowsContract,
    MeasurerContract,
    PublishTableContract,
    ReaderContract,
    ReadyTableContract,
    StagingContract,
    TagContract,
)
from errata.testing.contracts.ready_table import HELD, OTHER, READY, ReadySubject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from contract.iceberg_subject import IcebergReadySubject, IcebergSubject
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


class TestReadyTables(ReadyTableContract):
    """A ready table of Iceberg."""

    @pytest.fixture
    def ready_subject(self, engines: ProjectEngines) -> IcebergReadySubject:
        """A fresh one."""
        from contract.iceberg_subject import IcebergReadySubject

        return IcebergReadySubject(engines)

    def test_rows_that_were_read_before_another_commit_are_read_again(self, ready_subject: ReadySubject) -> None:
        """PyIceberg would repeat a commit that it lost, with the rows that it has."""
        super().test_rows_that_were_read_before_another_commit_are_read_again(ready_subject)

    def test_rows_of_several_tables_are_one_version(
        self, ready_subject: IcebergReadySubject, engines: ProjectEngines
    ) -> None:
        """Nobody can read one of them new and the other old, whichever rows were there before."""
        names = [HELD.table_name, OTHER.table_name]
        written = [(HELD,), (READY, OTHER), (HELD, replace(OTHER, state="held")), (OTHER,), (READY, OTHER), ()]
        versions = []
        for rows in written:
            assert ready_subject.ready.replace(ready_subject.table, names, lambda rows=rows: rows)  # type: ignore[misc]
            versions.append(len(engines.catalogs.load(ready_subject.table).metadata.metadata_log))
        assert [after - before for before, after in pairwise(versions)] == [1] * (len(written) - 1)
