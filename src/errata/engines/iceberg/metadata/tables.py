"""Table metadata through pyiceberg, without a JVM: the planner's read ports. Reads manifests, opens no data file.

One pass over the live files of the current snapshot gives totals, expected files and fingerprints. Every result comes
from one metadata version: the table is loaded once per call and never refreshed during it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from errata.engines.failures import cause_of
from errata.engines.iceberg.catalogs import (
    UNTOUCHED,
    find_missing_file,
    pyiceberg_properties,
    refuse_missing_file,
    split_table,
)
from errata.engines.retry import retry
from errata.errors import EngineError, ErrataError, NotFound, SetupError, UsageError
from errata.model.near_miss import NearMiss, describe_entries
from errata.model.partition import Grain
from errata.model.product import Catalog, Input
from errata.model.refs import PREFIX
from errata.ports.tables import (
    Arrival,
    InputReader,
    InputState,
    TableDescription,
    TableReader,
    TargetReader,
    TargetState,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as IcebergCatalog
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_EXTRAS = {"jdbc": "postgres"}
"""The pip extra of a catalog type, where its name differs from the type."""


class TableLoader:
    """Opens each catalog once and loads tables afresh every time.

    All readers of a project share one loader, because each loader holds connections.
    """

    def __init__(self, catalogs: Mapping[str, Catalog]) -> None:
        self._catalogs = catalogs
        self._open: dict[str, IcebergCatalog] = {}

    def load(self, table: str) -> Table:
        """The table at its newest metadata version."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        name, identifier = split_table(table)
        try:
            return self.open(name).load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise NotFound(
                f"table {table} was not found in catalog {name}; expected an Iceberg table",
                hint="errata check",
                table=table,
            ) from None
        except ErrataError:
            raise
        except Exception as problem:  # catalogs raise their drivers' exceptions, which have no common base
            raise EngineError(
                f"table {table} could not be read: {describe_error(problem)}", hint="errata doctor", table=table
            ) from problem

    def load_named(self, table: str) -> Table:
        """Like :meth:`load`, for a table that a person named: an error says what is there instead."""
        try:
            return self.load(table)
        except NotFound as missing:
            if "table" not in missing.fields:
                raise
            name, identifier = split_table(table)
            said = f"table {table} was not found in catalog {name}; {self._describe_others(name, identifier)}"
            raise NotFound(said, hint=missing.hint, state="nothing was changed", **missing.fields) from None

    def _describe_others(self, name: str, identifier: tuple[str, ...]) -> str:
        """Tables of the namespace, or the namespaces, for someone who misspelt one of them."""
        catalog, namespace = self.open(name), identifier[:-1]
        place = f"{name}.{'.'.join(namespace)}"
        try:
            spaces = sorted(".".join(one) for one in catalog.list_namespaces())
            if ".".join(namespace) not in spaces:
                return f"there is no namespace {place}; the catalog has {describe_entries(spaces)}"
            names = sorted(one[-1] for one in catalog.list_tables(namespace))
            near = get_close_matches(identifier[-1], names, 1)
        except Exception as problem:  # noqa: BLE001 (as in load; the table is missing in any case)
            return f"its tables cannot be listed: {describe_error(problem)}"
        return f"nearest: {place}.{near[0]}" if near else f"{place} has {describe_entries(names)}"

    def reach(self, name: str) -> int:
        """Number of top-level namespaces in the catalog; raises if it does not answer."""
        catalog = self.open(name)
        try:
            return len(catalog.list_namespaces())
        except Exception as problem:  # as above
            raise EngineError(
                f"catalog {name} did not answer: {describe_error(problem)}",
                state=UNTOUCHED,
                hint="errata doctor",
                catalog=name,
            ) from problem

    def find_missing_file(self, name: str) -> str | None:
        """Path of the SQLite database of the catalog if it does not exist; None if it does, or needs none."""
        return find_missing_file(self._catalogs[name])

    def create(
        self, table: str, schema: Schema, properties: Mapping[str, str], spec: PartitionSpec | None = None
    ) -> None:
        """Create a table, and its namespace, if they do not exist."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        name, identifier = split_table(table)
        options: dict[str, Any] = {"properties": dict(properties)} | ({"partition_spec": spec} if spec else {})
        try:
            catalog = self.open(name)
            try:
                catalog.create_table_if_not_exists(identifier, schema, **options)
            except NoSuchNamespaceError:
                catalog.create_namespace_if_not_exists(identifier[:-1])
                catalog.create_table_if_not_exists(identifier, schema, **options)
        except ErrataError:
            raise
        except Exception as problem:  # as above
            raise EngineError(f"table {table} could not be made: {describe_error(problem)}", table=table) from problem

    def drop(self, table: str) -> bool:
        """Drop a table and its files; False if it does not exist."""
        from pyiceberg.exceptions import NoSuchTableError

        name, identifier = split_table(table)
        tries = 0

        def attempt() -> bool:
            nonlocal tries
            tries += 1
            try:
                self.open(name).purge_table(identifier)
            except NoSuchTableError:
                return tries > 1  # an earlier try got no clear answer and dropped it
            return True

        try:
            return retry(attempt, is_driver_error)
        except ErrataError:
            raise
        except Exception as problem:  # as above
            raise EngineError(
                f"table {table} could not be dropped: {describe_error(problem)}", table=table
            ) from problem

    def close(self) -> None:
        """Close all connections; a later call opens the catalog again."""
        while self._open:
            self._open.popitem()[1].close()

    def open(self, name: str) -> IcebergCatalog:
        """The catalog, opened on first use."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NotInstalledError

        if name in self._open:
            return self._open[name]
        if name not in self._catalogs:
            known = ", ".join(sorted(self._catalogs)) or "none"
            raise UsageError(
                f"catalog {name!r} is not in errata.yaml; expected one of: {known}",
                state=UNTOUCHED,
                hint="errata check",
                catalog=name,
            )
        catalog = self._catalogs[name]
        refuse_missing_file(catalog)
        try:
            self._open[name] = load_catalog(name, **pyiceberg_properties(catalog))
        except (NotInstalledError, ModuleNotFoundError) as problem:
            raise SetupError(
                f"catalog {name} of type {catalog.type} needs a package that is not installed: "
                f"{describe_error(problem)}",
                state=UNTOUCHED,
                hint=f"pip install 'errata[{_EXTRAS.get(catalog.type, catalog.type)}]'",
                catalog=name,
            ) from problem
        except Exception as problem:  # as above
            raise EngineError(
                f"catalog {name} could not be opened: {describe_error(problem)}",
                state=UNTOUCHED,
                hint="errata doctor",
                catalog=name,
            ) from problem
        return self._open[name]


