"""Numbers that a gate measured of files that a table still has. Reads the ledger, no rows.

A data file never changes. The same files, measured by the same SQL under the same schema, give the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from errata.errors import NotFound, UsageError
from errata.gate.measure.scan_plan import compile_plan
from errata.ledger import CandidateRecord, Ledger
from errata.model.audit import Actor
from errata.model.manifest import Manifest, TargetPin
from errata.model.table import DataFile
from errata.ports.measure import CANDIDATE, Measurement, Scan

Files = Mapping[str, Sequence[DataFile]]
"""Partition → its live data files."""


def read_measured(
    ledger: Ledger, actor: Actor, target: TargetPin, run_id: str, scan: Scan, live: Files
) -> list[Measurement]:
    """What the scan would measure in those partitions whose live files this run brought to its gate.

    Empty unless the gate measured everything that the scan does.
    """
    earlier = ledger.runs.manifest(run_id, actor)
    names = match_measures(scan, earlier) if _has_same_shape(earlier.target, target) else {}
    candidates = ledger.candidates.list(run_id) if names else ()
    for candidate in reversed(candidates):
        stored = ledger.candidates.measurements(run_id, candidate.n)
        values = {(one.partition, one.name): one for one in stored if one.scope == CANDIDATE}
        held = _find_held_partitions(ledger, candidate, live) if values else ()
        if complete := [p for p in held if all((p, name) in values for name in names.values())]:
            return [
                Measurement(
                    scan.scope, partition, ours, values[partition, theirs].value, values[partition, theirs].exact
                )
                for partition in complete
                for ours, theirs in names.items()
            ]
    return []


def _has_same_shape(earlier: TargetPin, target: TargetPin) -> bool:
    """Whether names mean the same columns, and partitions the same rows. Files of a shadow have other columns."""
    fields = ("table_uuid", "schema_id", "column", "column_type", "transform", "grain", "mode")
    return earlier.shadow is None and all(getattr(earlier, name) == getattr(target, name) for name in fields)


def match_measures(scan: Scan, earlier: Manifest, scope: str = CANDIDATE) -> dict[str, str]:
    """The name that each measurement had at the earlier gate, by its SQL; empty unless all were taken there."""
    try:
        measured = next(one for one in compile_plan(earlier).scans if one.scope == scope)
    except UsageError:
        return {}  # a rule that was allowed then is refused now
    by_sql = {sql: name for name, sql in measured.aggregates.items()}
    by_column = {column: name for name, column in measured.shares.items()}
    found = {name: by_sql.get(sql) for name, sql in scan.aggregates.items()}
    found |= {name: by_column.get(column) for name, column in scan.shares.items()}
    return {name: theirs for name, theirs in found.items() if theirs} if all(found.values()) else {}


def _find_held_partitions(ledger: Ledger, candidate: CandidateRecord, live: Files) -> tuple[str, ...]:
    """Partitions that hold exactly the files of this candidate, without delete files."""
    try:
        listed = json.loads(ledger.parts.get(candidate.digest))["files"]
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
