"""Every row that governs something is explained by an audit entry, and every such entry has its row.

The rows are read as they are stored and compared with what the log tells (:mod:`errata.ledger.retold`): what people
decided, what was judged, published and accepted, which attempts count. Whoever edits a row with the triggers gone, adds
one or takes one away, is found here. Text from which a secret was taken out in the entry is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from errata.canonical import digest_of
from errata.ledger import schema
from errata.ledger.retold import TABLES, Account, Key
from errata.ledger.subjects import as_stored

__all__ = ["Difference", "unexplained"]

_PAGE = 1000
_REDACTED = ("${", "…")


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """Something that log and rows do not agree on; ``seq`` is the entry it is about, None when none speaks of it."""

    seq: int | None
    told: str


def unexplained(conn: Connection, account: Account) -> Difference | None:
    """The first thing that does not agree: by entry, then rows that no entry speaks of."""
    with as_stored():
        found = [one for differences in _CHECKS for one in differences(conn, account)]
    return min(found, key=lambda one: (one.seq is None, one.seq, one.told), default=None)


def _rows(conn: Connection, account: Account) -> Iterator[Difference]:
    for name in TABLES:
        yield from _table(conn, schema.metadata.tables[name], account)


def _table(conn: Connection, table: Table, account: Account) -> Iterator[Difference]:
    missing, key_of = dict(account.rows[table.name]), _KEYS[table.name]
    keys: dict[int, Key] = {}
    for row in _stream(conn, table):
        key = key_of(row)
        said = missing.pop(key, None)
        if said is None:
            if not _is_planned(table, row):
                yield Difference(None, f"{_told(table, row)} is there, but no entry speaks of it")
            continue
        found = _values(table, row)
        if table is schema.acceptance:
            keys[row.seq] = key
            found["stands_on"] = None if row.stands_on is None else keys.get(row.stands_on, row.stands_on)
        if table is not schema.run and row.audit_seq != said.seq:
            yield Difference(said.seq, f"{_told(table, row)} names entry {row.audit_seq} as its last, not {said.seq}")
        for name, value in said.values.items():
            if not _is_same(value, found.get(name)):
                told = f"{_told(table, row)} has {name} {found.get(name)!r}, not {value!r} as entry {said.seq} says"
                yield Difference(said.seq, told)
    for key, said in missing.items():
        yield Difference(said.seq, f"entry {said.seq} wrote {table.name} {'/'.join(map(str, key))}, which is not there")


def _decisions(conn: Connection, account: Account) -> Iterator[Difference]:
    missing = dict(account.decided)
    for row in _stream(conn, schema.approval):
        key = (row.run_id, row.person, row.digest)
        wanted = ("run.declined",) if row.decision == "declined" else ("run.approved", "approval.recorded")
        run, action = account.entries.get(row.audit_seq, (None, ""))
        if key not in account.decided or run != row.run_id or action not in wanted:
            yield Difference(None, f"{_told(schema.approval, row)} is there, but no entry speaks of it")
        missing.pop(key, None)
    for (run, person, _), seq in missing.items():
        yield Difference(seq, f"entry {seq} wrote a decision of {person} on {run}, which is not there")


def _people(conn: Connection, account: Account) -> Iterator[Difference]:
    missing = dict(account.people)
    for row in _stream(conn, schema.subject):
        seq = missing.pop(row.pseudonym, 0)
        is_erased = row.handle is None or row.secret is None
        if is_erased and seq >= 0:
            yield Difference(None, f"{row.pseudonym} is erased, but no entry says so")
        elif not is_erased and seq < 0:
            yield Difference(-seq, f"entry {-seq} erased {row.pseudonym}, who is there")
    for name, seq in missing.items():
        yield Difference(abs(seq), f"entry {abs(seq)} names {name}, of whom there is no row")


def _others(conn: Connection, account: Account) -> Iterator[Difference]:
    """Tables without a rule of their own: the entry that a row names is there, and is about the same run."""
    for table in schema.metadata.sorted_tables:
        if "audit_seq" not in table.c or table.name in (*TABLES, "approval", "subject"):
            continue
        for row in _stream(conn, table):
            run = account.entries.get(row.audit_seq, ("", ""))[0]
            if run is not None and run != getattr(row, "run_id", run):
                yield Difference(None, f"{_told(table, row)} names entry {row.audit_seq}, which does not explain it")


def _plans(conn: Connection, _: Account) -> Iterator[Difference]:
    """The chunks of a plan are those of its manifest, before any was cut or packed anew."""
    chunk, manifest, run = schema.chunk, schema.manifest, schema.run
    query = select(run.c.run_id, manifest.c.content).join(manifest, manifest.c.digest == run.c.manifest_digest)
    for row in conn.execute(query.order_by(run.c.run_id)).all():
        try:
            planned = {one["chunk_id"]: list(one["partitions"]) for one in json.loads(row.content)["chunks"]}
        except (ValueError, KeyError, TypeError):
            continue  # not the bytes of a plan any more: whoever reads the manifest is told
        own = select(chunk.c.chunk_id, chunk.c.partitions).where(chunk.c.run_id == row.run_id, chunk.c.origin.is_(None))
        found = {one.chunk_id: json.loads(one.partitions) for one in conn.execute(own)}
        for name in sorted(found.keys() | planned.keys()):
            if found.get(name) != planned.get(name):
                yield Difference(None, f"chunk {name} of {row.run_id} is not as its manifest has it")


_CHECKS = (_rows, _decisions, _people, _others, _plans)

_KEYS: dict[str, Callable[[Row[Any]], Key]] = {
    "run": lambda row: (row.run_id,),
    "verdict": lambda row: (row.audit_seq,),
    "warning_acceptance": lambda row: (row.audit_seq,),
    "released": lambda row: (row.audit_seq,),
    "fact": lambda row: (row.run_id, row.name),
    "guard": lambda row: (row.audit_seq,),
    "candidate": lambda row: (row.run_id, row.n),
    "publication": lambda row: (row.pub_id,),
    "publication_detail": lambda row: (row.audit_seq,),
    "acceptance": lambda row: (row.pub_id, row.partition),
    "hazard": lambda row: (row.pub_id,),
    "chunk": lambda row: (row.run_id, row.chunk_id),
    "attempt": lambda row: (row.run_id, row.chunk_id, row.fence),
}
"""What tells the rows of a table apart, in the words of the log."""


def _stream(conn: Connection, table: Table) -> Iterator[Row[Any]]:
    query = select(table).order_by(*table.primary_key.columns)
    with conn.execute(query, execution_options={"yield_per": _PAGE}) as rows:
        yield from rows


def _told(table: Table, row: Row[Any]) -> str:
    key = "/".join(str(getattr(row, column.name)) for column in table.primary_key.columns)
    run = getattr(row, "run_id", None)
    return f"{table.name} {key}" + (f" of {run}" if run and run not in key else "")


def _values(table: Table, row: Row[Any]) -> dict[str, Any]:
    found = {column.name: getattr(row, column.name) for column in table.columns}
    if table is schema.publication:
        found |= {"partitions": json.loads(row.partitions), "release": json.loads(row.release) or None}
    if table is schema.hazard:
        found["open"] = row.closed_at is None
    if table is schema.verdict:
        found["checks_digest"] = digest_of(json.loads(row.checks))
    return found


def _is_planned(table: Table, row: Row[Any]) -> bool:
    as_planned = ("pending", 0, None, None)
    return table is schema.chunk and (row.state, row.fence, row.origin, row.snapshot_id) == as_planned


def _is_same(said: Any, found: Any) -> bool:
    if said == found or (said == {} and found is None):  # a rollback has no release
        return True
    match said:
        case str():
            return any(sign in said for sign in _REDACTED)
        case list():
            return isinstance(found, list) and len(said) == len(found) and all(map(_is_same, said, found))
        case dict():
            names = said.keys()
            return isinstance(found, dict) and names == found.keys() and all(_is_same(said[n], found[n]) for n in names)
        case _:
            return False
