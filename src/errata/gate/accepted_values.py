"""The value of an aggregate for partitions as their readers should see them now.

That is what the table holds, or, where publications leave the table untouched, what the accepted run brought to its
gate. Numbers that a gate has measured are taken from the ledger, row counts from table metadata; only what is left
starts Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from errata.errors import NotFound, UsageError
from errata.gate.measured_files import match_measures, read_measured
from errata.gate.rules.expressions import parse_aggregate
from errata.ledger import AcceptanceRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.model.side_tables import is_side_table_mode
from errata.model.table import DataFile
from errata.ports.measure import CANDIDATE, PRIOR, ROW_COUNT, MeasurePlan, Scan
from errata.ports.tables import TargetState
from errata.workspace import Workspace

_VALUE = "value"
_COUNT = "COUNT(*)"
Values = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class AcceptedValues:
    """Values by partition, and the head of main when they were found."""

    values: Mapping[str, str | None]
    snapshot_id: str | None


def read_accepted_values(
    workspace: Workspace, actor: Actor, manifest: Manifest, expression: str, partitions: Sequence[str], *, where: str
) -> AcceptedValues:
    """Find the value of ``expression`` for each partition of the manifest's target; ``where`` is for refusals."""
    target = manifest.target
    sql = parse_aggregate(expression, where=where, types=target.columns, key="equals").sql("spark")
    scan = Scan(PRIOR, {ROW_COUNT: sql} if sql == _COUNT else {_VALUE: sql})
    accepted = workspace.ledger.partitions.accepted(target.table, partitions)
    beside = _read_beside(workspace, actor, scan, accepted)
    on_main = [name for name in partitions if name not in beside]
    if not on_main:
        return AcceptedValues(beside, None)
    state = workspace.engines.targets.read_target(target.table, target.column, target.grain, on_main)
    found = _read_known(workspace, actor, manifest, scan, state, accepted, on_main)
    if scan.counts_rows_only:
        found = _count_rows(state, on_main) | found
    rest = tuple(name for name in on_main if name not in found)
    if rest:
        found |= _measure(workspace, manifest, replace(scan, partitions=rest), state.base_snapshot_id)
    return AcceptedValues({**beside, **found}, state.base_snapshot_id)


def _read_beside(workspace: Workspace, actor: Actor, scan: Scan, accepted: Mapping[str, AcceptanceRecord]) -> Values:
    """Values of partitions whose accepted rows are in a side table, as the gate measured them."""
    found: Values = {}
    for run_id, names in _group_by_run(accepted):
        manifest = workspace.ledger.runs.manifest(run_id, actor)
        if not is_side_table_mode(manifest.publish):
            continue
        (measure,) = match_measures(scan, manifest).values() or ("",)
        for name in names:
            verdict = workspace.ledger.candidates.latest_verdict(run_id, [name])
            stored = workspace.ledger.candidates.measurements(run_id, verdict.candidate_n) if verdict else ()
            values = {one.partition: one.value for one in stored if (one.scope, one.name) == (CANDIDATE, measure)}
            if name not in values:
                raise UsageError(
                    f"what {name} should show is not known: {manifest.publish.mode} leaves the table untouched, and no "
                    "rule of the product measured it",
                    hint="compare: a rule whose metric is what verify expects",
                )
            found[name] = values[name]
    return found


def _read_known(
    workspace: Workspace,
    actor: Actor,
    manifest: Manifest,
    scan: Scan,
    state: TargetState,
    accepted: Mapping[str, AcceptanceRecord],
    partitions: Sequence[str],
) -> Values:
    """Values of partitions whose live files a gate has measured: as its candidate, or as what it was to replace."""
    if state.shared_files or state.base_snapshot_id is None:
        return {}
    live = {name: files for name in partitions if (files := _list_data_files(state, name)) is not None}
    (measure,) = scan.aggregates
    found: Values = {}
    ours = {name: row for name, row in accepted.items() if name in live}
    for run_id, names in _group_by_run(ours):
        held = {name: live[name] for name in names}
        known = read_measured(workspace.ledger, actor, manifest.target, run_id, scan, held)
        found |= {one.partition: one.value for one in known if one.name == measure}
    for run_id, names in _group_by_undone_run(workspace, ours):
        found |= _read_prior(workspace, actor, run_id, scan, state, names)
    return found


def _list_data_files(state: TargetState, partition: str) -> tuple[DataFile, ...] | None:
    """The live data files of a partition; None if delete files hide some of their rows."""
    files = state.expected.get(partition, ())
    if any(file.content != "data" for file in files):
        return None
    return tuple(DataFile(file.path, file.rows, 0, partition) for file in files)


def _read_prior(
    workspace: Workspace, actor: Actor, run_id: str, scan: Scan, state: TargetState, partitions: Sequence[str]
) -> Values:
    """Values that the gate of an undone run measured before it was published, of files that are there again."""
    earlier = workspace.ledger.runs.manifest(run_id, actor)
    names = match_measures(scan, earlier, PRIOR)
    target, found = earlier.target, Values()
    if not names or target.schema_id != state.schema_id:
        return found
    for candidate in workspace.ledger.candidates.list(run_id):
        if candidate.base_snapshot_id is None:
            continue
        stored = workspace.ledger.candidates.measurements(run_id, candidate.n)
        values = {one.partition: one.value for one in stored if (one.scope, one.name) == (PRIOR, *names.values())}
        wanted = [name for name in partitions if name in values]
        if not wanted:
            continue
        try:
            base = workspace.engines.history.held(
                target.table, target.column, target.grain, wanted, candidate.base_snapshot_id
            )
        except NotFound:
            continue  # the snapshot that was measured has expired
        then = {name: size.fingerprint for name, size in base.partitions.items()}
        found |= {name: values[name] for name in wanted if then.get(name) == state.fingerprints.get(name)}
    return found


def _count_rows(state: TargetState, partitions: Sequence[str]) -> Values:
    """Row counts from metadata, of partitions where that is exact."""
    if state.shared_files:
        return {}
    counted = {name: _list_data_files(state, name) for name in partitions}
    return {name: str(sum(file.rows for file in files)) for name, files in counted.items() if files is not None}


def _measure(workspace: Workspace, manifest: Manifest, scan: Scan, snapshot_id: str | None) -> Values:
    """Read the partitions; without inputs, because only the target is measured."""
    values: Values = dict.fromkeys(scan.partitions or ())  # a table without a snapshot has no rows
    alone = replace(manifest, partitions=scan.partitions or (), inputs=())
    measured = workspace.engines.measurer.measure(
        alone, MeasurePlan((scan,)), candidate_snapshot="", prior_snapshot=snapshot_id
    )
    return values | {one.partition: one.value for one in measured if one.name in scan.aggregates}


def _group_by_run(accepted: Mapping[str, AcceptanceRecord]) -> Iterator[tuple[str, list[str]]]:
    """Runs whose rows partitions have, each with these partitions."""
    found: dict[str, list[str]] = {}
    for name, row in sorted(accepted.items()):
        if row.run_id is not None:
            found.setdefault(row.run_id, []).append(name)
    yield from found.items()


def _group_by_undone_run(
    workspace: Workspace, accepted: Mapping[str, AcceptanceRecord]
) -> Iterator[tuple[str, list[str]]]:
    """Runs that were rolled back to what was there before any run, each with these partitions."""
    found: dict[str, list[str]] = {}
    for name, row in sorted(accepted.items()):
        if row.run_id is None:
            found.setdefault(workspace.ledger.publications.get(row.pub_id).run_id, []).append(name)
    yield from found.items()
