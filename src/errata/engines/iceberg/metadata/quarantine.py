"""Quarantine tables: counted and sampled with pyiceberg, without a JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.metadata.attempt_tables import AttemptTables
from errata.errors import NotFound
from errata.ports.tables import QuarantineCount, QuarantinedRow, QuarantineTable

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("run_id", "chunk_id", "attempt", "input", "partition", "kind", "reason", "origin", "row")
_GROUP = ("input", "partition", "kind", "reason")


class IcebergQuarantine(AttemptTables):
    """Quarantine tables of a project's catalogs."""

    columns = COLUMNS

    def counts(self, table: str, attempts: Collection[str]) -> tuple[QuarantineCount, ...]:
        """See the port."""
        found: Counter[tuple[str, str, str, str]] = Counter()
        for batch in self._iterate_batches(table, attempts, _GROUP):
            grouped = batch.group_by(list(_GROUP)).aggregate([([], "count_all")])
            for row in grouped.to_pylist():
                found[row["input"], row["partition"], row["kind"], row["reason"]] += row["count_all"]
        return tuple(QuarantineCount(*key, rows) for key, rows in sorted(found.items()))

    def sample(self, table: str, attempts: Collection[str], most: int) -> tuple[QuarantinedRow, ...]:
        """See the port."""
        taken: Counter[tuple[str, str, str]] = Counter()
        found = []
        for batch in self._iterate_batches(table, attempts, COLUMNS):
            for row in batch.to_pylist():
                key = (row["input"], row["kind"], row["reason"])
                if taken[key] < most:
                    taken[key] += 1
                    found.append(QuarantinedRow(*(row[name] for name in COLUMNS if name not in ("run_id", "attempt"))))
        return tuple(sorted(found, key=lambda row: (row.input, row.kind, row.reason, row.partition)))

    def _iterate_batches(self, table: str, attempts: Collection[str], columns: Collection[str]) -> Iterator[pa.Table]:
        import pyarrow as pa
        from pyarrow import compute

        try:
            loaded = self._tables.load(table)
        except NotFound:
            return
        wanted: Any = pa.array(sorted(attempts), pa.string())
        fields = tuple(dict.fromkeys((*columns, "attempt")))
        for batch in loaded.scan(selected_fields=fields).to_arrow_batch_reader():
            rows = pa.Table.from_batches([batch])
            yield rows.filter(compute.is_in(rows["attempt"], value_set=wanted))


_conforms: type[QuarantineTable] = IcebergQuarantine
