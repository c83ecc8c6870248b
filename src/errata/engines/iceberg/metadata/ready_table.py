"""The ready table: small Iceberg tables of ready partitions, created, read and written with pyiceberg.

A write is a compare-and-swap on the version that was loaded before the rows were read from the ledger. pyiceberg's own
retries would commit rows that were read before the commit that they lost against, so they are switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.metadata.tables import TableLoader, describe_error, is_driver_error
from errata.engines.retry import TRIES, retry
from errata.errors import EngineError, ErrataError, NotFound
from errata.model.consumer.readiness import ReadyRow
from errata.ports.ready import ReadyTables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

_TEXTS = ("table_name", "first_partition", "last_partition", "run_id", "state")
_NAMES = ("table_name", "first_partition", "last_partition", "run_id", "snapshot_id", "state", "since")
_PROPERTIES = {
    "format-version": "2",
    # every publication writes a few versions
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class IcebergReadyTables:
    """Ready tables of a project's catalogs."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def replace(self, table: str, names: Sequence[str], read: Callable[[], Sequence[ReadyRow]]) -> bool:
        """See the port."""
        try:
            # a lost race, no answer or a lock: each try loads the table and reads the ledger again
            return retry(lambda: self._replace_once(table, names, read), is_driver_error, longest_wait=3.0)
        except ErrataError:
            raise
        except Exception as error:
            raise EngineError(
                f"{table} could not be written in {TRIES} tries; the last ended with {describe_error(error)}",
                table=table,
            ) from error

    def rows(self, table: str) -> tuple[ReadyRow, ...]:
        """See the port."""
        try:
            return _read_rows(self._tables.load(table), None)
        except NotFound:
            return ()

    def _replace_once(self, table: str, names: Sequence[str], read: Callable[[], Sequence[ReadyRow]]) -> bool:
        from pyiceberg.expressions import In

        loaded = self._load(table)
        wanted, chosen = _sort(read()), In("table_name", set(names))  # type: ignore[call-arg]  # pydantic takes positions
        found = _read_rows(loaded, chosen)
        if wanted == found:
            return False
        if not wanted:
            loaded.delete(chosen)
        elif found:
            loaded.overwrite(_build_batch(wanted), overwrite_filter=chosen)
        else:
            loaded.append(_build_batch(wanted))
        return True

    def _load(self, table: str) -> Table:
        try:
            loaded = self._tables.load(table)
        except NotFound:
            self._create(table)
            loaded = self._tables.load(table)
        properties = {**loaded.metadata.properties, "commit.retry.num-retries": "0"}
        # only this copy: what pyiceberg does in this process
        loaded.metadata = loaded.metadata.model_copy(update={"properties": properties})
        return loaded

    def _create(self, table: str) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

        types: dict[str, Any] = {"snapshot_id": LongType(), "since": TimestamptzType()}
        fields = [
            NestedField(n, name, types.get(name, StringType()), required=name == "table_name")
            for n, name in enumerate(_NAMES, 1)
        ]
        # rows about one table share no file with rows about another, so replacing them rewrites nothing
        by_table = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "table_name"))
        self._tables.create(table, Schema(*fields), _PROPERTIES, by_table)


def _read_rows(loaded: Table, chosen: BooleanExpression | None) -> tuple[ReadyRow, ...]:
    scan = loaded.scan() if chosen is None else loaded.scan(row_filter=chosen)
    found = scan.select(*_NAMES).to_arrow().to_pylist()
    return _sort([ReadyRow(**row | {"snapshot_id": _to_text(row["snapshot_id"]), "since": _format(row["since"])})
                  for row in found])  # fmt: skip


def _build_batch(rows: Sequence[ReadyRow]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {name: pa.array([getattr(row, name) for row in rows], pa.string()) for name in _TEXTS}
    columns["snapshot_id"] = pa.array(
        [None if row.snapshot_id is None else int(row.snapshot_id) for row in rows], pa.int64()
    )
    columns["since"] = pa.array([datetime.fromisoformat(row.since) for row in rows], pa.timestamp("us", "UTC"))
    fields = [pa.field(name, columns[name].type, nullable=name != "table_name") for name in _NAMES]
    return pa.table({name: columns[name] for name in _NAMES}, schema=pa.schema(fields))


def _sort(rows: Sequence[ReadyRow]) -> tuple[ReadyRow, ...]:
    return tuple(sorted(rows, key=lambda row: (row.table_name, row.first_partition)))


def _to_text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _format(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


_conforms: type[ReadyTables] = IcebergReadyTables
