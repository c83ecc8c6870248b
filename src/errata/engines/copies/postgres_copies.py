"""Copies in PostgreSQL: staging tables, markers, and the one transaction that replaces partitions.

Next to a copy there are a table of its markers and a table of what its partitions hold. Both are created with the first
marker. The swap keeps every other writer of the copy out with a lock that readers do not notice, so that what it
compares, deletes and inserts is one state, although each of its statements sees what was committed before it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from errata.engines.copies import postgres_statements as sql
from errata.engines.copies.adbc_loading import load_batches, require_driver
from errata.engines.copies.postgres_description import describe_table
from errata.engines.copies.postgres_session import open_session, open_transaction
from errata.engines.copies.postgres_statements import Statements, quote_table
from errata.errors import UsageError
from errata.failpoints import failpoint
from errata.model.copy.checksum import EMPTY, Checksum, DoubleSum, find_differing, recognise_rows
from errata.model.copy.delivery import Loaded, Receipt, Swap, WarehouseTable
from errata.model.copy.marker import Content, Delivered, MarkedAttempt, Marker, MarkerState, find_lowered
from errata.model.copy.partition_scope import read_partition
from errata.model.copy.refusals import (
    refuse_changed,
    refuse_content,
    refuse_count,
    refuse_lost,
    refuse_overtaken,
    refuse_staging,
)
from errata.model.copy.row_text import Dialect, quote_name
from errata.model.copy.table import CopyTable, name_staging_prefix
from errata.ports.copies import LakeRows, WarehouseCopies

if TYPE_CHECKING:
    import psycopg


_OWN_HASH_SINCE = 140_000


@dataclass(frozen=True, slots=True)
class PostgresCopies:
    """Copies in the databases with these addresses."""

    uris: Mapping[str, str]

    def describe(self, warehouse: str, table: str) -> WarehouseTable | None:
        """See the port."""
        with self._connect(warehouse) as conn:
            return describe_table(conn, quote_table(table))

    def load(self, copy: CopyTable, staging: str, rows: LakeRows) -> Loaded:
        """See the port."""
        # before anything is created that nobody could fill
        require_driver()
        with self._open(copy) as session:
            from psycopg import errors

            try:
                session.run(sql.CREATE_STAGING, staging=staging)
            except (errors.DuplicateTable, errors.UniqueViolation):
                raise refuse_staging(copy, staging) from None
            schema = session.read_schema()
        loaded = load_batches(copy.warehouse, self._find_uri(copy.warehouse), schema, staging, rows.batches())
        failpoint("copy.after_load")
        return Loaded(loaded)

    def measure(
        self,
        copy: CopyTable,
        partitions: Collection[str] | None,
        *,
        staging: str | None = None,
        known: Mapping[str, Checksum] | None = None,
    ) -> dict[str, Checksum]:
        """See the port."""
        with self._open(copy) as session:
            if known and partitions is not None and staging is None:
                return session.measure_known(partitions, known)
            if staging is not None:
                session.run(sql.USE_WORKERS)
            return session.measure(partitions, staging=staging)

    def read_delivered(self, copy: CopyTable, partitions: Collection[str] | None) -> dict[str, Delivered]:
        """See the port."""
        with self._open(copy) as session:
            return session.read_delivered(partitions) if session.exists(session.statements.delivered) else {}

    def open_marker(self, copy: CopyTable, marker: Marker) -> None:
        """See the port."""
        with self._open(copy) as session:
            session.create_tables()
            session.renew_tables()
            with session.transaction():
                later = session.run(sql.FIND_LATER, (marker.publication, marker.attempt)).fetchone()
                if not later:
                    session.insert_marker(marker, MarkerState.OPEN)
                if later or session.read_marker(marker) is not MarkerState.OPEN:
                    raise refuse_lost(marker)
        failpoint("copy.after_open")

    def list_markers(self, copy: CopyTable, publication: str) -> tuple[MarkedAttempt, ...]:
        """See the port."""
        with self._open(copy) as session:
            is_there = session.exists(session.statements.markers)
            rows = session.run(sql.LIST_MARKERS, (publication,)).fetchall() if is_there else []
        return tuple(MarkedAttempt(Marker(publication, attempt), MarkerState(state)) for attempt, state in rows)

    def swap(self, copy: CopyTable, swap: Swap) -> Receipt:
        """See the port."""
        started, names = time.monotonic(), swap.partitions
        with self._open(copy) as session, session.transaction():
            session.end_marker_alone(swap.marker)
            recorded = session.read_delivered(names)
            lowered = find_lowered(swap.contents, recorded)
            if lowered or recorded != {name: swap.delivered[name] for name in names if name in swap.delivered}:
                raise refuse_overtaken(copy, lowered)
            session.require_rows(swap.expected)
            failpoint("copy.after_compare")
            removed = session.run(sql.DELETE_ROWS, partitions=names).rowcount
            _require_count(copy, "deleted", removed, sum(one.rows for one in swap.expected.values()))
            written = session.run(sql.INSERT_ROWS, staging=swap.staging).rowcount
            _require_count(copy, "inserted", written, swap.rows)
            wanted = {name: one.checksum for name, one in swap.contents.items()}
            found = session.measure_known(names, wanted)
            if differing := find_differing(wanted, found, copy.tolerance):
                raise refuse_content(copy, differing)
            session.record(swap.marker, swap.contents, found)
            transaction = session.read_transaction()
            failpoint("copy.before_commit")
        failpoint("copy.after_commit")
        seconds = time.monotonic() - started
        return Receipt(
            swap.marker, dict(swap.contents), removed, written, seconds, transaction=transaction, found=found
        )

    def accept(self, copy: CopyTable, marker: Marker, contents: Mapping[str, Content]) -> None:
        """See the port."""
        with self._open(copy) as session, session.transaction():
            session.end_marker_alone(marker)
            if lowered := find_lowered(contents, session.read_delivered(contents)):
                raise refuse_overtaken(copy, lowered)
            found = session.require_rows({name: one.checksum for name, one in contents.items()})
            session.record(marker, contents, found)

    def fence(self, copy: CopyTable, marker: Marker) -> MarkerState:
        """See the port."""
        with self._open(copy) as session:
            session.create_tables()
            with session.transaction():
                # waits for a swap in progress, by the lock on the row
                if not session.end_marker(marker, MarkerState.VOID):
                    session.insert_marker(marker, MarkerState.VOID)
                state = session.read_marker(marker)
        return state or MarkerState.VOID

    def list_staging(self, copy: CopyTable, publication: str) -> tuple[str, ...]:
        """See the port."""
        with self._open(copy) as session:
            schema = quote_table(session.statements.schema) if session.statements.schema else None
            rows = session.run(sql.LIST_STAGING, (name_staging_prefix(copy, publication), schema)).fetchall()
        return tuple(row[0] for row in rows)

    def drop_staging(self, copy: CopyTable, staging: str) -> None:
        """See the port."""
        with self._open(copy) as session:
            session.run(sql.DROP_STAGING, staging=staging)

    def count_subjects(self, copy: CopyTable, columns: Collection[str], ids: Collection[str]) -> int:
        """See the port."""
        named = [quote_name(Dialect.POSTGRES, one.name) for one in copy.columns if one.source in columns]
        if not named or not ids:
            return 0
        with self._open(copy) as session:
            template = sql.COUNT_SUBJECTS.replace("{subjects}", ", ".join(f"{name}::text" for name in named))
            row = session.run(template, (sorted(ids),)).fetchone()
        return int(row[0]) if row else 0

    def read_rows(self, copy: CopyTable, partitions: Collection[str]) -> list[dict[str, Any]]:
        """See the port."""
        with self._open(copy) as session:
            rows = session.run(sql.READ_ROWS, partitions=partitions).fetchall()
        return [dict(zip((one.name for one in copy.columns), row, strict=True)) for row in rows]

    @contextmanager
    def _open(self, copy: CopyTable) -> Iterator[_Session]:
        with self._connect(copy.warehouse) as conn:
            yield _Session(copy, Statements(copy), conn)

    @contextmanager
    def _connect(self, warehouse: str) -> Iterator[psycopg.Connection[Any]]:
        with open_session(warehouse, self._find_uri(warehouse)) as conn:
            yield conn

    def _find_uri(self, warehouse: str) -> str:
        if warehouse not in self.uris:
            known = ", ".join(sorted(self.uris)) or "none"
            raise UsageError(f"there is no warehouse {warehouse}; expected one of {known}")
        return self.uris[warehouse]


_conforms: type[WarehouseCopies] = PostgresCopies


@dataclass(frozen=True, slots=True)
class _Session:
    """One connection, for one copy."""

    copy: CopyTable
    statements: Statements
    conn: psycopg.Connection[Any]

    def run(
        self, template: str, parameters: Any = None, *, staging: str = "", partitions: Collection[str] = ()
    ) -> psycopg.Cursor[Any]:
        """Run one statement."""
        return self.conn.execute(self.statements.write(template, staging=staging, partitions=partitions), parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction; see :func:`open_transaction`."""
        locked = [self.statements.target, self.statements.markers]
        with open_transaction(self.copy.warehouse, self.conn, self.copy.lock_seconds, locked):
            yield

    def exists(self, quoted: str) -> bool:
        """Whether there is a table of this name."""
        row = self.conn.execute("SELECT to_regclass(%s) IS NOT NULL", (quoted,)).fetchone()
        return bool(row and row[0])

    def read_schema(self) -> str | None:
        """The schema of the copy."""
        row = self.conn.execute("SELECT current_schema()").fetchone()
        return self.statements.schema or (row[0] if row else None)

    def read_transaction(self) -> str:
        """The id of the transaction, as the server's log has it."""
        row = self.conn.execute("SELECT txid_current()").fetchone()
        return str(row[0]) if row else ""

    def create_tables(self) -> None:
        """Create the tables next to the copy; a role that may not create tables gets by if they exist."""
        from psycopg import errors

        for quoted, template in (
            (self.statements.markers, sql.CREATE_MARKERS),
            (self.statements.delivered, sql.CREATE_DELIVERED),
        ):
            if not self.exists(quoted):
                try:
                    self.run(template)
                except (errors.DuplicateTable, errors.UniqueViolation):
                    pass  # another process was faster

    def renew_tables(self) -> None:
        """Give a table of an earlier version the column of own hashes; without it they are not kept."""
        if self.run(sql.FIND_OLD_DELIVERED, {"table": self.statements.delivered}).fetchone() == (True,):
            with self.transaction():
                self.run(sql.ADD_OWN_HASH)

    def end_marker_alone(self, marker: Marker) -> None:
        """Keep other writers of the copy out, then change the marker from open to done."""
        # first of all: what is compared from here on must be what is replaced. Readers are not kept out.
        self.run(sql.LOCK)
        failpoint("copy.after_lock")
        if not self.exists(self.statements.markers) or not self.end_marker(marker, MarkerState.DONE):
            raise refuse_lost(marker)

    def end_marker(self, marker: Marker, state: MarkerState) -> bool:
        """Change an open marker; False: it is not open."""
        return self.run(sql.END_MARKER, (state.value, marker.publication, marker.attempt)).rowcount == 1

    def insert_marker(self, marker: Marker, state: MarkerState) -> None:
        """Write a marker unless it is there."""
        ended = state is not MarkerState.OPEN
        self.run(sql.INSERT_MARKER, (marker.publication, marker.attempt, state.value, ended))

    def read_marker(self, marker: Marker) -> MarkerState | None:
        """The state of a marker; None: there is none."""
        row = self.run(sql.READ_MARKER, (marker.publication, marker.attempt)).fetchone()
        return MarkerState(row[0]) if row else None

    def measure(self, partitions: Collection[str] | None, *, staging: str | None = None) -> dict[str, Checksum]:
        """Checksums of partitions, with own hashes where the server has them."""
        found: dict[str, Checksum] = {}
        query = self.statements.write_sums(partitions, staging=staging, with_own_hash=self.has_own_hash)
        for text, rows, upper, lower, *others in self.conn.execute(query).fetchall():
            own = self.name_own_hash(others.pop()) if self.has_own_hash else ""
            checksum = Checksum(rows, int(upper), int(lower), _pair_doubles(others), own)
            found[read_partition(self.copy.grain, text)] = checksum
        return found

    def measure_known(self, partitions: Collection[str], known: Mapping[str, Checksum]) -> dict[str, Checksum]:
        """Checksums of partitions, by own hashes if all of them hold the known rows."""
        if self.has_own_hash and all(one.own_hash for one in known.values() if one.rows):
            found = {}
            for text, rows, own, *doubles in self.conn.execute(self.statements.write_own_sums(partitions)).fetchall():
                checksum = Checksum(rows, doubles=_pair_doubles(doubles), own_hash=self.name_own_hash(own))
                found[read_partition(self.copy.grain, text)] = checksum
            recognised = recognise_rows(known, found)
            if recognised is not None:
                return recognised
        # an own hash that differs may be one of another server version: only the hash that all engines have decides
        return self.measure(partitions)

    @property
    def has_own_hash(self) -> bool:
        """Whether the server has a hash of rows that can be called."""
        return self.conn.info.server_version >= _OWN_HASH_SINCE

    def name_own_hash(self, total: Any) -> str:
        """A sum of own hashes with what it depends on: the server's version, and the columns of the copy."""
        return f"postgres-{self.conn.info.server_version // 10_000}:{self.copy.shape[:16]}:{total}"

    def require_rows(self, expected: Mapping[str, Checksum]) -> dict[str, Checksum]:
        """Refuse partitions of the copy that hold other rows; returns what they hold."""
        found = self.measure_known(expected, expected)
        if differing := find_differing(expected, found, self.copy.tolerance):
            raise refuse_changed(self.copy, differing)
        return found

    def read_delivered(self, partitions: Collection[str] | None) -> dict[str, Delivered]:
        """What is on record about partitions."""
        named = {"all": partitions is None, "names": sorted(partitions or ())}
        return {row[0]: _build_delivered(*row[1:]) for row in self.run(sql.READ_DELIVERED, named).fetchall()}

    def record(self, marker: Marker, contents: Mapping[str, Content], found: Mapping[str, Checksum]) -> None:
        """Write what the partitions hold, and the own hashes that were found, in the transaction that makes it true."""
        self.run(sql.DELETE_DELIVERED, (sorted(contents),))
        rows = [
            (name, one.sequence, one.checksum.rows, one.checksum.upper, one.checksum.lower,
             json.dumps([[repr(part.total), part.values] for part in one.checksum.doubles]), self.copy.shape,
             marker.publication, marker.attempt)
            for name, one in sorted(contents.items())
        ]  # fmt: skip
        with self.conn.cursor() as cursor:
            cursor.executemany(self.statements.write(sql.INSERT_DELIVERED), rows)
            if not self.run(sql.FIND_OLD_DELIVERED, {"table": self.statements.delivered}).fetchone():
                own = [(found.get(name, EMPTY).own_hash or None, name) for name in sorted(contents)]
                cursor.executemany(self.statements.write(sql.KEEP_OWN_HASH), own)


def _pair_doubles(found: Sequence[Any]) -> tuple[DoubleSum, ...]:
    pairs = zip(found[::2], found[1::2], strict=True)
    return tuple(DoubleSum(total or 0.0, values) for total, values in pairs)


def _build_delivered(
    sequence: int, rows: int, upper: Any, lower: Any, doubles: str, shape: str, publication: str, attempt: int, own: str
) -> Delivered:
    sums = tuple(DoubleSum(float(total), values) for total, values in json.loads(doubles))
    checksum = Checksum(rows, int(upper), int(lower), sums, own)
    return Delivered(Content(sequence, checksum), Marker(publication, attempt), shape)


def _require_count(copy: CopyTable, verb: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise refuse_count(copy, verb, found, wanted)
