"""Delete files as Flink and CDC sinks write them: real ones, by Iceberg's own writers, committed as row deltas.

Spark reads what they leave; pyiceberg refuses equality deletes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from support.world import TABLE, World

__all__ = ["add_deletes", "delete_files", "delete_position", "delete_rows", "rows_by_spark"]


def delete_rows(world: World, *, partition: str | None, **values: str) -> str:
    """Delete the rows that have these values by an equality delete; no partition is a global one. Answers its path."""
    java = world.engines.java
    jvm, table = java.jvm, java.load(TABLE)
    names = jvm.java.util.ArrayList()
    ids = java._gateway.new_array(jvm.int, len(values))
    for n, name in enumerate(values):
        names.add(name)
        ids[n] = table.schema().findField(name).fieldId()
    schema = table.schema().select(names)
    spec, place = _place(java, table, partition)
    writer = _factory(java, table, spec, ids, schema).newEqDeleteWriter(
        _output(java, table, spec, place), jvm.org.apache.iceberg.FileFormat.PARQUET, place
    )
    record = jvm.org.apache.iceberg.data.GenericRecord.create(schema)
    for name, value in values.items():
        record.setField(name, jvm.java.time.LocalDate.parse(value) if name == "day" else value)
    writer.write(record)
    writer.close()
    return add_deletes(world, writer.toDeleteFile())


def delete_position(world: World, path: str, position: int, *, partition: str) -> str:
    """Delete one row of a data file, whether or not that file is live; answers the delete file's path."""
    java = world.engines.java
    jvm, table = java.jvm, java.load(TABLE)
    spec, place = _place(java, table, partition)
    writer = _factory(java, table, spec).newPosDeleteWriter(
        _output(java, table, spec, place), jvm.org.apache.iceberg.FileFormat.PARQUET, place
    )
    writer.write(jvm.org.apache.iceberg.deletes.PositionDelete.create().set(path, position))
    writer.close()
    return add_deletes(world, writer.toDeleteFile())


def add_deletes(world: World, file: Any) -> str:
    """Commit a delete file as a row delta that asks nothing of the table of before."""
    table = world.engines.java.load(TABLE)
    head = table.currentSnapshot().snapshotId()
    table.newRowDelta().validateFromSnapshot(head).addDeletes(file).commit()
    return str(file.location())


def delete_files(world: World) -> Mapping[str, Any]:
    """Path → delete file (in Java) of main's head."""
    java = world.engines.java
    table, found = java.load(TABLE), {}
    manifests = table.currentSnapshot().deleteManifests(table.io()).iterator()
    while manifests.hasNext():
        reader = java.jvm.org.apache.iceberg.ManifestFiles.readDeleteManifest(
            manifests.next(), table.io(), table.specs()
        )
        files = reader.iterator()
        while files.hasNext():
            file = files.next().copy()
            found[str(file.location())] = file
    return found


def rows_by_spark(world: World) -> list[tuple[str, str, Decimal, int]]:
    """Business columns of every row, sorted."""
    return sorted(tuple(row) for row in world.sql(f"SELECT string(day), account, gross, n FROM {TABLE}"))


def _place(java: Any, table: Any, partition: str | None) -> tuple[Any, Any]:
    """Spec and partition value: a day of the current spec, or the table's first spec, which has no partitions."""
    if partition is None:
        spec = next(one for one in table.specs().values() if one.isUnpartitioned())
        return spec, java.jvm.org.apache.iceberg.PartitionData(spec.partitionType())
    place = java.jvm.org.apache.iceberg.PartitionData(table.spec().partitionType())
    place.put(0, (date.fromisoformat(partition) - date(1970, 1, 1)).days)
    return table.spec(), place


def _factory(java: Any, table: Any, spec: Any, ids: Any = None, schema: Any = None) -> Any:
    """Iceberg's own writers of generic records; the newer factory of 1.11 is not public in 1.10."""
    none = java.jvm.java.util.HashMap()
    kind = java.jvm.org.apache.iceberg.data.GenericAppenderFactory
    return kind(table, table.schema(), spec, none, ids, schema, None)


def _output(java: Any, table: Any, spec: Any, place: Any) -> Any:
    jvm = java.jvm
    factory = jvm.org.apache.iceberg.io.OutputFileFactory.builderFor(table, 1, 1)
    made = factory.format(jvm.org.apache.iceberg.FileFormat.PARQUET).build()
    return made.newOutputFile(spec, place)
