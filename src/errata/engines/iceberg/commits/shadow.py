"""The shadow of a target: a separate table for staged files that the target cannot hold yet.

A branch isolates data but not the schema, so a column added for a branch would be visible on main at once. The shadow
is a copy of the target's metadata without its history, under another name and location, with the new columns at exactly
the field ids that the target will give them, so that a file written for one reads correctly in the other. (CREATE TABLE
would assign other ids.) If the target is not partitioned by the product's partitions, the shadow gets them as an
additional field, so that each staged file belongs to one partition. The shadow never owns data: ``gc.enabled`` is off,
so that neither expiry nor purge of the shadow can delete a file that the target has taken over. Dropping the shadow
deletes only files that no snapshot of the target reads.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from errata.engines.iceberg.commits.java import JavaIceberg
from errata.engines.iceberg.commits.refs import retry_commit
from errata.errors import EngineError, NotFound, RunExpired
from errata.model.manifest import NewColumn, TargetPin
from errata.model.table import describe_planned_schema, find_columns_to_add

_HISTORY = (
    "snapshots",
    "refs",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-statistics",
    "current-snapshot-id",
)
_PARTITION = "errata_partition"
_PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def ensure_shadow(java: JavaIceberg, target: TargetPin, run_id: str) -> None:
    """Create the shadow if it does not exist; safe to repeat, also by several workers at once."""
    if target.shadow is None or _load_or_none(java, target.shadow):
        return
    table = java.load(target.table)
    schema = java.schema(table)
    missing = find_columns_to_add(target, schema)
    if missing is None:
        raise RunExpired(
            f"{target.table} changed after planning: expected {describe_planned_schema(target)}, found {schema}",
            state="nothing was staged; main is unchanged",
            hint=f"plan again with --supersede {run_id}",
        )
    parser = java.find_class("org.apache.iceberg.TableMetadataParser")
    copied = json.loads(parser.toJson(table.operations().current()))
    location = sibling_location(str(table.location()), target.shadow.rpartition(".")[2])
    made = build_shadow_metadata(copied, missing, str(uuid.uuid4()), location, run_id)
    made = add_partition_field(made, *java.field(table, target))
    place = f"{location}/metadata/00000-{uuid.uuid4()}.metadata.json"
    parser.write(parser.fromJson(place, json.dumps(made)), table.io().newOutputFile(place))
    retry_commit(lambda: _register(java, target.shadow or "", place))


def drop_shadow(java: JavaIceberg, target: TargetPin) -> bool:
    """Drop the shadow, its metadata and the staged files that no snapshot of the target reads; False if it was gone.

    Data files are deleted first: after a crash the shadow is still in the catalog, and the next call finishes the drop.
    """
    shadow = _load_or_none(java, target.shadow) if target.shadow else None
    if shadow is None or target.shadow is None:
        return False
    owner = _load_or_none(java, target.table)
    # if the target was dropped, renamed or recreated, its files are unknown, so no data file is deleted
    if owner is not None and str(owner.uuid().toString()) == target.table_uuid:
        java.bulk.deleteUnused(shadow.io(), java.bulk.paths(shadow), java.bulk.paths(owner))
    metadata = shadow.operations().current()
    catalog, identifier = java.place(target.shadow)
    catalog.dropTable(identifier, False)  # noqa: FBT003 - without purge
    # with gc.enabled off this deletes metadata and manifests, but no data file
    java.find_class("org.apache.iceberg.CatalogUtil").dropTableData(shadow.io(), metadata)
    return True


def sibling_location(location: str, name: str) -> str:
    """A location next to a table, not inside it, where the table's orphan removal would delete the shadow's files.

    >>> sibling_location("s3://lake/fin/daily/", "shadow"), sibling_location("file:/wh/daily", "shadow")
    ('s3://lake/fin/shadow', 'file:/wh/shadow')
    """
    if not urlsplit(location).path.strip("/"):
        raise EngineError(
            f"no place beside {location} was found for a table; expected a target below the root of its store",
            state="nothing was staged; main is unchanged",
            hint="add the columns with ALTER TABLE, or move the table",
        )
    return f"{location.rstrip('/').rpartition('/')[0]}/{name}"


def build_shadow_metadata(
    target: Mapping[str, Any], new: Sequence[NewColumn], table_uuid: str, location: str, run_id: str
) -> dict[str, Any]:
    """Metadata for a target's shadow: no history, another location, the new columns with their field ids. Pure."""
    made = {key: value for key, value in target.items() if key not in _HISTORY}
    made |= {"table-uuid": table_uuid, "location": location, "last-sequence-number": 0, "snapshots": []}
    if "next-row-id" in made:
        made["next-row-id"] = 0
    properties = {key: value for key, value in made.get("properties", {}).items() if key not in _PATH_PROPERTIES}
    made["properties"] = properties | {"gc.enabled": "false", "errata.run": run_id}
    if new:
        schemas = list(made["schemas"])
        current = next(schema for schema in schemas if schema["schema-id"] == made["current-schema-id"])
        number = max(schema["schema-id"] for schema in schemas) + 1
        added = [{"id": each.field_id, "name": each.name, "required": False, "type": each.type} for each in new]
        schemas.append({**current, "schema-id": number, "fields": [*current["fields"], *added]})
        made |= {"schemas": schemas, "current-schema-id": number, "last-column-id": new[-1].field_id}
        made.pop("schema", None)  # format 1 repeats the current schema
    return made


def add_partition_field(table: Mapping[str, Any], source_id: int, transform: str) -> dict[str, Any]:
    """The metadata with this partition field in the current spec; unchanged if the field is already there. Pure."""
    specs = list(table["partition-specs"])
    current = next(spec for spec in specs if spec["spec-id"] == table["default-spec-id"])
    if any((field["source-id"], field["transform"]) == (source_id, transform) for field in current["fields"]):
        return dict(table)
    field_id = table["last-partition-id"] + 1
    number = max(spec["spec-id"] for spec in specs) + 1
    field = {"name": _PARTITION, "transform": transform, "source-id": source_id, "field-id": field_id}
    specs.append({"spec-id": number, "fields": [*current["fields"], field]})
    made = {**table, "partition-specs": specs, "default-spec-id": number, "last-partition-id": field_id}
    made.pop("partition-spec", None)  # format 1 repeats the current spec
    return made


def _load_or_none(java: JavaIceberg, table: str) -> Any:
    try:
        return java.load(table)
    except NotFound:
        return None


def _register(java: JavaIceberg, shadow: str, place: str) -> None:
    """Register the shadow if it does not exist; safe to retry, because every try names the same metadata."""
    from py4j.protocol import Py4JJavaError

    if _load_or_none(java, shadow):
        return
    catalog, identifier = java.place(shadow)
    try:
        catalog.registerTable(identifier, place)
    except Py4JJavaError:
        # another worker may have been faster, and its shadow serves as well
        if not _load_or_none(java, shadow):
            raise
