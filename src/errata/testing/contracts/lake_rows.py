"""The contract of :class:`errata.ports.copies.LakeReader`."""

from __future__ import annotations

from typing import Any

import pytest

from errata.errors import RunExpired
from errata.model.copy.measure import measure_rows
from errata.model.copy.table import CopyColumn, CopyTable
from errata.model.partition import Grain
from errata.testing.contracts.subject import COLUMNS, FIRST, NOT_A_SNAPSHOT, SECOND, THIRD, Sale, Subject

_COLUMNS = tuple(CopyColumn(name, name.upper(), kind) for name, kind in COLUMNS.items())
COPY = CopyTable("pg", "sales", _COLUMNS, _COLUMNS[0], Grain.DAY)


class LakeRowsContract:
    """Rows of partitions at a snapshot, as a copy gets them."""

    def test_rows_of_the_partitions_are_read_under_the_names_of_the_copy(self, subject: Subject) -> None:
        """No others, in the copy's order of columns; a partition without rows is none."""
        rows = subject.lake_rows.read(COPY, subject.table, _head(subject), [FIRST, THIRD])
        batches = list(rows.batches())
        assert {tuple(batch.schema.names) for batch in batches} == {("DAY", "ACCOUNT", "AMOUNT")}
        assert _to_sales(batches) == [(FIRST, "a", "1.00"), (FIRST, "b", "2.00")]
        assert subject.lake_rows.read(COPY, subject.table, _head(subject), [THIRD]).measure() == {}

    def test_the_checksum_is_that_of_the_rows(self, subject: Subject) -> None:
        """Whether it was counted while the rows were read, or by itself."""
        subject.append((SECOND, "ñ 🧾", "-0.01"), (SECOND, "ñ 🧾", "-0.01"))
        counted, alone = (
            subject.lake_rows.read(COPY, subject.table, _head(subject), [FIRST, SECOND]) for _ in range(2)
        )
        wanted = measure_rows(COPY, [row for batch in counted.batches() for row in batch.to_pylist()])
        assert counted.measure() == alone.measure() == wanted
        assert {name: one.rows for name, one in wanted.items()} == {FIRST: 2, SECOND: 3}

    def test_files_that_are_left_out_are_counted_all_the_same(self, subject: Subject) -> None:
        """Rows of files that a warehouse loads by itself are not read for it, but belong to the checksum."""
        subject.append((FIRST, "c", "3.00"))
        rows, whole = (subject.lake_rows.read(COPY, subject.table, _head(subject), [FIRST]) for _ in range(2))
        chosen = [file for file in rows.files() if file.refusal is None]
        left = sum(batch.num_rows for batch in rows.batches([file.path for file in chosen]))
        assert left + sum(file.rows for file in chosen) == 3
        assert rows.measure() == whole.measure()

    def test_rows_are_those_of_the_snapshot(self, subject: Subject) -> None:
        """What live jobs write, hide or compact later does not change them; an earlier delete file applies."""
        subject.delete(FIRST, "b")
        then = _head(subject)
        subject.append((FIRST, "live", "9.00"))
        subject.delete(FIRST, "a")
        subject.compact()
        rows = subject.lake_rows.read(COPY, subject.table, then, [FIRST])
        assert _to_sales(rows.batches()) == [(FIRST, "a", "1.00")]

    def test_a_snapshot_that_is_gone_is_named(self, subject: Subject) -> None:
        """Nobody can say what was accepted."""
        with pytest.raises(RunExpired, match=NOT_A_SNAPSHOT):
            subject.lake_rows.read(COPY, subject.table, NOT_A_SNAPSHOT, [FIRST])


def _head(subject: Subject) -> str:
    return subject.pins.refs(subject.table)["main"]


def _to_sales(batches: Any) -> list[Sale]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted((str(row["DAY"]), row["ACCOUNT"], str(row["AMOUNT"])) for row in rows)
