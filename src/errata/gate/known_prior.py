"""Numbers of the prior output that are known, because the gate measured the same files before they were published.

A data file never changes. The same files, measured by the same SQL under the same schema, give the same numbers, so
they are taken from the ledger, and only other partitions are read. The audit entry of the measurements names the run
that they come from. Reads the ledger and table metadata, no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from errata.gate.measured_files import read_measured
from errata.ledger import CandidateRecord
from errata.model.manifest import Manifest
from errata.model.partition import format_ranges
from errata.model.table import DataFile
from errata.ports.measure import PRIOR, Measurement, MeasurePlan
from errata.workspace import RunContext


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
        held = {name: live[name] for name in sorted(names)}
        if known := read_measured(context.ledger, context.actor, target, run_id, scan, held):
            found += known
            taken[run_id] = tuple(dict.fromkeys(one.partition for one in known))
    return KnownPrior(tuple(found), taken)
