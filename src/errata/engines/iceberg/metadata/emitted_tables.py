"""Tables of emitted rows: read with pyiceberg, without a JVM; only rows of adopted attempts are ever sent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields

from errata.engines.iceberg.metadata.attempt_tables import AttemptTables
from errata.ports.outgoing_rows import EmittedRow, EmittedTable

COLUMNS = ("run_id", "chunk_id", "attempt", *(field.name for field in fields(EmittedRow)))
_READ = tuple(field.name for field in fields(EmittedRow))
_AT_A_TIME = 100
"""Attempts in one filter; with more than 200 values Iceberg prunes no files."""


class IcebergEmitted(AttemptTables):
    """Tables of emitted rows in a project's catalogs."""

    columns = COLUMNS

    def iterate(self, table: str, attempts: Collection[str], sink: str) -> Iterator[Sequence[EmittedRow]]:
        """See the port."""
        from pyiceberg.expressions import And, EqualTo, In

        loaded = self._tables.load(table)
        names = sorted(attempts)
        for start in range(0, len(names), _AT_A_TIME):
            some = In("attempt", set(names[start : start + _AT_A_TIME]))  # type: ignore[call-arg]  # takes positions
            wanted = And(some, EqualTo("sink", sink))  # type: ignore[call-arg]
            for batch in loaded.scan(row_filter=wanted, selected_fields=_READ).to_arrow_batch_reader():
                columns = [batch.column(name).to_pylist() for name in _READ]
                if batch.num_rows:
                    yield [EmittedRow(*values) for values in zip(*columns, strict=True)]


_conforms: type[EmittedTable] = IcebergEmitted
