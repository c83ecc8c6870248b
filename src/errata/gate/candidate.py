"""Assemble the candidate, one snapshot of the chunks' adopted files, and measure it once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from errata.canonical import canonical_bytes, from_plain, sha256
from errata.errors import StateRefused
from errata.failpoints import failpoint
from errata.gate.diff.candidate_diff import find_candidate_diff
from errata.gate.measure.names import ADDED, CHANGED, REMOVED
from errata.gate.row_accounts import collect_row_accounts
from errata.gate.verdict.findings import CandidateSummary
from errata.ledger import CandidateRecord, CandidateState, ChunkRecord
from errata.ledger.records import map_partitions_to_chunks
from errata.model.duration import to_days
from errata.model.kind import ATTEST, RECONCILE
from errata.model.manifest import ExpectedFile, Manifest
from errata.model.refs import base_tag
from errata.model.run import ChunkState, RunState
from errata.model.table import DataFile
from errata.ports.compute import Candidate
from errata.ports.measure import CANDIDATE, Measurement, MeasurePlan
from errata.workspace import RunContext, Workspace


def require_adopted_chunks(context: RunContext) -> tuple[ChunkRecord, ...]:
    """Chunks of the run, or of its wave, none if it computes nothing; refuses unless all have adopted output."""
    run, wanted = context.run, set(context.manifest.partitions)
    if context.manifest.kind == RECONCILE:
        return ()
    chunks = tuple(
        chunk for chunk in context.ledger.progress.chunks(run.run_id) if not wanted.isdisjoint(chunk.partitions)
    )
    missing = [chunk for chunk in chunks if chunk.state is not ChunkState.DONE or chunk.snapshot_id is None]
    if missing or not wanted <= {p for chunk in chunks for p in chunk.partitions}:
        which = run.run_id if context.wave is None else f"wave {context.wave.n} of {run.run_id}"
        raise StateRefused(
            f"validate of {which} was refused; {len(missing)} of {len(chunks)} chunks have no adopted output",
            state="nothing was changed",
            # a failed canary rejects the run, and the other chunks are never computed
            hint=f'errata plan {run.product} … --supersede {run.run_id} --reason "…"'
            if run.state is RunState.REJECTED
            else f"errata run {run.run_id}",
        )
    return chunks


def _read_staged_files(workspace: Workspace, manifest: Manifest, chunk: ChunkRecord) -> tuple[DataFile, ...]:
    staged = workspace.engines.staging.staged(manifest.target, chunk.snapshot_id or "")
    if (staged.rows, len(staged.files)) != (chunk.output_rows, chunk.output_files):
        raise StateRefused(
            f"chunk {chunk.chunk_id} has {staged.rows} rows in {len(staged.files)} files; the ledger adopted "
            f"{chunk.output_rows} in {chunk.output_files}",
            state="main is unchanged",
            hint=f"errata audit log --run {chunk.run_id}",
        )
    return staged.files


def encode_candidate(manifest: Manifest, files: Iterable[DataFile | ExpectedFile]) -> bytes:
    """Canonical form of a candidate: scope, schema and exactly these files, independent of their order."""
    return canonical_bytes(
        {
            "partitions": manifest.partitions,
            "schema_id": manifest.target.schema_id,
            "columns": manifest.target.columns,
            "files": sorted([file.path, file.rows] for file in files),
        }
    )


def digest_candidate(manifest: Manifest, files: tuple[DataFile, ...]) -> str:
    """Digest of a candidate, which verdicts and releases bind to."""
    return sha256(encode_candidate(manifest, files))


def assemble_candidate(context: RunContext, chunks: Sequence[ChunkRecord]) -> CandidateRecord:
    """Build the candidate from exactly these chunks' files, or return the existing candidate with the same digest."""
    if context.manifest.kind == RECONCILE:
        return _take_main(context)
    wanted = set(context.manifest.partitions)
    held = {name: chunk for name, chunk in map_partitions_to_chunks(chunks).items() if name in wanted}
    adopted = tuple(
        file
        for chunk in chunks
        if chunk.chunk_id in held.values()
        for file in _read_staged_files(context.workspace, context.manifest, chunk)
        # a partition that was recomputed after a live write belongs to its newest chunk only
        if held.get(file.partition or "") == chunk.chunk_id
    )
    digest, staging, target = (
        digest_candidate(context.manifest, adopted),
        context.engines.staging,
        context.manifest.target,
    )
    known = [c for c in context.ledger.candidates.list(context.run_id) if c.digest == digest]
    for candidate in reversed(known):
        found = staging.find_candidate(target, candidate.branch)
        if found and candidate.state is not CandidateState.ABANDONED:
            return _record_made(context, candidate.n, found)
    rows = dict.fromkeys(context.manifest.partitions, 0)
    for file in adopted:
        rows[file.partition or ""] = rows.get(file.partition or "", 0) + file.rows
    # evidence lists these files long after the branch is gone; the part's name is the digest of its bytes
    context.ledger.parts.put(encode_candidate(context.manifest, adopted))
    # the intent names the branch before it exists, so that a repeat after a crash finds the commit and reuses it
    intended = context.ledger.candidates.intend(context.run_id, digest, context.actor, {"rows": rows})
    failpoint("candidate.after_intent")
    paths = [file.path for file in adopted]
    days = to_days(context.workspace.project.retention.candidates)
    made = staging.make_candidate(target, context.run_id, intended.branch, context.manifest.partitions, paths, days)
    failpoint("candidate.after_commit")
    return _record_made(context, intended.n, made)


