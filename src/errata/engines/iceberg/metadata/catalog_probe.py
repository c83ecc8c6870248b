"""Find out whether a catalog keeps branches and tags, with a temporary table or without writing. No JVM."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errata.engines.iceberg.metadata.tables import TableLoader, describe_error
from errata.errors import EngineError, ErrataError
from errata.model.refs import DAY_MS

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as IcebergCatalog
    from pyiceberg.table import Table

_PREFIX = "errata_probe_"


@dataclass(frozen=True, slots=True)
class RefSupport:
    """What the catalog kept when the table was reloaded; ``refused`` is its error for the commit that added refs."""

    branch: bool
    tag: bool
    retention: bool
    register_table: bool
    refused: str = ""


def find_hidden_refs(table: Table) -> tuple[str, ...]:
    """Branches and tags that are in the table's metadata file but that the catalog does not show.

    Only a REST catalog builds its own metadata responses; the others return the file. Empty if the file cannot be read
    from here.
    """
    # the module of a REST catalog is loaded when one is opened; to load it here takes 0.1 s with every other catalog
    rest = sys.modules.get("pyiceberg.catalog.rest")
    if rest is None or not isinstance(table.catalog, rest.RestCatalog):
        return ()
    from pyiceberg.serializers import FromInputFile

    try:
        written = FromInputFile.table_metadata(table.io.new_input(table.metadata_location)).refs
    except Exception:  # noqa: BLE001 (storage libraries raise what they like)
        return ()
    return tuple(sorted(set(written) - set(table.metadata.refs)))


def probe_catalog(tables: TableLoader, catalog: str, namespace: tuple[str, ...]) -> RefSupport:
    """Create a table in this namespace, add a branch and a tag, register it a second time, and drop both."""
    try:
        opened = tables.open(catalog)
        with _temporary_table(opened, namespace) as (table, copy):
            refused = _add_refs(table)
            refs = opened.load_table(table.name()).metadata.refs
            branch, tag = refs.get("probe_branch"), refs.get("probe_tag")
            return RefSupport(
                branch=branch is not None,
                tag=tag is not None,
                retention=all(ref is not None and ref.max_ref_age_ms == DAY_MS for ref in (branch, tag)),
                register_table=_can_register(opened, copy, table),
                refused=refused,
            )
    except ErrataError:
        raise
    except Exception as problem:  # catalogs raise their drivers' exceptions, which have no common base
        place = ".".join((catalog, *namespace))
        raise EngineError(
            f"no table could be tried in {place}: {describe_error(problem)}", catalog=catalog
        ) from problem


@contextmanager
def _temporary_table(catalog: IcebergCatalog, namespace: tuple[str, ...]) -> Iterator[tuple[Table, tuple[str, ...]]]:
    """A table with one empty snapshot, and an unused name for a copy; both are dropped on exit."""
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField

    name = f"{_PREFIX}{secrets.token_hex(4)}"
    first, copy = (*namespace, name), (*namespace, f"{name}_copy")
    try:
        table = catalog.create_table(first, Schema(NestedField(1, "n", IntegerType(), required=False)))
        with table.transaction() as transaction, transaction.update_snapshot().fast_append():
            pass
        yield catalog.load_table(first), copy
    finally:
        # both tables share files: drop the copy without purging, then purge the original
        for drop, identifier in ((catalog.drop_table, copy), (catalog.purge_table, first)):
            try:
                drop(identifier)
            except NoSuchTableError:
                continue
            except Exception as problem:
                left = ".".join(identifier)
                raise EngineError(
                    f"table {left} was made to try refs and is still there: {describe_error(problem)}"
                ) from problem


def _add_refs(table: Table) -> str:
    snapshot = table.current_snapshot()
    if snapshot is None:
        return "the catalog kept no snapshot"
    refs = table.manage_snapshots().create_branch(snapshot.snapshot_id, "probe_branch", max_ref_age_ms=DAY_MS)
    try:
        refs.create_tag(snapshot.snapshot_id, "probe_tag", max_ref_age_ms=DAY_MS).commit()
    except Exception as problem:  # noqa: BLE001 (as above; what was refused is the answer)
        return describe_error(problem)
    return ""


def _can_register(catalog: IcebergCatalog, copy: tuple[str, ...], table: Table) -> bool:
    try:
        catalog.register_table(copy, catalog.load_table(table.name()).metadata_location)
    except Exception:  # noqa: BLE001 (as above)
        return False
    return True
