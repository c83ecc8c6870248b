"""Diff summary for evidence: counts, sums and declared metrics, no rows and no classified values.

It is made once per candidate, when evidence is first asked for, and stored as a part named by an audited run note.
Evidence of a run is therefore the same after its snapshots have expired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from errata.canonical import canonical_bytes, to_plain
from errata.errors import ErrataError
from errata.gate.diff.candidate_diff import compare_candidate
from errata.gate.diff.movements import build_metric_moves
from errata.ledger import CandidateRecord, CandidateState, RunRecord
from errata.model.audit import Actor
from errata.model.manifest import Manifest
from errata.ports.measure import CANDIDATE, PRIOR, ROW_COUNT
from errata.views.diff import DiffView
from errata.workspace import RunContext, Workspace

SUMMARY_FACT = "diff."
_SUMMARY = "summary"


def store_diff_summary(workspace: Workspace, actor: Actor, run: RunRecord, manifest: Manifest) -> str:
    """Compute and store the summary of the newest candidate unless stored; returns why it failed, or empty."""
    candidate = _find_newest_candidate(workspace, run)
    if candidate is None or f"{SUMMARY_FACT}{candidate.n}" in workspace.ledger.facts.list(run.run_id):
        return ""
    scope = tuple(name for name in manifest.partitions if name in candidate.detail["rows"])
    try:
        found = compare_candidate(RunContext(workspace, actor, run, manifest), candidate, scope, sample=0)
    except ErrataError as error:
        return error.message
    except Exception as error:  # noqa: BLE001  an engine's own error may quote a row; evidence is made without it
        return f"rows could not be compared ({type(error).__name__})"
    digest = workspace.ledger.parts.put(canonical_bytes(_build_summary(found, candidate.n)))
    workspace.ledger.facts.record(run.run_id, f"{SUMMARY_FACT}{candidate.n}", {_SUMMARY: digest}, actor)
    return ""


def build_diff_record(
    workspace: Workspace, run: RunRecord, manifest: Manifest, why_not: str
) -> tuple[dict[str, Any], bytes | None]:
    """The diff record of a run: rows and metrics from the gate's measurements, and the summary if there is one."""
    candidate = _find_newest_candidate(workspace, run)
    if candidate is None:
        return {"candidate": None, "summary": None, "missing": "nothing was computed to compare", "metrics": []}, None
    kept = workspace.ledger.facts.list(run.run_id).get(f"{SUMMARY_FACT}{candidate.n}")
    digest = str(kept[_SUMMARY]) if kept else None
    # each wave has a candidate of its own; in a run of one wave only the newest counts
    of_waves = [wave.candidate_n for wave in workspace.ledger.waves.list(run.run_id) if wave.candidate_n]
    numbers = dict.fromkeys([*of_waves, candidate.n]) if len(of_waves) > 1 else [candidate.n]
    stored = [one for n in numbers for one in workspace.ledger.candidates.measurements(run.run_id, n)]
    scope = tuple(name for name in manifest.partitions if any(one.partition == name for one in stored))
    rows: dict[str, dict[str, str | None]] = {}
    for one in stored:
        if one.name == ROW_COUNT and one.scope in (CANDIDATE, PRIOR) and one.partition:
            side = "after" if one.scope == CANDIDATE else "before"
            rows.setdefault(one.partition, {})[side] = one.value
    record = {
        "candidate": candidate.n,
        "base_snapshot_id": candidate.base_snapshot_id,
        "snapshot_id": candidate.snapshot_id,
        "summary": digest,
        "missing": "" if digest else why_not or "it was not asked for",
        "metrics": to_plain(build_metric_moves(manifest, stored, scope or tuple(candidate.detail["rows"]))),
        "rows": rows,
    }
    return record, workspace.ledger.parts.get(digest) if digest else None


def _find_newest_candidate(workspace: Workspace, run: RunRecord) -> CandidateRecord | None:
    made = [
        one
        for one in workspace.ledger.candidates.list(run.run_id)
        if one.state is CandidateState.MADE and one.snapshot_id
    ]
    return made[-1] if made else None


def _build_summary(found: DiffView, n: int) -> Mapping[str, Any]:
    diff = found.diff
    columns = {
        name: {
            "changed": change.changed,
            "within": change.within,
            "median_percent": None if name in diff.masked else change.median_percent,
            "sum_before": None if name in diff.masked else change.sum_before,
            "sum_after": None if name in diff.masked else change.sum_after,
        }
        for name, change in diff.columns.items()
    }
    counted = ("partition", "before_rows", "after_rows", "added", "removed", "changed", "unchanged", "within", "method")
    made: Mapping[str, Any] = json.loads(
        canonical_bytes(
            {
                "candidate": n,
                "snapshot_id": found.snapshot_id,
                "base_snapshot_id": found.base_snapshot_id,
                "schema": diff.schema,
                "partitions": [{name: getattr(part, name) for name in counted} for part in diff.partitions],
                "columns": columns,
                "masked": diff.masked,
                "tolerance": diff.tolerance,
                "notes": diff.notes,
                "outside": found.outside,
                "metrics": found.metrics,
            }
        )
    )
    return made
