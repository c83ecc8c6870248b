"""What became of an input's rows, put together from measurements: the books that must balance. Pure.

Four accounts of the same rows, none derived from another: what the files' footers say (sealed in the manifest), one
grouped count over the pinned input at the gate, what each chunk counted in a second read of the pinned files by the
same rules, and the rows that adopted attempts left in the quarantine table. The frames that a transform was handed are
not counted themselves: they are made of the same files by the same expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from errata.canonical import canonical_bytes
from errata.gate.verdict.findings import MeasurementIndex
from errata.ledger import AttemptRecord, RunRecord
from errata.ledger.records import map_partitions_to_chunks
from errata.model.manifest import Manifest
from errata.model.partition import WHOLE
from errata.model.product.eras import QUARANTINE, SUPPRESS
from errata.model.refs import quarantine_table
from errata.model.run import AttemptState
from errata.ports.measure import ROWS_IN, ROWS_USED, Measurement, input_scope
from errata.workspace import Workspace

CHUNK = "chunk"
"""Which chunk computed a partition; its value is a name."""
_KEPT = "kept."


def kept_measure(kind: str, reason: str) -> str:
    """Rows of a partition in the quarantine table, by kind and reason."""
    return f"{_KEPT}{kind} {canonical_bytes([reason]).decode()}"


def chunk_measure(what: str, chunk_id: str) -> str:
    """What a chunk counted of its input: rows_in, rows_used, rows_quarantined, rows_suppressed, rows_set_aside."""
    return f"{what} {canonical_bytes([chunk_id]).decode()}"


@dataclass(slots=True)
class RowAccount:
    """Rows of one input in one partition."""

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
        """Taken out and kept, by rules and casts."""
        return sum(self.out.get(QUARANTINE, {}).values())

    @property
    def suppressed(self) -> int:
        """Taken out and left where they are."""
        return sum(self.out.get(SUPPRESS, {}).values())

    @property
    def set_aside(self) -> int:
        """Taken out by the transform itself, of the rows that are counted as used."""
        return sum(self.kept.get("transform", {}).values())

    @property
    def in_table(self) -> dict[str, int]:
        """Rows in the table that rules and casts put there, by reason."""
        return {**self.kept.get("rule", {}), **self.kept.get("cast", {})}


def build_account(
    numbers: MeasurementIndex, source: str, partition: str, known: Mapping[str, Iterable[Measurement]]
) -> RowAccount:
    """The account of an input in a partition; ``known`` are the input's measurements by partition."""
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


ROW_COUNTERS = ("rows_in", "rows_used", "rows_quarantined", "rows_suppressed", "rows_set_aside")
"""What a chunk counts of an input; in the record of an attempt followed by a colon and the input's name."""


def collect_row_accounts(workspace: Workspace, run: RunRecord, manifest: Manifest) -> tuple[Measurement, ...]:
    """The numbers that the gate's own count is held against; none for a run that takes no rows out."""
    wanted = set(manifest.partitions)
    adopted = [one for one in list_adopted_attempts(workspace, run.run_id) if wanted.issuperset(one.partitions)]
    if not may_have_quarantine(manifest, adopted):
        return ()
    found: list[Measurement] = []
    held = map_partitions_to_chunks(workspace.ledger.progress.chunks(run.run_id))
    for attempt in adopted:
        fates = read_row_counts(attempt)
        for pin in manifest.inputs:
            scope, counted = input_scope(pin.name), fates.get(pin.name, {})
            for what, rows in counted.items():
                found.append(Measurement(scope, "", chunk_measure(what, attempt.chunk_id), str(rows)))
            if pin.partition is not None or counted:
                own = [name for name in attempt.partitions if held.get(name) == attempt.chunk_id]
                places = (WHOLE,) if pin.partition is None else own
                found += [Measurement(scope, place, CHUNK, attempt.chunk_id) for place in places]
    table = quarantine_table(manifest.target.table, run.run_id)
    for kept in workspace.engines.quarantine.counts(table, [attempt.attempt_id for attempt in adopted]):
        name = kept_measure(kept.kind, kept.reason)
        found.append(Measurement(input_scope(kept.input), kept.partition, name, str(kept.rows)))
    return tuple(found)


def list_adopted_attempts(workspace: Workspace, run_id: str) -> tuple[AttemptRecord, ...]:
    """The attempts that count, one for each chunk that is done and still holds a partition."""
    standing = set(map_partitions_to_chunks(workspace.ledger.progress.chunks(run_id)).values())
    adopted = (one for one in workspace.ledger.progress.attempts(run_id) if one.state is AttemptState.ADOPTED)
    return tuple(one for one in adopted if one.chunk_id in standing)


def may_have_quarantine(manifest: Manifest, attempts: Sequence[AttemptRecord]) -> bool:
    """Whether rows may have been set aside: by the plan, or because an attempt says so."""
    return any(pin.is_screened for pin in manifest.inputs) or any(read_row_counts(attempt) for attempt in attempts)


def read_row_counts(attempt: AttemptRecord) -> Mapping[str, Mapping[str, int]]:
    """What an attempt counted, by input."""
    found: dict[str, dict[str, int]] = {}
    for key, value in attempt.cost.items():
        what, colon, name = key.partition(":")
        if colon and what in ROW_COUNTERS:
            found.setdefault(name, {})[what] = int(value)
    return found
