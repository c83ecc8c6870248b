"""Check that a table still has the schema and partitioning that a publication or rollback needs. Pure.

A run is published only into exactly the table it was planned for. A rollback exchanges files that are known by path,
and Iceberg commits files of older partition specs, so it needs less: the same table, and its partition column.
"""

from __future__ import annotations

from errata.model.manifest import TargetPin
from errata.model.table import describe_planned_schema, find_columns_to_add
from errata.ports.publish import TableVersion
from errata.publishing.messages import drift_error, dropped_error


def require_planned_shape(run_id: str, product: str, target: TargetPin, version: TableVersion) -> None:
    """Refuse a table, partition column, schema or partition spec other than the planned one."""
    _require_same_table(run_id, product, target, version)
    if version.column != target.column:
        raise drift_error(run_id, product, target.table, "partition column", target.column, version.column or "none")
    if find_columns_to_add(target, version.schema) is None:
        raise drift_error(run_id, product, target.table, "", describe_planned_schema(target), version.schema)
    if version.spec_id != target.spec_id:
        raise drift_error(run_id, product, target.table, "partition spec id", target.spec_id, version.spec_id)


def require_partition_column(run_id: str, product: str, target: TargetPin, version: TableVersion) -> None:
    """Refuse another table, or one that has lost the partition column (a renamed column is fine)."""
    _require_same_table(run_id, product, target, version)
    if version.column is None:
        raise dropped_error(run_id, product, target.table, target.column)


def _require_same_table(run_id: str, product: str, target: TargetPin, version: TableVersion) -> None:
    if version.table_uuid != target.table_uuid:
        raise drift_error(run_id, product, target.table, "table", target.table_uuid, version.table_uuid)
