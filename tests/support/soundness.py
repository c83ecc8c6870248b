"""Whether a table is whole for everyone else who uses it: readers of every snapshot, and the owner's expiry."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from pyiceberg.catalog import load_catalog

from support.world import TABLE, World

__all__ = ["expire_with_java", "expire_with_spark", "spark_rows", "unreadable"]


def unreadable(world: World) -> list[str]:
    """Snapshots of any table of the lake that cannot be opened, with the file that is missing; by pyiceberg."""
    found = []
    with closing(load_catalog("lake", **world.lake.pyiceberg)) as catalog:
        names = [name for space in catalog.list_namespaces() for name in catalog.list_tables(space)]
        for name in names:
            table = catalog.load_table(name)
            for snapshot in table.snapshots():
                try:
                    for manifest in snapshot.manifests(table.io):
                        manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                except FileNotFoundError as gone:
                    told = snapshot.summary.additional_properties if snapshot.summary else {}
                    mine = {key: value for key, value in told.items() if key.startswith("errata.")}
                    found.append(f"{'.'.join(name)} snapshot {snapshot.snapshot_id} {mine}: {gone}")
    return found


def spark_rows(world: World) -> list[tuple[Any, ...]]:
    """Business columns of every row of main, by Spark, sorted."""
    rows = world.sql(f"SELECT day, account, gross, n FROM {TABLE}")
    return sorted((str(row.day), row.account, row.gross, row.n) for row in rows)


def expire_with_spark(world: World) -> None:
    """The owner's nightly procedure, which keeps nothing that no ref asks for."""
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => timestamp'2100-01-01', retain_last => 1)"
    )


def expire_with_java(world: World) -> None:
    """The same by Iceberg's Java API."""
    jvm: Any = world.spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(world.spark._jsparkSession, TABLE)
    table.expireSnapshots().expireOlderThan(int(time.time() * 1000) + 1000).retainLast(1).commit()