def describe_error(problem: BaseException) -> str:
    """The type and first line of a driver's error; the rest repeats statements and links to manuals."""
    return cause_of(problem)


def is_driver_error(error: BaseException) -> bool:
    """Whether a catalog's driver raised this; such exceptions have no common base."""
    return isinstance(error, Exception) and not isinstance(error, ErrataError)


class IcebergMetadata:
    """Reads targets, inputs and table descriptions."""

    def __init__(self, tables: TableLoader) -> None:
        self._tables = tables

    def describe(self, table: str) -> TableDescription:
        """Columns and partition fields, for `check` and `adopt`."""
        from errata.engines.iceberg.metadata.partition_fields import list_columns, list_partition_fields

        found = self._tables.load_named(table)
        schema, snapshot = found.schema(), found.metadata.current_snapshot()
        return TableDescription(
            table=table,
            table_uuid=str(found.metadata.table_uuid),
            columns=list_columns(schema),
            partition_fields=list_partition_fields(found.spec(), schema),
            snapshot_id=str(snapshot.snapshot_id) if snapshot else None,
            format_version=found.metadata.format_version,
            identifier_columns=tuple(sorted(schema.identifier_field_names())),
            properties=dict(found.properties),
        )

    def read_target(self, table: str, column: str, grain: Grain, partitions: Sequence[str] | None) -> TargetState:
        """Totals of every partition, and the expected files of the requested ones, by default of all."""
        from errata.engines.iceberg.metadata.data_files import scan_target
        from errata.engines.iceberg.metadata.partition_fields import (
            find_partition_field,
            list_columns,
            list_partition_fields,
        )

        found = self._tables.load_named(table)
        schema, spec, snapshot = found.schema(), found.spec(), found.metadata.current_snapshot()
        live = scan_target(found, snapshot, column, grain, partitions)
        return TargetState(
            table=table,
            table_uuid=str(found.metadata.table_uuid),
            base_snapshot_id=str(snapshot.snapshot_id) if snapshot else None,
            base_timestamp_ms=snapshot.timestamp_ms if snapshot else None,
            schema_id=schema.schema_id,
            spec_id=spec.spec_id,
            format_version=found.metadata.format_version,
            columns=list_columns(schema),
            partition_fields=list_partition_fields(spec, schema),
            partition_field=find_partition_field(spec, schema, column, grain),
            partitions=live.totals,
            expected=live.expected,
            fingerprints=live.fingerprints,
            shared_files=tuple(entry.path for entry in live.shared),
            shared_rows=sum(entry.rows for entry in live.shared),
            shared_bytes=sum(entry.size for entry in live.shared),
            writers=live.writers,
            unreadable_values=live.unreadable,
            unnameable=live.unnameable,
            properties=dict(found.properties),
            refs={name: str(ref.snapshot_id) for name, ref in found.metadata.refs.items()},
            last_column_id=found.metadata.last_column_id,
        )

    def read_input(self, source: Input, grain: Grain, partitions: Sequence[str]) -> InputState:
        """The input's current snapshot, or the one tagged with its version, mapped to partitions of the product."""
        from errata.engines.iceberg.metadata.arrival import find_newest_value, find_watermark_problem
        from errata.engines.iceberg.metadata.data_files import scan_input

        if source.table is None:
            raise UsageError(f"input {source.name} names no table")
        found = self._tables.load_named(source.table)
        snapshot, problem = _resolve_version(found, source)
        known = {field.name: str(field.field_type) for field in found.schema().fields}
        if source.partition is not None and source.partition not in known:
            problem = f"input {source.name}: {source.table} has no column {source.partition}"
        rule, arrival = source.complete, None
        if rule is not None and rule.watermark is not None:
            why = find_watermark_problem(found, source.table, rule.watermark)
            problem = f"input {source.name}: {why}" if why else problem
            newest = None if why else find_newest_value(found, snapshot, rule.watermark, rule.latest_ms)
            arrival = Arrival(watermark_ms=newest.at_ms, ignored=newest.ignored) if newest else None
        live = scan_input(found, snapshot, None if problem else source.partition, grain, partitions)
        if rule is not None and rule.rows_from is not None:
            arrival = Arrival(uncounted=live.uncounted)
        return InputState(
            name=source.name,
            kind="table",
            location=source.table,
            column_type=known.get(source.partition or ""),
            partitions=live.partitions,
            whole=live.whole,
            snapshot_id=str(snapshot.snapshot_id) if snapshot else None,
            table_uuid=str(found.metadata.table_uuid),
            newest_ms=snapshot.timestamp_ms if snapshot else None,
            oldest=live.oldest,
            note=live.note,
            problem=problem,
            schemas=(_read_snapshot_types(found, snapshot),) if source.needs_schema else (),
            arrival=arrival,
        )

    def read_announced(self, source: Input, grain: Grain, partitions: Sequence[str]) -> Mapping[str, int]:
        """Rows that the partitions of an input should have, by the table that its product names."""
        from errata.engines.iceberg.metadata.arrival import read_announced_rows

        if source.complete is None or source.partition is None:
            return {}
        name, column = source.complete.announcing_table
        return read_announced_rows(self._tables.load_named(name), name, source.partition, column, grain, partitions)

    def find_near_miss(self, _source: Input) -> NearMiss | None:
        """None: a table is named, not searched for."""
        return None


