"""Determinism check: compute sample chunks twice, with different parallelism, before the run computes any chunk.

No table is written. The first worker to finish records the result as a run note, and later workers rely on it. It runs
here and not while planning, because planning needs no cluster and unapproved code must not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errata.canonical import digest_of
from errata.errors import Nondeterministic, StateRefused
from errata.gate.newest_list import read_newest_list
from errata.model.manifest import Chunk
from errata.model.partition import format_ranges
from errata.model.pinned_snapshots import narrow_pins
from errata.model.run import RunState
from errata.ports.compute import ChunkWork
from errata.worker.attempt import RunJob

DETERMINISM = "determinism"
REFUTED = "nondeterminism"
PARALLELISM = (3, 8)


def choose_samples(chunks: Sequence[Chunk], count: int) -> tuple[Chunk, ...]:
    """``count`` chunks spread evenly over the run, including the first and the last; the middle one for 1. Pure."""
    if count >= len(chunks):
        return tuple(chunks)
    if count == 1:
        return (chunks[len(chunks) // 2],)
    return tuple(chunks[n * (len(chunks) - 1) // (count - 1)] for n in range(count))


def check_determinism(job: RunJob) -> None:
    """Run the check; fail the run and raise ``Nondeterministic`` when a chunk gave different rows."""
    wanted, known = job.manifest.prove_determinism, job.workspace.ledger.facts.list(job.run.run_id)
    if REFUTED in known:
        # do not check again: a second check may pass by chance
        _fail_run(job, known[REFUTED]["partitions"])
    if not wanted or DETERMINISM in known:
        return
    # if the product reads its own output, only the first chunk has its inputs before the run has begun
    reads_itself = any(pin.own for pin in job.manifest.inputs)
    chosen = job.manifest.chunks[:1] if reads_itself else choose_samples(job.manifest.chunks, wanted)
    proven: dict[str, str] = {}
    for chunk in chosen:
        job.workspace.narrate(
            f"proving determinism on {format_ranges(job.manifest.target.grain, chunk.partitions)}, computed twice"
        )
        name = f"{job.run.run_id}/{chunk.chunk_id}/proof"
        pinned = narrow_pins(read_newest_list(job.workspace, job.manifest), chunk.partitions)
        work = ChunkWork(job.run.run_id, pinned, job.run.manifest_digest, chunk, name, job.parts)
        first, second = (job.workspace.engines.chunks.digests(work, tasks) for tasks in PARALLELISM)
        if different := _find_differences(first, second):
            fact = {"chunk": chunk.chunk_id, "partitions": different}
            job.workspace.ledger.facts.record(job.run.run_id, REFUTED, fact, job.actor)
            _fail_run(job, different)
        proven[chunk.chunk_id] = digest_of(dict(first))
    job.workspace.ledger.facts.record(
        job.run.run_id, DETERMINISM, {"chunks": proven, "parallelism": list(PARALLELISM)}, job.actor
    )


def _find_differences(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def _fail_run(job: RunJob, partitions: list[str]) -> None:
    ledger, run_id, body = job.workspace.ledger, job.run.run_id, {"nondeterministic": partitions[:50]}
    try:
        ledger.runs.move(run_id, RunState.FAILED, actor=job.actor, action="determinism.refuted", body=body)
    except StateRefused:
        # another worker failed the run first, or the run has ended
        pass
    told = format_ranges(job.manifest.target.grain, partitions)
    raise Nondeterministic(
        f"run {job.run.run_id} was stopped: {job.manifest.code.call} computed twice gave different rows for {told}",
        state="nothing was staged; main is unchanged",
        hint="no now(), rand(), uuid() or order of rows: take ctx.clock, ctx.deterministic_id() and a total order; "
        f"then plan again with --supersede {job.run.run_id}",
        partitions=partitions,
    )