def _record_made(context: RunContext, n: int, made: Candidate) -> CandidateRecord:
    # an attestation is about the pinned main, whatever was written to main since
    manifest = context.manifest
    base = manifest.target.base_snapshot_id if manifest.kind == ATTEST else made.base_snapshot_id
    return context.ledger.candidates.record(context.run_id, n, base, made.snapshot_id, context.actor)


def _take_main(context: RunContext) -> CandidateRecord:
    """Main as the plan pinned it, in place of a candidate: what a reconciliation judges. Nothing is written to it."""
    manifest, base = context.manifest, context.manifest.target.base_snapshot_id or ""
    listed: Mapping[str, Any] = json.loads(context.ledger.parts.get(manifest.target.expected_part))
    held = {
        name: tuple(from_plain(ExpectedFile, file) for file in listed.get(name, ())) for name in manifest.partitions
    }
    # a file that partitions share is in the list of each
    content = encode_candidate(manifest, {file.path: file for files in held.values() for file in files}.values())
    digest = context.ledger.parts.put(content)
    made = next((one for one in context.ledger.candidates.list(context.run_id) if one.digest == digest), None)
    if made is None:
        rows = {name: sum(file.rows for file in files if file.content == "data") for name, files in held.items()}
        made = context.ledger.candidates.intend(
            context.run_id, digest, context.actor, {"rows": rows}, branch=base_tag(context.run_id)
        )
        failpoint("candidate.after_intent")
    return context.ledger.candidates.record(context.run_id, made.n, base, base, context.actor)


def measure_candidate(context: RunContext, candidate: CandidateRecord) -> tuple[Measurement, ...]:
    """Measure this candidate; stored measurements are reused, so a changed threshold never needs a scan."""
    if stored := context.ledger.candidates.measurements(context.run_id, candidate.n):
        return stored
    # imported late: the SQL parser takes half a second to import, and only this needs it
    from errata.gate.known_prior import find_known_prior
    from errata.gate.measure.scan_plan import compile_plan
    from errata.gate.wave_rules import measure_whole_run

    plan = compile_plan(context.manifest)
    known = find_known_prior(context, candidate, plan)
    found = (
        *_measure(context, candidate, known.leave_out(plan, context.manifest)),
        *known.measurements,
        *collect_row_accounts(context.workspace, context.run, context.manifest),
        *measure_whole_run(context),
    )
    if context.manifest.kind == ATTEST:
        found = (*found, *_compare_with_main(context, candidate, found))
    failpoint("validate.after_measure")
    # all measurements are stored at once: a partial set would be reused as if it were complete
    context.ledger.candidates.record_measurements(
        context.run_id, candidate.n, found, context.actor, reused=known.describe(context.manifest)
    )
    return found


def measure_manifest(context: RunContext, candidate: CandidateRecord) -> tuple[Measurement, ...]:
    """Measure what the rules of the context's manifest need, without recording it."""
    from errata.gate.measure.scan_plan import compile_plan

    return _measure(context, candidate, compile_plan(context.manifest))


def _measure(context: RunContext, candidate: CandidateRecord, plan: MeasurePlan) -> tuple[Measurement, ...]:
    return tuple(
        context.engines.measurer.measure(
            context.manifest,
            plan,
            candidate_snapshot=candidate.snapshot_id or "",
            prior_snapshot=candidate.base_snapshot_id,
            rebased=context.ledger.rebases.list(context.run_id),
        )
    )


def _compare_with_main(
    context: RunContext, candidate: CandidateRecord, measured: tuple[Measurement, ...]
) -> Iterator[Measurement]:
    """Count the rows that differ from main; the diff is kept, so that a look at it needs no staged output."""
    diff = find_candidate_diff(context, candidate, context.manifest.partitions, 0, measured).diff
    for part in diff.partitions:
        counts = {ADDED: part.added, REMOVED: part.removed, CHANGED: part.changed}
        yield from (Measurement(CANDIDATE, part.partition, name, str(count)) for name, count in counts.items())


def describe_candidate(workspace: Workspace, manifest: Manifest, candidate: CandidateRecord) -> CandidateSummary:
    """Adopted rows and schema of a candidate, known without a scan."""
    described = workspace.engines.tables.describe(manifest.target.staging.table)
    return CandidateSummary(candidate.detail["rows"], {column.name: column.type for column in described.columns})
