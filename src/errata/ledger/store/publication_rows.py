"""Rows of ``publication`` as records, with the details of every commit attempt."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from errata.errors import NotFound
from errata.ledger.records import Owner, PublicationRecord
from errata.ledger.schema.definition import publication, publication_detail
from errata.ledger.store.base import build_record, parse_texts
from errata.model.run import PublicationState, RunState


def find_publication(conn: Connection, pub_id: str) -> PublicationRecord:
    """The publication with exactly this id; raises when there is none."""
    found = load_publications(conn, select(publication).where(publication.c.pub_id == pub_id))
    if not found:
        raise NotFound(f"there is no publication {pub_id} in this ledger", state="nothing was changed", pub_id=pub_id)
    return found[0]


def select_open_publications(table: str | None, run_id: str | None) -> Select[Any]:
    """Open intents, oldest first."""
    query = select(publication).where(publication.c.state == PublicationState.INTENDED.value)
    if table is not None:
        query = query.where(publication.c.table_name == table)
    if run_id is not None:
        query = query.where(publication.c.run_id == run_id)
    return query.order_by(publication.c.intended_at, publication.c.pub_id)


def load_publications(conn: Connection, query: Select[Any]) -> tuple[PublicationRecord, ...]:
    """The publications that the query selects."""
    rows = conn.execute(query).all()
    details = _load_details(conn, query) if rows else {}
    return tuple(_publication_from_row(row, tuple(details.get(row.pub_id, ()))) for row in rows)


def _load_details(conn: Connection, query: Select[Any]) -> dict[str, list[str]]:
    """Digests of the details of the publications that the query selects, in the order they were recorded."""
    table, chosen = publication_detail, query.with_only_columns(publication.c.pub_id).order_by(None)
    of_them = select(table.c.pub_id, table.c.part_digest).where(table.c.pub_id.in_(chosen)).order_by(table.c.n)
    found: dict[str, list[str]] = {}
    for pub_id, digest in conn.execute(of_them).tuples():
        found.setdefault(pub_id, []).append(digest)
    return found


def _publication_from_row(row: Row[Any], details: tuple[str, ...]) -> PublicationRecord:
    return build_record(
        PublicationRecord,
        row,
        state=PublicationState(row.state),
        partitions=parse_texts(row.partitions),
        release=json.loads(row.release),
        owner=Owner(**json.loads(row.owner)) if row.owner else None,
        previous_run_state=RunState(row.previous_run_state),
        details=details,
    )
