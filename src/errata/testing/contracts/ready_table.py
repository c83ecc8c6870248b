"""The contract of :class:`errata.ports.ready.ReadyTables`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from errata.model.consumer.readiness import ReadyRow
from errata.ports.ready import ReadyTables
from errata.testing.consumers import MemoryReadyTables

_AT = "2026-05-01T10:00:00.123456+00:00"
HELD = ReadyRow("lake.fin.sales", "2026-01-01", "2026-01-03", "bf-1", "7", "held", _AT)
READY = ReadyRow("lake.fin.sales", "2026-01-01", "2026-01-03", "bf-1", "8", "ready", _AT)
OTHER = ReadyRow("lake.fin.costs", "EU", "EU", None, None, "announced", _AT)


class ReadySubject(Protocol):
    """A ready table that does not exist yet."""

    @property
    def table(self) -> str: ...

    @property
    def ready(self) -> ReadyTables: ...


@dataclass
class MemoryReadySubject:
    """A ready table in memory."""

    table: str = "lake.errata.ready"
    ready: MemoryReadyTables = field(default_factory=MemoryReadyTables)


class ReadyTableContract:
    """Rows about some tables are replaced as a whole, and never by older ones."""

    def test_rows_of_one_table_are_replaced_and_others_stay(self, ready_subject: ReadySubject) -> None:
        """The table is created with the first row."""
        assert ready_subject.ready.rows(ready_subject.table) == ()
        assert _put(ready_subject, HELD)
        assert _put(ready_subject, OTHER)
        assert _put(ready_subject, READY)
        assert set(ready_subject.ready.rows(ready_subject.table)) == {OTHER, READY}

    def test_nothing_is_committed_where_the_rows_are_the_same(self, ready_subject: ReadySubject) -> None:
        """So a repetition costs nothing."""
        _put(ready_subject, HELD)
        assert not _put(ready_subject, HELD)

    def test_rows_that_are_no_longer_needed_go(self, ready_subject: ReadySubject) -> None:
        """A table about which nothing is known has no rows."""
        _put(ready_subject, HELD)
        _put(ready_subject, OTHER)
        assert ready_subject.ready.replace(ready_subject.table, [HELD.table_name], tuple)
        assert ready_subject.ready.rows(ready_subject.table) == (OTHER,)

    def test_rows_of_several_tables_land_together(self, ready_subject: ReadySubject) -> None:
        """One commit for all of them."""
        names = [HELD.table_name, OTHER.table_name]
        assert ready_subject.ready.replace(ready_subject.table, names, lambda: (READY, OTHER))
        assert set(ready_subject.ready.rows(ready_subject.table)) == {OTHER, READY}

    def test_rows_that_were_read_before_another_commit_are_read_again(self, ready_subject: ReadySubject) -> None:
        """A writer that was slow must not put ready in the place of held."""
        for before in ((), (OTHER,)):
            _put_rows(ready_subject, before)
            calls: list[int] = []

            def read(calls: list[int] = calls) -> Sequence[ReadyRow]:
                calls.append(1)
                if len(calls) == 1:
                    _put(ready_subject, HELD)  # another process, with newer knowledge
                    return (READY,)
                return (HELD,)

            ready_subject.ready.replace(ready_subject.table, [HELD.table_name], read)
            assert HELD in ready_subject.ready.rows(ready_subject.table)
            assert READY not in ready_subject.ready.rows(ready_subject.table)
            assert len(calls) == 2
            ready_subject.ready.replace(ready_subject.table, [HELD.table_name], tuple)

    def test_a_commit_about_another_table_in_between_loses_nothing(self, ready_subject: ReadySubject) -> None:
        """Both are there in the end."""
        _put(ready_subject, HELD)
        calls: list[int] = []

        def read() -> Sequence[ReadyRow]:
            calls.append(1)
            if len(calls) == 1:
                _put(ready_subject, OTHER)
            return (READY,)

        ready_subject.ready.replace(ready_subject.table, [HELD.table_name], read)
        assert set(ready_subject.ready.rows(ready_subject.table)) == {OTHER, READY}


def _put(subject: ReadySubject, row: ReadyRow) -> bool:
    return subject.ready.replace(subject.table, [row.table_name], lambda: (row,))


def _put_rows(subject: ReadySubject, rows: Sequence[ReadyRow]) -> None:
    for row in rows:
        _put(subject, row)


_conforms: type[ReadySubject] = MemoryReadySubject
