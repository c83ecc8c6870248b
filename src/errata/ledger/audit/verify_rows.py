"""Compare every governed row with the audit log, and every entry with its row.

Rows are read as stored and compared with a replay of the log (:mod:`errata.ledger.audit.replay`). This detects rows
that were edited, added or deleted with the triggers disabled. Redacted text is compared without the redacted part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, select

from errata.canonical import digest_of
from errata.ledger.audit.replay import TABLES, AuditReplay, RowKey
from errata.ledger.outbox.item_rows import digest_item
from errata.ledger.privacy.pseudonyms import as_stored
from errata.ledger.schema import definition

_PAGE = 1000
_REDACTED = re.compile(r"\$\{[^}]*\}|…")
"""Placeholders for a secret that was redacted in the entry but may still be in its row."""


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A difference between log and rows; ``seq`` is the entry concerned, None when no entry mentions the row."""

    seq: int | None
    told: str


def find_difference(conn: Connection, account: AuditReplay) -> Difference | None:
    """The first difference: in the order of entries, then rows that no entry mentions."""
    with as_stored():
        found = [one for differences in _CHECKS for one in differences(conn, account)]
    return min(found, key=lambda one: (one.seq is None, one.seq, one.told), default=None)


def _compare_tables(conn: Connection, account: AuditReplay) -> Iterator[Difference]:
    for name in TABLES:
        yield from _compare_table(conn, definition.metadata.tables[name], account)


def _compare_table(conn: Connection, table: Table, account: AuditReplay) -> Iterator[Difference]:
    missing, key_of = dict(account.rows[table.name]), _KEYS[table.name]
    keys: dict[int, RowKey] = {}
    for row in _iterate_rows(conn, table):
        key = key_of(row)
        said = missing.pop(key, None)
        if said is None:
            if not _is_planned(table, row):
                yield Difference(None, f"{_format_row(table, row)} is there, but no entry speaks of it")
            continue
        found = _read_values(table, row)
        if table is definition.acceptance:
            keys[row.seq] = key
            found["stands_on"] = None if row.stands_on is None else keys.get(row.stands_on, row.stands_on)
        if table is not definition.run and row.audit_seq != said.seq:
            yield Difference(
                said.seq, f"{_format_row(table, row)} names entry {row.audit_seq} as its last, not {said.seq}"
            )
        yield from _compare_values(table, row, said.seq, said.values, found)
    for key, said in missing.items():
        yield Difference(said.seq, f"entry {said.seq} wrote {table.name} {'/'.join(map(str, key))}, which is not there")


