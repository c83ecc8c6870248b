"""Stored measurements of a candidate, and their digest in the audit log.

A rollback relies on these numbers long after the gate did. Each ``candidate.measured`` entry therefore carries their
digest, and :func:`find_misreported` compares every candidate's rows with its last such entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, select

from errata.canonical import canonical_bytes, sha256
from errata.ledger.schema.definition import measurement
from errata.ports.measure import Measurement

MEASURED = "candidate.measured"
_PAGE = 1000

CandidateKey = tuple[str, int]
LoggedDigest = tuple[int, str]
"""The number of an audit entry, and the digest it carries."""


def digest_measurements(measurements: Iterable[Measurement]) -> str:
    """SHA-256 of the canonical bytes of these measurements."""
    return sha256(measurement_bytes(measurements))


def measurement_bytes(measurements: Iterable[Measurement]) -> bytes:
    """The canonical JSON of ``[[scope, partition, name, value, exact], …]``, sorted, null first."""
    rows = sorted(([m.scope, m.partition, m.name, m.value, m.exact] for m in measurements), key=_null_first)
    return canonical_bytes(rows)


def _null_first(row: list[Any]) -> list[tuple[bool, Any]]:
    return [(item is not None, item) for item in row]


def load_measurements(conn: Connection, run_id: str, n: int) -> tuple[Measurement, ...]:
    """Measurements of this candidate, in the order they were recorded."""
    where = (measurement.c.run_id == run_id) & (measurement.c.candidate_n == n)
    query = select(measurement).where(where).order_by(measurement.c.id)
    return tuple(_measurement_from_row(row) for row in conn.execute(query))


def find_misreported(conn: Connection, said: Mapping[CandidateKey, LoggedDigest]) -> tuple[int | None, str] | None:
    """The first entry whose digest differs from the stored measurements, and why; None as entry if never logged."""
    found = dict(_iterate_digests(conn))
    for (run_id, n), (seq, digest) in sorted(said.items(), key=lambda item: item[1]):
        stored = found.pop((run_id, n), _EMPTY_DIGEST)
        if stored != digest:
            where = f"entry {seq}: candidate {n} of {run_id}"
            return seq, f"{where} was recorded with measurements {digest}, but the stored ones have {stored}"
    for run_id, n in sorted(found):
        return None, f"candidate {n} of {run_id} has measurements that were not logged"
    return None


def _iterate_digests(conn: Connection) -> Iterator[tuple[CandidateKey, str]]:
    query = select(measurement).order_by(measurement.c.run_id, measurement.c.candidate_n, measurement.c.id)
    with conn.execute(query, execution_options={"yield_per": _PAGE}) as rows:
        for candidate, group in groupby(rows, lambda row: (row.run_id, row.candidate_n)):
            try:
                yield candidate, digest_measurements(_measurement_from_row(row) for row in group)
            except (TypeError, ValueError):
                yield candidate, "no digest: they are not what Errata writes"


def _measurement_from_row(row: Row[Any]) -> Measurement:
    return Measurement(row.scope, row.partition, row.name, row.value, row.exact)


_EMPTY_DIGEST = digest_measurements(())
