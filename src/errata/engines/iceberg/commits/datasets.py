"""Make an Iceberg table of Parquet files that exist, through pyiceberg: table and files in one commit.

The files have no field ids, so the table maps names to ids. Values of columns that only folders have are in the
partitions of the metadata, where every reader of Iceberg looks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from errata.engines.iceberg.catalogs import split_table
from errata.engines.iceberg.metadata.tables import TableLoader, describe_error
from errata.errors import EngineError, ErrataError, SourceChanged, StateRefused
from errata.failpoints import failpoint
from errata.model.dataset.parquet_files import Dataset, ParquetFile, Value, find_partition_types
from errata.ports.datasets import DatasetTables, TakenOver

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_DIGEST = "errata.dataset"
_FIRST_PARTITION_ID = 1000
_EPOCH = date(1970, 1, 1)


class IcebergDatasets:
    """Tables made of files that exist."""

    def __init__(self, catalogs: TableLoader) -> None:
        self._catalogs = catalogs

    def find(self, table: str, digest: str) -> TakenOver | None:
        """See the port."""
        name, identifier = split_table(table)
        try:
            if not self._catalogs.open(name).table_exists(identifier):
                return None
        except ErrataError:
            raise
        except Exception as problem:  # catalogs raise their drivers' exceptions, which have no common base
            raise EngineError(f"catalog {name} did not answer: {describe_error(problem)}") from problem
        found = self._catalogs.load(table)
        first = found.snapshots()[0] if found.snapshots() else None
        if first is None or first.summary is None or first.summary.additional_properties.get(_DIGEST) != digest:
            raise StateRefused(
                f"{table} was not made; there is a table of this name that does not come from these files",
                state="nothing was changed",
                hint=f"give it another name, or draft a product file for it as it is: errata adopt {table}",
            )
        return _describe(found, str(first.snapshot_id), already=True)

    def take_over(self, table: str, dataset: Dataset) -> TakenOver:
        """See the port."""
        name, identifier = split_table(table)
        try:
            catalog = self._catalogs.open(name)
            catalog.create_namespace_if_not_exists(identifier[:-1])
            made = _commit(catalog, identifier, dataset, find_partition_types(dataset))
        except ErrataError:
            raise
        except Exception as problem:  # as above
            raise EngineError(
                f"{table} could not be made of the files: {describe_error(problem)}",
                state="the files are unchanged; the table is there as a whole or not at all",
                hint="repeat the command",
            ) from problem
        found = _describe(made, str(made.metadata.current_snapshot_id))
        wanted = (len(dataset.files), dataset.rows, len({one.folders for one in dataset.files}))
        if (found.files, found.rows, found.partitions) != wanted:
            raise EngineError(
                f"{table} has {found.files} files with {found.rows} rows in {found.partitions} partitions; the footers "
                f"say {wanted[0]}, {wanted[1]} and {wanted[2]}",
                state="the files are unchanged; drop the table without purging it",
            )
        return found


def _commit(catalog: Any, identifier: tuple[str, ...], dataset: Dataset, types: Mapping[str, str]) -> Table:
    from pyiceberg.io import load_file_io
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    io = load_file_io(catalog.properties, dataset.path)
    schema = _build_schema(io, dataset, types)
    fields = [
        PartitionField(schema.find_field(key).field_id, _FIRST_PARTITION_ID + n, IdentityTransform(), key)
        for n, key in enumerate(types)
    ]
    change = catalog.create_table_transaction(
        identifier, schema, partition_spec=PartitionSpec(*fields), properties={"format-version": "2"}
    )
    mapping = change.table_metadata.schema().name_mapping.model_dump_json()
    change.set_properties({"schema.name-mapping.default": mapping})
    with change.update_snapshot(snapshot_properties={_DIGEST: dataset.digest}).fast_append() as append:
        for file in _iterate_data_files(io, change.table_metadata, dataset, types):
            append.append_data_file(file)
    failpoint("dataset.before_commit")
    made: Table = change.commit_transaction()
    failpoint("dataset.after_commit")
    return made


def _build_schema(io: FileIO, dataset: Dataset, types: Mapping[str, str]) -> Schema:
    """The columns of the files, none of them required, and after them those that only folders have."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    kinds = {"date": pa.date32(), "int": pa.int32(), "long": pa.int64(), "string": pa.string()}
    stored = _read_footer(io, dataset, dataset.files[0])[0].schema.to_arrow_schema()
    fields = [one.with_nullable(True).remove_metadata() for one in stored]  # noqa: FBT003 - its only argument
    fields += [pa.field(key, kinds[kind]) for key, kind in types.items() if key not in stored.names]
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(pa.schema(fields)))


def _iterate_data_files(
    io: FileIO, metadata: TableMetadata, dataset: Dataset, types: Mapping[str, str]
) -> Iterator[DataFile]:
    """Each file with its statistics and the partition that its folders say."""
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    schema = metadata.schema()
    plan, ids = compute_statistics_plan(schema, metadata.properties), parquet_path_to_id_mapping(schema)
    for one in dataset.files:
        footer, path = _read_footer(io, dataset, one)
        statistics = data_file_statistics_from_parquet_metadata(footer, plan, ids)
        values = [_to_value(value, types[key]) for key, value in one.folders]
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(*values),
            file_size_in_bytes=one.size,
            sort_order_id=None,
            spec_id=metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )


def _read_footer(io: FileIO, dataset: Dataset, one: ParquetFile) -> tuple[Any, str]:
    """Footer and path of a file; raises ``SourceChanged`` if it is not the file that was looked at."""
    from pyarrow import parquet

    path = f"{dataset.path}/{one.path}"
    input_file = io.new_input(path)
    with input_file.open() as stream:
        footer = parquet.read_metadata(stream)
    if (len(input_file), footer.num_rows) != (one.size, one.rows):
        raise SourceChanged(
            f"{path} changed while the table was made",
            state="nothing was changed",
            hint="repeat the command when its writer is done",
        )
    return footer, path


def _to_value(value: Value, kind: str) -> Any:
    """A value as manifests have it: dates are days since 1970."""
    if value is None or kind == "string":
        return value
    return (date.fromisoformat(value) - _EPOCH).days if kind == "date" else int(value)


def _describe(table: Table, snapshot_id: str, *, already: bool = False) -> TakenOver:
    """What the metadata says, entry by entry."""
    snapshot = table.snapshot_by_id(int(snapshot_id))
    manifests = snapshot.manifests(table.io) if snapshot else []
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    spec = len(table.spec().fields)
    places = {tuple(entry.data_file.partition[n] for n in range(spec)) for entry in entries}
    rows = sum(entry.data_file.record_count for entry in entries)
    return TakenOver(snapshot_id, len({entry.data_file.file_path for entry in entries}), rows, len(places), already)


_conforms: type[DatasetTables] = IcebergDatasets
