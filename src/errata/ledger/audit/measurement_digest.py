"""The numbers of a candidate as they are stored, and the digest that the audit keeps of them.

A rollback trusts these numbers long after the gate did, so each ``candidate.measured`` entry carries their digest and
:func:`misreported` compares every candidate's rows with the last such entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.canonical import canonical_bytes, sha256
from errata.ledger.records import Measurement
from errata.ledger.schema.definition import measurement

MEASURED = "candidate.measured"
_PAGE = 1000

Candidate = tuple[str, int]
Said = tuple[int, str]
"""The number of an audit entry, and the digest it carries."""


def measured_digest(measurements: Iterable[Measurement]) -> str:
    """SHA-256 of the bytes of these numbers."""
    return sha256(measured_bytes(measurements))


def measured_bytes(measurements: Iterable[Measurement]) -> bytes:
    """The canonical JSON of ``[[scope, partition, name, value, exact], …]``, sorted, null first."""
    rows = sorted(([m.scope, m.partition, m.name, m.value, m.exact] for m in measurements), key=_null_first)
    return canonical_bytes(rows)


def _null_first(row: list[Any]) -> list[tuple[bool, Any]]:
    return [(item is not None, item) for item in row]


def stored_measurements(conn: Connection, run_id: str, n: int) -> tuple[Measurement, ...]:
    """What was measured on this candidate, in the order it was recorded."""
    where = (measurement.c.run_id == run_id) & (measurement.c.candidate_n == n)
    query = select(measurement).where(where).order_by(measurement.c.id)
    return tuple(_record(row) for row in conn.execute(query))


def misreported(conn: Connection, said: Mapping[Candidate, Said]) -> tuple[int | None, str] | None:
    """The first entry whose numbers are not the stored ones, and why; no entry when the numbers were never logged."""
    found = dict(_digests(conn))
    for (run_id, n), (seq, digest) in sorted(said.items(), key=lambda item: item[1]):
        stored = found.pop((run_id, n), _NONE)
        if stored != digest:
            where = f"entry {seq}: candidate {n} of {run_id}"
            return seq, f"{where} was recorded with measurements {digest}, but the stored ones have {stored}"
    for run_id, n in sorted(found):
        return None, f"candidate {n} of {run_id} has measurements that were not logged"
    return None


def _digests(conn: Connection) -> Iterator[tuple[Candidate, str]]:
    query = select(measurement).order_by(measurement.c.run_id, measurement.c.candidate_n, measurement.c.id)
    with conn.execute(query, execution_options={"yield_per": _PAGE}) as rows:
        for candidate, group in groupby(rows, lambda row: (row.run_id, row.candidate_n)):
            try:
                yield candidate, measured_digest(_record(row) for row in group)
            except (TypeError, ValueError):
                yield candidate, "no digest: they are not what Errata writes"


def _record(row: Row[Any]) -> Measurement:
    return Measurement(row.scope, row.partition, row.name, row.value, row.exact)


_NONE = measured_digest(())