def _resolve_version(table: Table, source: Input) -> tuple[Snapshot | None, str | None]:
    """The snapshot to read, and the problem if there is none; a branch is not a version, because it moves."""
    if source.snapshot_id is not None:
        found = table.metadata.snapshot_by_id(int(source.snapshot_id))
        gone = f"input {source.name}: snapshot {source.snapshot_id} of {source.table} is gone"
        return found, None if found else gone
    if source.version is None:
        return table.metadata.current_snapshot(), None
    tags = {name: ref for name, ref in table.metadata.refs.items() if ref.snapshot_ref_type == "tag"}
    if source.version not in tags:
        known = ", ".join(sorted(name for name in tags if not name.startswith(PREFIX))) or "none"
        return None, f"input {source.name}: {source.table} has no tag {source.version}; its tags: {known}"
    return table.metadata.snapshot_by_id(tags[source.version].snapshot_id), None


def _read_snapshot_types(table: Table, snapshot: Snapshot | None) -> dict[str, str]:
    """Column types of the pinned snapshot, whose schema may be older than the table's."""
    from errata.engines.iceberg.metadata.partition_fields import column_types

    if snapshot is None or snapshot.schema_id is None:
        return column_types(table.schema())
    return column_types(table.schemas()[snapshot.schema_id])


_target: type[TargetReader] = IcebergMetadata
_input: type[InputReader] = IcebergMetadata
_table: type[TableReader] = IcebergMetadata
