"""Collect the row accounts of adopted attempts, which the gate compares with its own count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from errata.gate.verdict.row_account import CHUNK, chunk_measure, kept_measure
from errata.ledger.records import map_partitions_to_chunks
from errata.model.partition import WHOLE
from errata.model.refs import quarantine_table
from errata.model.run import AttemptState
from errata.ports.measure import Measurement, input_scope

if TYPE_CHECKING:
    from errata.ledger import AttemptRecord, RunRecord
    from errata.model.manifest import Manifest
    from errata.workspace import Workspace

ROW_COUNTERS = ("rows_in", "rows_used", "rows_quarantined", "rows_suppressed", "rows_set_aside")
"""Row counters of a chunk; an attempt's record has them as ``<counter>:<input>``."""


def collect_row_accounts(workspace: Workspace, run: RunRecord, manifest: Manifest) -> tuple[Measurement, ...]:
    """Row counts of chunks and quarantine table, which the gate compares with its own; none if no rows were removed."""
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
    """Adopted attempts, one for each chunk that is done and still owns a partition."""
    standing = set(map_partitions_to_chunks(workspace.ledger.progress.chunks(run_id)).values())
    adopted = (one for one in workspace.ledger.progress.attempts(run_id) if one.state is AttemptState.ADOPTED)
    return tuple(one for one in adopted if one.chunk_id in standing)


def may_have_quarantine(manifest: Manifest, attempts: Sequence[AttemptRecord]) -> bool:
    """Whether rows may have been quarantined: the plan screens an input, or an attempt counted rows."""
    return any(pin.is_counted for pin in manifest.inputs) or any(read_row_counts(attempt) for attempt in attempts)


def read_row_counts(attempt: AttemptRecord) -> Mapping[str, Mapping[str, int]]:
    """Row counts of an attempt, by input and counter."""
    found: dict[str, dict[str, int]] = {}
    for key, value in attempt.cost.items():
        what, colon, name = key.partition(":")
        if colon and what in ROW_COUNTERS:
            found.setdefault(name, {})[what] = int(value)
    return found