def _compare_values(
    table: Table, row: Row[Any], seq: int, said: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[Difference]:
    for name, value in said.items():
        if not _is_same(value, found.get(name)):
            told = f"{_format_row(table, row)} has {name} {found.get(name)!r}, not {value!r} as entry {seq} says"
            yield Difference(seq, told)


def _compare_decisions(conn: Connection, account: AuditReplay) -> Iterator[Difference]:
    missing, told = dict(account.decided), dict(account.decisions)
    for row in _iterate_rows(conn, definition.approval):
        said = told.pop(row.audit_seq, None)
        if said is None or any(said[name] != getattr(row, name) for name in ("run_id", "person", "digest", "decision")):
            yield Difference(None, f"{_format_row(definition.approval, row)} is there, but no entry speaks of it")
            continue
        missing.pop((row.run_id, row.person, row.digest), None)
        yield from _compare_values(
            definition.approval, row, row.audit_seq, said, _read_values(definition.approval, row)
        )
    for (run, person, _), seq in missing.items():
        yield Difference(seq, f"entry {seq} wrote a decision of {person} on {run}, which is not there")


def _compare_people(conn: Connection, account: AuditReplay) -> Iterator[Difference]:
    missing = dict(account.people)
    for row in _iterate_rows(conn, definition.subject):
        seq = missing.pop(row.pseudonym, 0)
        is_erased = row.handle is None or row.secret is None
        if is_erased and seq >= 0:
            yield Difference(None, f"{row.pseudonym} is erased, but no entry says so")
        elif not is_erased and seq < 0:
            yield Difference(-seq, f"entry {-seq} erased {row.pseudonym}, who is there")
    for name, seq in missing.items():
        yield Difference(abs(seq), f"entry {abs(seq)} names {name}, of whom there is no row")


def _compare_other_tables(conn: Connection, account: AuditReplay) -> Iterator[Difference]:
    """Check tables without replay: the entry a row names exists and belongs to the same run."""
    for table in definition.metadata.sorted_tables:
        if "audit_seq" not in table.c or table.name in (*TABLES, "approval", "subject"):
            continue
        for row in _iterate_rows(conn, table):
            run = account.entries.get(row.audit_seq, ("", ""))[0]
            if run is not None and run != getattr(row, "run_id", run):
                yield Difference(
                    None, f"{_format_row(table, row)} names entry {row.audit_seq}, which does not explain it"
                )


def _compare_plans(conn: Connection, _: AuditReplay) -> Iterator[Difference]:
    """Compare scope, reason and planned chunks of each run with its manifest; chunks added later are left out."""
    chunk, manifest, run = definition.chunk, definition.manifest, definition.run
    wanted = select(run.c.run_id, run.c.partitions, run.c.reason, run.c.supersedes, manifest.c.content)
    query = wanted.join(manifest, manifest.c.digest == run.c.manifest_digest)
    for row in conn.execute(query.order_by(run.c.run_id)).all():
        try:
            sealed = json.loads(row.content)
            planned = {one["chunk_id"]: list(one["partitions"]) for one in sealed["chunks"]}
        except (ValueError, KeyError, TypeError):
            continue  # no longer a plan: reading the manifest raises, because its digest differs
        sealed.setdefault("supersedes", None)
        copied = {"partitions": _parse_json(row.partitions), "reason": row.reason, "supersedes": row.supersedes}
        for name, stored in copied.items():
            if name in sealed and sealed[name] != stored:
                yield Difference(None, f"run {row.run_id} has other {name} than its manifest")
        own = select(chunk.c.chunk_id, chunk.c.partitions).where(chunk.c.run_id == row.run_id, chunk.c.origin.is_(None))
        found = {one.chunk_id: json.loads(one.partitions) for one in conn.execute(own)}
        for name in sorted(found.keys() | planned.keys()):
            if found.get(name) != planned.get(name):
                yield Difference(None, f"chunk {name} of {row.run_id} is not as its manifest has it")


_CHECKS = (_compare_tables, _compare_decisions, _compare_people, _compare_other_tables, _compare_plans)

_KEYS: dict[str, Callable[[Row[Any]], RowKey]] = {
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
    "standing": lambda row: (row.digest,),
    "standing_decision": lambda row: (row.audit_seq,),
    "standing_use": lambda row: (row.run_id,),
    "campaign": lambda row: (row.campaign_id,),
    "campaign_approval": lambda row: (row.audit_seq,),
    "member_approval": lambda row: (row.run_id,),
    "campaign_step": lambda row: (row.audit_seq,),
    "outbox_item": lambda row: (row.item_id,),
    "hold": lambda row: (row.hold_id,),
    "recorded_file": lambda row: (row.file_id,),
}
"""Key of each table's rows as the replay uses it."""


def _iterate_rows(conn: Connection, table: Table) -> Iterator[Row[Any]]:
    query = select(table).order_by(*table.primary_key.columns)
    with conn.execute(query, execution_options={"yield_per": _PAGE}) as rows:
        yield from rows


def _format_row(table: Table, row: Row[Any]) -> str:
    key = "/".join(str(getattr(row, column.name)) for column in table.primary_key.columns)
    run = getattr(row, "run_id", None)
    return f"{table.name} {key}" + (f" of {run}" if run and run not in key else "")


def _read_values(table: Table, row: Row[Any]) -> dict[str, Any]:
    found = {column.name: getattr(row, column.name) for column in table.columns}
    if table is definition.publication:
        found |= {"partitions": json.loads(row.partitions), "release": json.loads(row.release) or None}
    if table is definition.outbox_item:
        found["digest"] = digest_item(found)
    # columns that entries hold as a digest, or as JSON data
    for wanted, name, read in _DERIVED_VALUES:
        if table is wanted:
            found[name] = read(row)
    return found


_DERIVED_VALUES: tuple[tuple[Table, str, Callable[[Row[Any]], Any]], ...] = (
    (definition.verdict, "checks_digest", lambda row: _digest_json(row.checks)),
    (definition.released, "subject", lambda row: _digest_json(row.subject)),
    (definition.standing, "subject", lambda row: _digest_json(row.subject)),
    (definition.candidate, "detail", lambda row: _digest_json(row.detail)),
    (definition.fact, "value", lambda row: _parse_json(row.value)),
    (definition.outbox_item, "result", lambda row: _parse_json(row.result)),
    (definition.hold, "partitions", lambda row: _parse_json(row.partitions)),
)


def _digest_json(stored: str) -> str:
    return digest_of(_parse_json(stored))


def _parse_json(stored: str) -> Any:
    try:
        return json.loads(stored)
    except ValueError:
        return stored  # Errata never writes this, so it will differ from the entry


def _is_planned(table: Table, row: Row[Any]) -> bool:
    as_planned = ("pending", 0, None, None)
    return table is definition.chunk and (row.state, row.fence, row.origin, row.snapshot_id) == as_planned


def _is_same(said: Any, found: Any) -> bool:
    if said == found or (said == {} and found is None):  # a rollback has no release
        return True
    match said:
        case str():
            return isinstance(found, str) and _has_parts(found, _REDACTED.split(said))
        case list():
            return isinstance(found, list) and len(said) == len(found) and all(map(_is_same, said, found))
        case dict():
            names = said.keys()
            return isinstance(found, dict) and names == found.keys() and all(_is_same(said[n], found[n]) for n in names)
        case _:
            return False


def _has_parts(found: str, parts: list[str]) -> bool:
    """Whether a text starts with the first part, ends with the last and has the others between them in order."""
    first, *between = parts
    if not between or not found.startswith(first):
        return False
    at, last = len(first), between.pop()
    for part in between:
        at = found.find(part, at) + len(part)
        if at < len(part):
            return False
    return found.endswith(last) and len(found) - len(last) >= at
