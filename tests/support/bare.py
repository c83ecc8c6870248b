"""An Iceberg table of metadata alone: real commits to a real catalog, data files that are only listed, and no Spark.

What the Iceberg adapter does is about metadata, so most of its rules can be shown on such a table within milliseconds.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from errata.engines.iceberg.commits.java import JavaIceberg
from errata.engines.iceberg.commits.publish import IcebergPublishing
from errata.engines.iceberg.commits.refs import append_written_files
from errata.model.manifest import TargetPin
from errata.model.partition import NULL, Grain
from errata.model.product import Catalog
from errata.ports.publish import PublicationCommit

__all__ = ["ACCOUNT", "AT", "DAY", "BareTable", "bare_iceberg", "days", "publishing"]

LOCAL = {"fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
DAY, ACCOUNT, AT = 1, 2, 3
"""Field ids of the columns."""


def bare_iceberg(gateway: Any, root: Path) -> JavaIceberg:
    """The adapter on an empty catalog of its own, in SQLite."""
    root.mkdir(exist_ok=True)
    lake = Catalog("lake", "jdbc", f"sqlite:///{root}/catalog.db", str(root / "warehouse"))
    (root / "catalog.db").touch()  # Errata opens catalogs and creates none
    java = JavaIceberg(gateway, {"lake": lake}, LOCAL)
    catalog, _ = java.place("lake.fin.any")
    catalog.createNamespace(java.find_class("org.apache.iceberg.catalog.Namespace").of(_texts(gateway, "fin")))
    return java


def _texts(gateway: Any, *texts: str) -> Any:
    array = gateway.new_array(gateway.jvm.String, len(texts))
    for n, text in enumerate(texts):
        array[n] = text
    return array


@dataclass
class BareTable:
    """Columns ``day`` (date), ``account`` (string) and ``at`` (timestamp), by default partitioned by the day."""

    java: JavaIceberg
    grain: Grain = Grain.DAY
    name: str = field(default_factory=lambda: f"lake.fin.t{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        catalog, identifier = self.java.place(self.name)
        spec = self._iceberg.PartitionSpec.builderFor(self._schema())
        spec = spec.identity("day") if self.grain is Grain.DAY else spec.hour("at")
        catalog.createTable(identifier, self._schema(), spec.build())

    @cached_property
    def _iceberg(self) -> Any:
        return self.java.find_class("org.apache.iceberg")  # a package; its classes are asked for by their full names

    def _schema(self) -> Any:
        fields, types = self.java.find_class("java.util.ArrayList")(), self._iceberg.types.Types
        for number, name, kind in (
            (DAY, "day", types.DateType.get()),
            (ACCOUNT, "account", types.StringType.get()),
            (AT, "at", types.TimestampType.withoutZone()),
        ):
            fields.add(types.NestedField.optional(number, name, kind))
        return self._iceberg.Schema(fields)

    @property
    def target(self) -> TargetPin:
        """The table as plans pin it."""
        column, kind, transform = (
            ("day", "date", "identity") if self.grain is Grain.DAY else ("at", "timestamp", "hour")
        )
        columns = {"day": "date", "account": "string", "at": "timestamp"}
        uuid_ = str(self.load().uuid().toString())
        return TargetPin(
            self.name, uuid_, None, 0, 0, column, kind, transform, self.grain, columns, (), "part", {}, 1
        )  # fmt: skip

    def load(self) -> Any:
        """A fresh handle."""
        return self.java.load(self.name)

    def file(self, partition: str, path: str = "", bounds: Mapping[int, Any] | None = None, rows: int = 1) -> Any:
        """A data file of a partition, with the bounds of columns; there is nothing at its path."""
        table = self.load()
        place = path or f"{table.location()}/data/{uuid.uuid4()}.parquet"
        made = self._iceberg.DataFiles.builder(table.spec()).withPath(place).withFileSizeInBytes(10)
        if bounds:
            made = made.withMetrics(self._metrics(rows, bounds))
        return made.withRecordCount(rows).withPartition(self._place(partition)).build()

    def deletes(self, columns: Iterable[int], bounds: Mapping[int, Any]) -> Any:
        """An equality delete under the table's current spec, which has to be the one without partitions."""
        table, ids = self.load(), list(columns)
        fields = self.java._gateway.new_array(self.java.jvm.int, len(ids))
        for n, number in enumerate(ids):
            fields[n] = number
        made = self._iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(fields)
        made = made.withPath(f"{table.location()}/data/{uuid.uuid4()}.parquet").withFileSizeInBytes(10)
        return made.withMetrics(self._metrics(1, bounds)).withRecordCount(1).build()

    def _metrics(self, rows: int, bounds: Mapping[int, Any]) -> Any:
        maps = [self.java.find_class("java.util.HashMap")() for _ in range(2)]
        for number, values in bounds.items():
            kind = self._schema().findType(number)
            for into, value in zip(maps, values, strict=True):
                into.put(number, self._iceberg.types.Conversions.toByteBuffer(kind, value))
        return self._iceberg.Metrics(rows, None, None, None, None, *maps)

    def _place(self, partition: str) -> Any:
        place = self._iceberg.PartitionData(self.load().spec().partitionType())
        if partition != NULL and self.grain is Grain.DAY:
            place.set(0, days(partition))
        elif partition != NULL:
            place.set(0, days(partition[:10]) * 24 + int(partition[11:]))
        return place

    def append(self, *files: Any, branch: str | None = None, **properties: str) -> str:
        """What others do: one commit that lists these files."""
        begun = self.load().newFastAppend()
        for file in files:
            begun.appendFile(file)
        if branch is not None:
            begun.toBranch(branch)
        for key, value in properties.items():
            begun.set(key.replace("_", "."), value)
        begun.commit()
        return self.refs()[branch or "main"]

    def written(self, branch: str | None, mark: str, *files: Any) -> str:
        """What Errata does with files that Spark has written."""
        name, found = f"errata_{uuid.uuid4().hex}", self.java.find_class("java.util.HashSet")()
        for file in files:
            found.add(file)
        rewrites = self._iceberg.spark.FileRewriteCoordinator.get()
        rewrites.stageRewrite(self.load(), name, found)
        try:
            return append_written_files(self.java, self.name, branch, name, ("errata.attempt", mark), {})
        finally:
            rewrites.clearRewrite(self.load(), name)

    def refs(self) -> dict[str, str]:
        """Every branch and tag with its snapshot."""
        refs = self.load().refs()
        return {str(name): str(refs.get(name).snapshotId()) for name in refs.keySet()}

    def ref(self, name: str) -> Any:
        """One of them, with how long it lives."""
        return self.load().refs().get(name)

    def paths(self, ref: str = "main") -> set[str]:
        """The data files that a reader of a ref is sent to."""
        return {str(file.location()) for file in self.listed(self.refs()[ref])}

    def listed(self, snapshot_id: str) -> list[Any]:
        """The data files of a snapshot, with their statistics."""
        found = self.load().newScan().useSnapshot(int(snapshot_id)).includeColumnStats().planFiles().iterator()
        files = []
        while found.hasNext():
            files.append(found.next().file())
        return files

    def expire(self) -> None:
        """What the table's owner does at night: keep nothing that nobody asked to be kept."""
        self.load().expireSnapshots().expireOlderThan(2**52).retainLast(1).cleanExpiredFiles(False).commit()  # noqa: FBT003

    def commit(self, publication_id: str, add_from: str, **options: Any) -> PublicationCommit:
        """A publication of all days that are named in the options."""
        return PublicationCommit(
            **{
                "publication_id": publication_id, "run_id": "bf-1", "manifest_digest": "", "partitions": (),
                "remove": (), "add": (), "add_from": (add_from,), "keep_refs": {}, "pre_days": 3,
                "properties": {"errata.publication": publication_id}, **options,
            }
        )  # fmt: skip


def publishing(table: BareTable) -> IcebergPublishing:
    """The adapter of publications; nothing here writes rows."""

    def spark() -> Any:
        raise AssertionError("Spark was asked for")

    return IcebergPublishing(table.java, spark)


def days(text: str) -> int:
    """Days since 1970."""
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()
