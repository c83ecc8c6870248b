"""Numbers of the prior output that are known, because the gate measured the same files before they were published.

A data file never changes. The same files, measured by the same SQL under the same schema, give the same numbers, so
they are taken from the ledger, and only other partitions are read. The audit entry of the measurements names the run
that they come from. Reads the ledger and table metadata, no rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from errata.errors import NotFound, UsageError
from errata.gate.measure.scan_plan import compile_plan
from errata.ledger import CandidateRecord
from errata.model.manifest import Manifest, TargetPin
from errata.model.partition import format_ranges
from errata.model.table import DataFile
from errata.ports.measure import CANDIDATE, PRIOR, Measurement, MeasurePlan, Scan
from errata.workspace import RunContext

Files = Mapping[str, Sequence[DataFile]]


@dataclass(frozen=True, slots=True)
class KnownPrior:
    """Measurements of the prior output, and the runs and partitions that they were taken from."""

    measurements: tuple[Measurement, ...] = ()
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by run

    def leave_out(self, plan: MeasurePlan, manifest: Manifest) -> MeasurePlan:
        """The plan without what is known."""
        known = {name for names in self.partitions.values() for name in names}
        rest = tuple(name for name in manifest.partitions if name not in known)
        scans = (replace(scan, partitions=rest) if scan.scope == PRIOR and known else scan for scan in plan.scans)
        return MeasurePlan(tuple(scan for scan in scans if scan.partitions != ()))

    def describe(self, manifest: Manifest) -> dict[str, str]:
        """Run → its partitions as text, for the audit."""
        return {run: format_ranges(manifest.target.grain, names) for run, names in self.partitions.items()}


def find_known_prior(context: RunContext, candidate: CandidateRecord, plan: MeasurePlan) -> KnownPrior:
    """Measurements of the partitions whose files an earlier run brought to its gate, and that nobody changed since."""
    scan = next(one for one in plan.scans if one.scope == PRIOR)
    target, base = context.manifest.target, candidate.base_snapshot_id
    if base is None or scan.counts_rows_only:
        return KnownPrior()  # row counts come from table metadata
    by_run: dict[str, list[str]] = {}
    for name, row in context.ledger.partitions.accepted(target.table, context.manifest.partitions).items():
        if row.run_id is not None:
            by_run.setdefault(row.run_id, []).append(name)
    if not by_run:
        return KnownPrior()
    live: dict[str, list[DataFile]] = {name: [] for name in context.manifest.partitions}
    for file in context.engines.publishing.files_of(target, base, context.manifest.partitions):
        for name in file.partitions:
            live.setdefault(name, []).append(file)
    found: list[Measurement] = []
    taken: dict[str, tuple[str, ...]] = {}
    for run_id, names in sorted(by_run.items()):
        if known := _read_known(context, run_id, scan, {name: live[name] for name in sorted(names)}):
            found += known
            taken[run_id] = tuple(dict.fromkeys(one.partition for one in known))
    return KnownPrior(tuple(found), taken)


def _read_known(context: RunContext, run_id: str, scan: Scan, live: Files) -> list[Measurement]:
    earlier = context.ledger.runs.manifest(run_id, context.actor)
    names = _match_measures(scan, earlier) if _has_same_shape(earlier.target, context.manifest.target) else {}
    candidates = context.ledger.candidates.list(run_id) if names else ()
    for candidate in reversed(candidates):
        stored = context.ledger.candidates.measurements(run_id, candidate.n)
        values = {(one.partition, one.name): one for one in stored if one.scope == CANDIDATE}
        held = _find_held_partitions(context, candidate, live) if values else ()
        if complete := [p for p in held if all((p, name) in values for name in names.values())]:
            return [
                Measurement(PRIOR, partition, ours, values[partition, theirs].value, values[partition, theirs].exact)
                for partition in complete
                for ours, theirs in names.items()
            ]
    return []


def _has_same_shape(earlier: TargetPin, target: TargetPin) -> bool:
    """Whether names mean the same columns, and partitions the same rows. Files of a shadow have other columns."""
    fields = ("table_uuid", "schema_id", "column", "column_type", "transform", "grain", "mode")
    return earlier.shadow is None and all(getattr(earlier, name) == getattr(target, name) for name in fields)


def _match_measures(scan: Scan, earlier: Manifest) -> dict[str, str]:
    """The name that each measurement had at the earlier gate, by its SQL; empty unless all were taken there."""
    try:
        measured = next(one for one in compile_plan(earlier).scans if one.scope == CANDIDATE)
    except UsageError:
        return {}  # a rule that was allowed then is refused now
    by_sql = {sql: name for name, sql in measured.aggregates.items()}
    by_column = {column: name for name, column in measured.shares.items()}
    found = {name: by_sql.get(sql) for name, sql in scan.aggregates.items()}
    found |= {name: by_column.get(column) for name, column in scan.shares.items()}
    return {name: theirs for name, theirs in found.items() if theirs} if all(found.values()) else {}


def _find_held_partitions(context: RunContext, candidate: CandidateRecord, live: Files) -> tuple[str, ...]:
    """Partitions that hold exactly the files of this candidate, without delete files."""
    try:
        listed = json.loads(context.ledger.parts.get(candidate.digest))["files"]
    except NotFound:
        return ()  # made by an older release, which did not keep the list
    staged = {(path, rows) for path, rows in listed}
    rows: Mapping[str, int] = candidate.detail["rows"]
    return tuple(
        name
        for name, files in live.items()
        # all its files are the candidate's, and all the candidate's rows are in them
        if all(file.partition == name and not file.deletes and (file.path, file.rows) in staged for file in files)
        and rows.get(name) == sum(file.rows for file in files)
    )
