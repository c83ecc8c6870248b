"""Which run the content of each partition comes from, now and in the past.

The table ``acceptance`` is a history. Each row points at the row below it (``stands_on``): a publication adds a row on
top of the current one, a rollback adds a copy of the row below the current one. The rows below the newest are
therefore always the stack to unwind, and the state of a run follows from the states of its partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from errata.ledger.db.database import Tx
from errata.ledger.records import AcceptanceRecord, PartitionState, PublicationRecord, RunRecord
from errata.ledger.schema.definition import acceptance
from errata.ledger.store.base import Store, build_record, find_run

_MAX_IN_LIST = 500


class PartitionHistory(Store):
    """Reads only; rows are written when publications are settled."""

    def accepted(self, table: str, partitions: Collection[str] | None = None) -> dict[str, AcceptanceRecord]:
        """The current row of each partition that Errata ever published."""
        return self._read(lambda conn: find_current(conn, table, partitions))

    def history(self, table: str, partition: str) -> tuple[AcceptanceRecord, ...]:
        """All publications and rollbacks of this partition, oldest first."""
        where = (acceptance.c.table_name == table) & (acceptance.c.partition == partition)
        query = select(acceptance).where(where).order_by(acceptance.c.seq)
        return self._read(lambda conn: tuple(build_record(AcceptanceRecord, row) for row in conn.execute(query)))

    def accepted_at(self, moment: datetime, table: str | None = None) -> tuple[AcceptanceRecord, ...]:
        """The row of each partition that was current at that time, by table and partition; none if unpublished."""
        query = select(acceptance).order_by(acceptance.c.seq)
        if table is not None:
            query = query.where(acceptance.c.table_name == table)
        rows = self._read(lambda conn: [build_record(AcceptanceRecord, row) for row in conn.execute(query)])
        found = {(row.table, row.partition): row for row in rows if datetime.fromisoformat(row.at) <= moment}
        return tuple(found[key] for key in sorted(found))

    def count_publications(self, table: str, partitions: Collection[str]) -> dict[str, int]:
        """Number of publications of each partition by any run; partitions never published are left out."""
        where = (acceptance.c.table_name == table) & (acceptance.c.action == "published")
        query = select(acceptance.c.partition, func.count()).where(where).group_by(acceptance.c.partition)
        wanted = set(partitions)
        return self._read(lambda conn: {name: n for name, n in conn.execute(query).tuples() if name in wanted})

    def states(self, run_id: str) -> dict[str, PartitionState]:
        """State of each partition of the run."""
        return self._read(lambda conn: find_partition_states(conn, find_run(conn, run_id)))


def find_current(conn: Connection, table: str, partitions: Collection[str] | None) -> dict[str, AcceptanceRecord]:
    """The newest row of each partition."""
    newest = select(func.max(acceptance.c.seq)).where(acceptance.c.table_name == table)
    if partitions is not None and len(partitions) <= _MAX_IN_LIST:
        newest = newest.where(acceptance.c.partition.in_(sorted(partitions)))
    query = select(acceptance).where(acceptance.c.seq.in_(newest.group_by(acceptance.c.partition)))
    found = (build_record(AcceptanceRecord, row) for row in conn.execute(query.order_by(acceptance.c.partition)))
    wanted = None if partitions is None else set(partitions)
    return {record.partition: record for record in found if wanted is None or record.partition in wanted}


def find_partition_states(conn: Connection, run: RunRecord) -> dict[str, PartitionState]:
    """State of each partition of the run."""
    return dict.fromkeys(run.partitions, PartitionState.UNPUBLISHED) | find_touched_states(conn, run)


def find_touched_states(conn: Connection, run: RunRecord) -> dict[str, PartitionState]:
    """State of each partition that the run has published; the others are unpublished."""
    touched = select(acceptance.c.partition).where(acceptance.c.run_id == run.run_id)
    where = (acceptance.c.table_name == run.table) & acceptance.c.partition.in_(touched)
    # every look at a wave asks for this, of thousands of partitions: the history only where another run came later
    tops = select(func.max(acceptance.c.seq)).where(where).group_by(acceptance.c.partition)
    newest = conn.execute(
        select(acceptance.c.partition, acceptance.c.seq, acceptance.c.run_id).where(acceptance.c.seq.in_(tops))
    ).all()
    if all(top.run_id == run.run_id for top in newest):
        return dict.fromkeys((top.partition for top in newest), PartitionState.ACCEPTED)
    columns = (acceptance.c.seq, acceptance.c.run_id, acceptance.c.stands_on)
    rows = {seq: (run_id, under) for seq, run_id, under in conn.execute(select(*columns).where(where))}
    return {top.partition: _find_partition_state(rows, top.seq, run.run_id) for top in newest}


def _find_partition_state(rows: Mapping[int, tuple[str | None, int | None]], top: int, run_id: str) -> PartitionState:
    """State of the partition whose newest row is ``top``; ``rows`` has the run of each row, and the row below it."""
    current, under = rows[top]
    if current == run_id:
        return PartitionState.ACCEPTED
    while under is not None:
        current, under = rows[under]
        if current == run_id:
            return PartitionState.SUPERSEDED
    return PartitionState.ROLLED_BACK


def record_acceptances(tx: Tx, publication: PublicationRecord, audit_seq: int) -> None:
    """Add the rows of a committed publication or rollback."""
    tops = find_current(tx.conn, publication.table, publication.partitions)
    rollback = publication.kind == "rollback"
    unders = _load_by_seq(tx.conn, publication.table, {top.stands_on for top in tops.values()}) if rollback else {}
    rows = []
    for partition in publication.partitions:
        top = tops.get(partition)
        row: dict[str, Any] = {"table_name": publication.table, "partition": partition, "pub_id": publication.pub_id}
        row |= {"at": tx.at, "audit_seq": audit_seq}
        if rollback:
            under = unders.get(top.stands_on) if top and top.stands_on is not None else None
            row |= {"action": "rolled_back", "run_id": under.run_id if under else None}
            row |= {
                "origin_pub_id": under.origin_pub_id if under else None,
                "stands_on": under.stands_on if under else None,
            }
        else:
            row |= {"action": "published", "run_id": publication.run_id, "origin_pub_id": publication.pub_id}
            row |= {"stands_on": top.seq if top else None}
        rows.append(row)
    tx.conn.execute(acceptance.insert(), rows)


def find_runs_below(conn: Connection, publication: PublicationRecord) -> tuple[str, ...]:
    """Other runs whose state may change: those this publication replaced, or those this rollback restored.

    Runs further down were superseded before and still are.
    """
    own = (acceptance.c.table_name == publication.table) & (acceptance.c.pub_id == publication.pub_id)
    where = own if publication.kind == "rollback" else acceptance.c.seq.in_(select(acceptance.c.stands_on).where(own))
    query = select(acceptance.c.run_id).where(where).distinct().order_by(acceptance.c.run_id)
    found = conn.execute(query).scalars().all()
    return tuple(run_id for run_id in found if run_id is not None and run_id != publication.run_id)


def _load_by_seq(conn: Connection, table: str, wanted: Collection[int | None]) -> dict[int, AcceptanceRecord]:
    numbers = sorted(seq for seq in wanted if seq is not None)
    query = select(acceptance).where(acceptance.c.table_name == table)
    found: dict[int, AcceptanceRecord] = {}
    for start in range(0, len(numbers), _MAX_IN_LIST):
        page = query.where(acceptance.c.seq.in_(numbers[start : start + _MAX_IN_LIST]))
        found |= {row.seq: build_record(AcceptanceRecord, row) for row in conn.execute(page)}
    return found
