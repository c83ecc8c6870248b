"""The list of erased subjects: an Iceberg table of keyed hashes, created, read and appended to with pyiceberg.

The list only grows, through :meth:`IcebergErasureList.add`; its newest snapshot is the watermark. Concurrent additions
retry after a lost race.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from errata.engines.iceberg.metadata.tables import TableLoader, describe_error, is_driver_error
from errata.engines.retry import TRIES, retry
from errata.errors import EngineError, ErrataError, KeyRefused, NotFound
from errata.model.product.erasure import KEY_CHECK, SUBJECT, ErasurePin, build_hasher, compute_key_check
from errata.ports.erasure import ErasedSubjects

if TYPE_CHECKING:
    from pyiceberg.table import Table


class IcebergErasureList:
    """The erasure list of a project."""

    def __init__(self, tables: TableLoader, table: str, key: Callable[[], bytes]) -> None:
        self._tables, self._key = tables, key
        self.table = table

    def watermark(self) -> str:
        """See the port."""
        snapshot = self._load().metadata.current_snapshot()
        return str(snapshot.snapshot_id) if snapshot else ""

    def read_pin(self, columns: Sequence[str]) -> ErasurePin:
        """See the port."""
        metadata = self._load().metadata
        snapshot = metadata.current_snapshot()
        return ErasurePin(
            self.table,
            str(metadata.table_uuid),
            metadata.properties.get(KEY_CHECK, ""),
            str(snapshot.snapshot_id) if snapshot else None,
            (snapshot.sequence_number or 0) if snapshot else 0,
            tuple(columns),
        )

    def _load(self) -> Table:
        try:
            return self._tables.load(self.table)
        except NotFound as error:
            raise NotFound(
                f"the list of erased subjects {self.table} was not found; expected it where a product names subjects",
                state="nothing was changed",
                hint='errata erase add --from FILE --reason "…" makes it; an empty FILE will do',
            ) from error

    def read_listed(self) -> frozenset[str]:
        """See the port."""
        return frozenset(_read_hashes(self._load()))

    def hasher(self) -> Callable[[str], str]:
        """See the port."""
        return self._hasher(self._load())

    def add(self, subjects: Collection[str]) -> int:
        """See the port."""
        from pyiceberg.schema import Schema
        from pyiceberg.types import NestedField, StringType

        schema = Schema(NestedField(1, SUBJECT, StringType(), required=True))
        self._tables.create(self.table, schema, {"format-version": "2", KEY_CHECK: compute_key_check(self._key())})
        added: set[str] = set()
        try:
            # a lost race, no answer or a lock: drivers' exceptions have no common base, and each try re-reads the list
            retry(lambda: self._append(subjects, added), is_driver_error, longest_wait=3.0)
            return len(added)
        except ErrataError:
            raise
        except Exception as error:
            raise EngineError(
                f"{self.table} could not be updated in {TRIES} tries; the last ended with {describe_error(error)}",
                state="ids added by a try whose answer was lost are on the list",
                hint="errata erase add with the same FILE adds only what is missing",
            ) from error

    def _append(self, subjects: Collection[str], added: set[str]) -> None:
        """Append the missing subjects, and add them to ``added``.

        ``added`` is kept over tries, because a try without an answer may have landed.
        """
        import pyarrow as pa

        table = self._tables.load(self.table)
        hashed = self._hasher(table)
        known = _read_hashes(table)
        new = sorted({hashed(subject) for subject in subjects} - known)
        added.update(new)
        if new:
            kind = pa.schema([pa.field(SUBJECT, pa.string(), nullable=False)])
            table.append(pa.table({SUBJECT: new}, schema=kind))

    def _hasher(self, table: Table) -> Callable[[str], str]:
        key, found = self._key(), table.properties.get(KEY_CHECK)
        if found != compute_key_check(key):
            told = "was made with another key" if found else "was not made by errata erase add"
            raise KeyRefused(
                f"erasure.key was refused; {self.table} {told}",
                state="nothing was changed",
                hint="set erasure.key to the key of that list; with any other key nobody on it can be found",
            )
        return build_hasher(key)


def _read_hashes(table: Table) -> set[str]:
    return set(table.scan(selected_fields=(SUBJECT,)).to_arrow()[SUBJECT].to_pylist())


_conforms: type[ErasedSubjects] = IcebergErasureList
