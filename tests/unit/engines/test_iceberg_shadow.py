"""The shadow's metadata: the target's field ids and partition specs, none of its history, nothing of its place."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from errata.engines.iceberg.commits.shadow import add_partition_field, build_shadow_metadata, sibling_location
from errata.errors import EngineError
from errata.model.manifest import NewColumn

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
TARGET: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "5d1c2f3e-0000-4000-8000-000000000000",
    "location": "file:///wh/fin/sales",
    "last-sequence-number": 34,
    "last-updated-ms": 1602638573590,
    "last-column-id": 7,
    "current-schema-id": 2,
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "day", "required": True, "type": "date"}]},
        {
            "type": "struct",
            "schema-id": 2,
            "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "day", "required": True, "type": "date"},
                {"id": 5, "name": "gross", "required": False, "type": "decimal(12, 2)"},
            ],
        },
    ],
    "default-spec-id": 0,
    "partition-specs": [
        {"spec-id": 0, "fields": [{"name": "day", "transform": "identity", "source-id": 1, "field-id": 1000}]}
    ],
    "last-partition-id": 1000,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "properties": {"write.data.path": "file:///wh/fin/sales/elsewhere", "owner": "fin", "gc.enabled": "true"},
    "current-snapshot-id": 3055729675574597004,
    "snapshots": [
        {
            "snapshot-id": 3055729675574597004,
            "timestamp-ms": 1555100955770,
            "sequence-number": 1,
            "summary": {"operation": "append"},
            "manifest-list": "file:///wh/fin/sales/metadata/1.avro",
            "schema-id": 2,
        }
    ],
    "snapshot-log": [{"snapshot-id": 3055729675574597004, "timestamp-ms": 1555100955770}],
    "metadata-log": [],
    "refs": {"main": {"snapshot-id": 3055729675574597004, "type": "branch"}},
}
NEW = (NewColumn("events", "long", 8), NewColumn("largest", "decimal(12, 2)", 9))


def made(**changed: Any) -> Any:
    """The shadow as an independent reader parses it."""
    found = build_shadow_metadata(deepcopy(TARGET) | changed, NEW, UUID, "file:///wh/fin/shadow", "bf-1")
    return TableMetadataUtil.parse_obj(found)


def test_files_written_for_the_shadow_carry_the_ids_that_the_target_will_give():
    """Columns of before keep theirs, also where ids have gaps; new ones come after the last id ever given."""
    shadow = made()
    schema = shadow.schema()
    assert {field.name: field.field_id for field in schema.fields} == {"day": 1, "gross": 5, "events": 8, "largest": 9}
    assert [str(field.field_type) for field in schema.fields[2:]] == ["long", "decimal(12, 2)"]
    assert not any(field.required for field in schema.fields[2:])
    assert (shadow.last_column_id, schema.schema_id, schema.identifier_field_ids) == (9, 3, [1])
    assert shadow.partition_specs == TableMetadataUtil.parse_obj(deepcopy(TARGET)).partition_specs


def test_the_shadow_has_no_history_and_another_place():
    """No snapshot of the target is kept alive or expired through it, and none of its files lies in the target."""
    shadow = made()
    assert (shadow.snapshots, shadow.refs, shadow.snapshot_log, shadow.current_snapshot_id) == ([], {}, [], None)
    assert (str(shadow.table_uuid), shadow.location) == (UUID, "file:///wh/fin/shadow")
    assert (shadow.last_sequence_number, shadow.properties.get("write.data.path")) == (0, None)


def test_no_expiry_and_no_purge_of_the_shadow_may_delete_data():
    """Its files are the target's once they are published."""
    assert made().properties == {"owner": "fin", "gc.enabled": "false", "errata.run": "bf-1"}


def test_the_target_is_left_as_it_was():
    """The copy shares nothing with what it was copied from."""
    before = deepcopy(TARGET)
    build_shadow_metadata(TARGET, NEW, UUID, "file:///elsewhere", "bf-1")
    assert before == TARGET


def test_a_target_at_the_root_of_its_store_has_no_place_beside_it():
    """Another bucket would be the next place, and nobody gave that away."""
    assert sibling_location("s3://lake/daily", "shadow") == "s3://lake/shadow"
    with pytest.raises(EngineError, match="below the root"):
        sibling_location("s3://lake/", "shadow")


def test_a_shadow_of_wider_partitions_has_the_products_own_as_one_more_field() -> None:
    """Under a new spec and a new field id; the target's fields keep theirs, so a file can be placed in either."""
    made = add_partition_field(TARGET, 5, "month")
    parsed = TableMetadataUtil.parse_obj(made)
    assert [(f.field_id, f.source_id, str(f.transform)) for f in parsed.spec().fields] == [
        (1000, 1, "identity"), (1001, 5, "month"),
    ]  # fmt: skip
    assert (parsed.default_spec_id, parsed.last_partition_id) == (1, 1001)
    assert TARGET["default-spec-id"] == 0
    plain = {**TARGET, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999}
    assert [
        f.field_id for f in TableMetadataUtil.parse_obj(add_partition_field(plain, 1, "identity")).spec().fields
    ] == [1000]


def test_a_spec_that_has_the_field_stays_as_it_is() -> None:
    """New columns alone need no other partitions."""
    assert add_partition_field(TARGET, 1, "identity") == TARGET
