"""Copies in Snowflake: staging tables, markers, and the one transaction that replaces partitions.

Snowflake has no lock that keeps an INSERT of someone else out. So each statement of the swap has to report the number
of rows that is expected, and after the commit the partitions are compared as they were just before the deletion. Rows
that someone else wrote meanwhile are found, and named on the receipt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from errata.engines.copies import snowflake_statements as sql
from errata.engines.copies.snowflake_description import describe_table
from errata.engines.copies.snowflake_loading import load_rows
from errata.engines.copies.snowflake_session import (
    Answer,
    AnswerLost,
    Identity,
    Session,
    StatementRefused,
    open_session,
    open_transaction,
)
from errata.engines.copies.snowflake_statements import Statements
from errata.errors import EngineError, UsageError
from errata.failpoints import failpoint
from errata.model.copy.checksum import Checksum, DoubleSum, find_differing
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
from errata.model.copy.snowflake_account import SnowflakeAccount
from errata.model.copy.table import CopyTable, name_staging_prefix
from errata.ports.copies import LakeRows, LinkedTables, WarehouseCopies

_READ_LOCK_SECONDS = 10
_BOTH, _LOCK_ONLY = 2, 1
"""Rows that the statement on markers reports: the marker and the first row, or the first row alone."""


@dataclass(frozen=True, slots=True)
class SnowflakeCopies:
    """Copies in these accounts; ``connect`` opens a session with one of them."""

    accounts: Mapping[str, SnowflakeAccount]
    connect: Callable[[str, SnowflakeAccount, float, dict[str, Any]], AbstractContextManager[Session]] = open_session

    def describe(self, warehouse: str, table: str) -> WarehouseTable | None:
        """See the port."""
        account = self._find_account(warehouse)
        with self.connect(warehouse, account, _READ_LOCK_SECONDS, {"describes": table}) as session:
            return describe_table(session, table, account.database, account.schema)

    def load(self, copy: CopyTable, staging: str, rows: LakeRows) -> Loaded:
        """See the port."""
        with self._open(copy, {"staging": staging}) as run:
            run.create_staging(staging)
            stage = self._find_account(copy.warehouse).stage
            loaded = load_rows(run.session, run.statements, staging, rows, stage)
        failpoint("copy.after_load")
        return loaded

    def measure(
        self,
        copy: CopyTable,
        partitions: Collection[str] | None,
        *,
        staging: str | None = None,
        known: Mapping[str, Checksum] | None = None,
    ) -> dict[str, Checksum]:
        """See the port."""
        del known  # no hash of its own that is faster
        with self._open(copy, {"measures": copy.table}) as run:
            return run.measure(run.statements.write_sums(partitions, staging=staging))

    def read_delivered(self, copy: CopyTable, partitions: Collection[str] | None) -> dict[str, Delivered]:
        """See the port."""
        with self._open(copy, {"reads": copy.table}) as run:
            try:
                return run.read_delivered(partitions)
            except StatementRefused as refused:
                if refused.is_missing_table:
                    return {}
                raise

    def open_marker(self, copy: CopyTable, marker: Marker) -> None:
        """See the port."""
        with self._open(copy, _tag(marker)) as run:
            run.create_tables()
            with run.transaction():
                # no key is enforced: only this lock keeps two processes from writing the same marker
                run.require_count("locked", run.run(sql.LOCK_MARKERS).count, _LOCK_ONLY)
                state = run.find_state(marker)
                is_late = any(one.marker.attempt > marker.attempt for one in run.read_markers(marker.publication))
                if is_late or state not in (None, MarkerState.OPEN):
                    raise refuse_lost(marker)
                if state is None:
                    run.insert_marker(marker, MarkerState.OPEN)
        failpoint("copy.after_open")

    def list_markers(self, copy: CopyTable, publication: str) -> tuple[MarkedAttempt, ...]:
        """See the port."""
        with self._open(copy, {"reads": copy.table}) as run:
            try:
                return run.read_markers(publication)
            except StatementRefused as refused:
                if refused.is_missing_table:
                    return ()
                raise

    def swap(self, copy: CopyTable, swap: Swap) -> Receipt:
        """See the port."""
        started, names = time.monotonic(), swap.partitions
        with self._open(copy, _tag(swap.marker)) as run:
            with run.transaction() as identity:
                failpoint("copy.after_lock")
                # first of all: only one of a swap and a fence finds the marker open
                run.end_marker(swap.marker, identity)
                recorded = run.read_delivered(names)
                lowered = find_lowered(swap.contents, recorded)
                if lowered or recorded != {name: swap.delivered[name] for name in names if name in swap.delivered}:
                    raise refuse_overtaken(copy, lowered)
                run.require_rows(swap.expected)
                failpoint("copy.after_compare")
                deleted = run.run(sql.DELETE_ROWS, partitions=names)
                # more or fewer than were compared: someone else wrote in between
                if deleted.count != sum(one.rows for one in swap.expected.values()):
                    raise refuse_changed(copy, names)
                inserted = run.run(sql.INSERT_ROWS, staging=swap.staging)
                run.require_count("inserted", inserted.count, swap.rows)
                # also finds a statement that the driver has sent twice
                wanted = {name: one.checksum for name, one in swap.contents.items()}
                found = run.measure(run.statements.write_sums(names))
                if differing := find_differing(wanted, found, copy.tolerance):
                    raise refuse_content(copy, differing)
                run.record(swap.marker, swap.contents)
                failpoint("copy.before_commit")
            failpoint("copy.after_commit")
            seconds = time.monotonic() - started
            foreign, unchecked = run.find_unseen_writes(swap, deleted.query)
        queries = (deleted.query, inserted.query)
        return Receipt(
            swap.marker, dict(swap.contents), deleted.count, inserted.count, seconds, queries, foreign, unchecked,
            identity.transaction or "", found,
        )  # fmt: skip

    def accept(self, copy: CopyTable, marker: Marker, contents: Mapping[str, Content]) -> None:
        """See the port."""
        with self._open(copy, _tag(marker)) as run, run.transaction() as identity:
            run.end_marker(marker, identity)
            if lowered := find_lowered(contents, run.read_delivered(contents)):
                raise refuse_overtaken(copy, lowered)
            run.require_rows({name: one.checksum for name, one in contents.items()})
            run.record(marker, contents)

    def fence(self, copy: CopyTable, marker: Marker) -> MarkerState:
        """See the port."""
        with self._open(copy, _tag(marker)) as run:
            run.create_tables()
            with run.transaction() as identity:
                # waits for a swap in progress, by the lock on the markers; from here on no other can begin
                run.change_marker(marker, MarkerState.VOID, identity)
                state = run.find_state(marker)
                if state is None:
                    run.insert_marker(marker, MarkerState.VOID)
        return state or MarkerState.VOID

    def list_staging(self, copy: CopyTable, publication: str) -> tuple[str, ...]:
        """See the port."""
        prefix = name_staging_prefix(copy, publication)
        with self._open(copy, {"reads": copy.table}) as run:
            found = run.session.run(run.statements.write(sql.LIST_STAGING, prefix=prefix.upper())).read("name")
        # an underscore of the pattern matches any character
        names = (str(name).lower() for (name,) in found)
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def drop_staging(self, copy: CopyTable, staging: str) -> None:
        """See the port."""
        with self._open(copy, {"staging": staging}) as run:
            run.run(sql.DROP_STAGING, staging=staging)

    def count_subjects(self, copy: CopyTable, columns: Collection[str], ids: Collection[str]) -> int:
        """See the port."""
        named = [quote_name(Dialect.SNOWFLAKE, one.name) for one in copy.columns if one.source in columns]
        if not named or not ids:
            return 0
        asked = ", ".join("?" for _ in ids)
        where = " OR ".join(f"TO_VARCHAR({name}) IN ({asked})" for name in named)
        with self._open(copy, {"reads": copy.table}) as run:
            template = sql.COUNT_SUBJECTS.replace("{subjects}", where)
            ((count,),) = run.run(template, [one for _ in named for one in sorted(ids)]).rows
        return int(count)

    def read_rows(self, copy: CopyTable, partitions: Collection[str]) -> list[dict[str, Any]]:
        """See the port."""
        with self._open(copy, {"reads": copy.table}) as run:
            rows = run.run(sql.READ_ROWS, partitions=partitions).rows
        return [dict(zip((one.name for one in copy.columns), row, strict=True)) for row in rows]

    def refresh(self, warehouse: str, table: str) -> str:
        """See the port."""
        quoted, account = sql.quote_table(table), self._find_account(warehouse)
        with self.connect(warehouse, account, _READ_LOCK_SECONDS, {"refreshes": table}) as session:
            session.run(sql.REFRESH.format(target=quoted))
            (row,) = session.run(sql.READ_REFRESHED, (quoted,)).rows
        found = json.loads(row[0])
        if not found.get("metadataLocation"):
            raise EngineError(f"{warehouse}:{table} names no metadata file that it reads")
        return str(found["metadataLocation"])

    @contextmanager
    def _open(self, copy: CopyTable, tag: dict[str, Any]) -> Iterator[_Run]:
        with self.connect(copy.warehouse, self._find_account(copy.warehouse), copy.lock_seconds, tag) as session:
            yield _Run(copy, Statements(copy), session)

    def _find_account(self, warehouse: str) -> SnowflakeAccount:
        if warehouse not in self.accounts:
            known = ", ".join(sorted(self.accounts)) or "none"
            raise UsageError(f"there is no Snowflake account {warehouse}; expected one of {known}")
        return self.accounts[warehouse]


_conforms: type[WarehouseCopies] = SnowflakeCopies
_links: type[LinkedTables] = SnowflakeCopies


def _tag(marker: Marker) -> dict[str, Any]:
    return {"publication": marker.publication, "attempt": marker.attempt}


@dataclass(frozen=True, slots=True)
class _Run:
    """One session, for one copy."""

    copy: CopyTable
    statements: Statements
    session: Session

    def run(
        self, template: str, parameters: Sequence[Any] = (), *, staging: str = "", partitions: Collection[str] = ()
    ) -> Answer:
        """Run one statement."""
        return self.session.run(self.statements.write(template, staging=staging, partitions=partitions), parameters)

    @contextmanager
    def transaction(self) -> Iterator[Identity]:
        """One transaction; see :func:`open_transaction`."""
        with open_transaction(self.copy.warehouse, self.session, self.statements.markers) as identity:
            yield identity

    def create_tables(self) -> None:
        """Create the tables next to the copy unless they exist."""
        for template in (sql.CREATE_MARKERS, sql.CREATE_DELIVERED):
            self.run(template)

    def create_staging(self, staging: str) -> None:
        """Create a staging table; refuse one that exists."""
        try:
            self.run(sql.CREATE_STAGING, staging=staging)
        except StatementRefused:
            try:
                self.run(sql.DESCRIBE_STAGING, staging=staging)
            except StatementRefused:
                pass
            else:
                raise refuse_staging(self.copy, staging) from None
            raise

    def end_marker(self, marker: Marker, identity: Identity) -> None:
        """Change a marker from open to done; refuse one that is not open."""
        try:
            is_open = self.change_marker(marker, MarkerState.DONE, identity)
        except StatementRefused as refused:
            # no delivery has opened a marker here yet
            is_open = not refused.is_missing_table
            if is_open:
                raise
        if not is_open:
            raise refuse_lost(marker)

    def change_marker(self, marker: Marker, state: MarkerState, identity: Identity) -> bool:
        """Change an open marker; False: it is not open."""
        who = (identity.session, identity.transaction)
        changed = self.run(sql.END_MARKER, (state.value, marker.publication, marker.attempt, *who)).count
        if changed not in (_BOTH, _LOCK_ONLY):
            raise EngineError(f"{self.copy.warehouse} ended the session of a transaction", state="nothing was written")
        return changed == _BOTH

    def read_markers(self, publication: str) -> tuple[MarkedAttempt, ...]:
        """Markers of a publication by attempt."""
        rows = self.run(sql.READ_MARKERS, (publication,)).rows
        return tuple(MarkedAttempt(Marker(publication, int(attempt)), MarkerState(state)) for attempt, state in rows)

    def insert_marker(self, marker: Marker, state: MarkerState) -> None:
        """Write a marker; only while the lock on the markers is held."""
        self.run(sql.INSERT_MARKER, (marker.publication, marker.attempt, state.value))

    def find_state(self, marker: Marker) -> MarkerState | None:
        """The state of a marker; None: there is none."""
        return next((one.state for one in self.read_markers(marker.publication) if one.marker == marker), None)

    def measure(self, query: str) -> dict[str, Checksum]:
        """Checksums of partitions."""
        found: dict[str, Checksum] = {}
        for text, rows, upper, lower, *doubles in self.session.run(query).rows:
            pairs = zip(doubles[::2], doubles[1::2], strict=True)
            sums = tuple(DoubleSum(float(total or 0), int(values)) for total, values in pairs)
            found[read_partition(self.copy.grain, text)] = Checksum(int(rows), int(upper), int(lower), sums)
        return found

    def require_rows(self, expected: Mapping[str, Checksum]) -> None:
        """Refuse partitions of the copy that hold other rows."""
        found = self.measure(self.statements.write_sums(expected))
        if differing := find_differing(expected, found, self.copy.tolerance):
            raise refuse_changed(self.copy, differing)

    def require_count(self, verb: str, found: int, wanted: int) -> None:
        """Refuse another number of rows."""
        if found != wanted:
            raise refuse_count(self.copy, verb, found, wanted)

    def read_delivered(self, partitions: Collection[str] | None) -> dict[str, Delivered]:
        """What the record says about partitions."""
        found: dict[str, Delivered] = {}
        statements: list[tuple[str, list[Any]]] = [(self.statements.write(sql.READ_ALL_DELIVERED), [])]
        if partitions is not None:
            statements = self.statements.write_many(sql.READ_DELIVERED, [(name,) for name in sorted(partitions)])
        for text, parameters in statements:
            for part, *rest in self.session.run(text, parameters).rows:
                found[part] = _read_record(*rest)
        return found

    def record(self, marker: Marker, contents: Mapping[str, Content]) -> None:
        """Write what partitions hold, in the transaction that makes it true."""
        rows = [
            (name, one.sequence, one.checksum.rows, str(one.checksum.upper), str(one.checksum.lower),
             json.dumps([[repr(part.total), part.values] for part in one.checksum.doubles]), self.copy.shape,
             marker.publication, marker.attempt)
            for name, one in sorted(contents.items())
        ]  # fmt: skip
        names = [(row[0],) for row in rows]
        for template, values in ((sql.DELETE_DELIVERED, names), (sql.INSERT_DELIVERED, rows)):
            for text, parameters in self.statements.write_many(template, values):
                self.session.run(text, parameters)

    def find_unseen_writes(self, swap: Swap, deleted: str) -> tuple[dict[str, str], tuple[str, ...]]:
        """Partitions whose rows others changed between the comparison and the deletion; and why it was not checked.

        An update that leaves the number of rows as it was is found by this only. The swap has landed, so that nothing
        here may fail.
        """
        query = self.statements.write_sums(swap.partitions, before=deleted)
        try:
            differing = find_differing(swap.expected, self.measure(query), self.copy.tolerance)
        except (StatementRefused, AnswerLost, EngineError) as error:
            return {}, (f"whether others wrote rows just before they were deleted: {error}",)
        told = f"others wrote rows that were deleted unseen; they are in time travel before query {deleted}"
        return dict.fromkeys(differing, told), ()


def _read_record(
    sequence: int, rows: int, upper: str, lower: str, doubles: str, shape: str, publication: str, attempt: int
) -> Delivered:
    sums = tuple(DoubleSum(float(total), int(values)) for total, values in json.loads(doubles))
    checksum = Checksum(int(rows), int(upper), int(lower), sums)
    return Delivered(Content(int(sequence), checksum), Marker(publication, int(attempt)), shape)
