"""Row account of an input: rows read = rows used + rows set aside. Pure.

Four counts of the same rows, none derived from another: the row counts in the files' footers (sealed in the manifest),
one grouped count over the pinned input at the gate, the count of each chunk in a second read of the pinned files by the
same rules, and the rows that adopted attempts left in the quarantine table. The data frames passed to a transform are
not counted themselves: they are built from the same files by the same expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from errata.canonical import canonical_bytes
from errata.gate.verdict.findings import MeasurementIndex
from errata.model.product.eras import QUARANTINE, SUPPRESS
from errata.model.product.erasure import ERASED
from errata.ports.measure import ROWS_IN, ROWS_USED, Measurement, input_scope

CHUNK = "chunk"
"""Measurement name of the chunk that computed a partition; the value is the chunk's id."""


_KEPT = "kept."


def kept_measure(kind: str, reason: str) -> str:
    """Measurement name of rows in the quarantine table, by kind and reason."""
    return f"{_KEPT}{kind} {canonical_bytes([reason]).decode()}"


def chunk_measure(what: str, chunk_id: str) -> str:
    """Measurement name of a chunk's counter: rows_in, rows_used, rows_quarantined, rows_suppressed, rows_set_aside."""
    return f"{what} {canonical_bytes([chunk_id]).decode()}"


@dataclass(slots=True)
class RowAccount:
    """Row account of one input in one partition."""

    read: int | None = None
    used: int | None = None
    out: dict[str, dict[str, int]] = field(default_factory=dict)  # action → reason → rows
    kept: dict[str, dict[str, int]] = field(default_factory=dict)  # kind → reason → rows, from the table

    @property
    def is_measured(self) -> bool:
        """Whether the input was counted at all."""
        return self.read is not None and self.used is not None

    @property
    def quarantined(self) -> int:
        """Rows that rules and failed casts moved to the quarantine table."""
        return sum(self.out.get(QUARANTINE, {}).values())

    @property
    def suppressed(self) -> int:
        """Rows that were filtered out without being kept in the quarantine table."""
        return sum(self.out.get(SUPPRESS, {}).values())

    @property
    def erased(self) -> int:
        """Rows of erased subjects, which are among the suppressed ones."""
        return self.out.get(SUPPRESS, {}).get(ERASED, 0)

    @property
    def set_aside(self) -> int:
        """Rows that the transform itself set aside; they are among the rows counted as used."""
        return sum(self.kept.get("transform", {}).values())

    @property
    def in_table(self) -> dict[str, int]:
        """Rows in the quarantine table from rules and failed casts, by reason."""
        return {reason: rows for kind in ("rule", "cast", "line") for reason, rows in self.kept.get(kind, {}).items()}


def build_account(
    numbers: MeasurementIndex, source: str, partition: str, known: Mapping[str, Iterable[Measurement]]
) -> RowAccount:
    """Build the account of an input in a partition; ``known`` holds the input's measurements by partition."""
    scope, account = input_scope(source), RowAccount()
    read, used = numbers.get(scope, partition, ROWS_IN), numbers.get(scope, partition, ROWS_USED)
    account.read = None if read is None else int(read.value or 0)
    account.used = None if used is None else int(used.value or 0)
    for one in known.get(partition, ()):
        name, space, group = one.name.partition(" ")
        if not space:
            continue
        if name in (f"rows.{QUARANTINE}", f"rows.{SUPPRESS}"):
            account.out.setdefault(name.removeprefix("rows."), {})[json.loads(group)[0]] = int(one.value or 0)
        elif name.startswith(_KEPT):
            account.kept.setdefault(name.removeprefix(_KEPT), {})[json.loads(group)[0]] = int(one.value or 0)
    return account
