"""Repack waiting chunks towards the target time per chunk, based on how long the first chunks took.

Does not apply when the project fixes the chunk size, when a run reads its own output one partition at a time, or when
it reads a change log, which every chunk reads as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from errata.model.manifest import Chunk, InputPin
from errata.model.pinned_snapshots import find_kinds
from errata.model.run import ChunkState
from errata.planning.estimate import count_worker_cores
from errata.planning.repack import resize_chunks
from errata.worker.attempt import RunJob
from errata.worker.canary import measure_done_chunks

RESIZE_AFTER_CHUNKS = (2, 6, 18, 54, 162)
"""Numbers of done chunks at which the size is reconsidered: often at first, rarely later."""


def can_repack(inputs: Iterable[InputPin]) -> bool:
    """Whether other chunks would read the same in other pieces."""
    return not any(pin.own or pin.is_message_log for pin in inputs)


def resize_waiting(job: RunJob) -> None:
    """Repack the waiting chunks if their expected time is far from the target."""
    workspace, run_id = job.workspace, job.run.run_id
    if workspace.project.chunk_bytes is not None or not can_repack(job.manifest.inputs):
        return
    if workspace.ledger.progress.counts(run_id).done not in RESIZE_AFTER_CHUNKS:
        return
    chunks = workspace.ledger.progress.chunks(run_id)
    done = [chunk for chunk in chunks if chunk.state is ChunkState.DONE]
    waiting = [
        Chunk(chunk.chunk_id, chunk.partitions, chunk.rows, chunk.bytes, chunk.wave)
        for chunk in chunks
        # keep the pieces of a chunk that killed its worker as small as they are
        if chunk.state is ChunkState.PENDING and chunk.fence == 0 and chunk.wave != 0 and not chunk.losses
    ]
    product = workspace.product(job.manifest.product)
    packed = resize_chunks(
        waiting,
        measure_done_chunks(job, done),
        seconds=workspace.project.chunk_seconds,
        cores=count_worker_cores(workspace.project, product),
        kinds=find_kinds(job.manifest.inputs, job.manifest.partitions),
    )
    if packed is not None:
        why = f"towards {workspace.project.chunk_seconds} s a chunk, from what {len(done)} took"
        if workspace.ledger.outcomes.repack(run_id, packed, job.actor, why):
            workspace.narrate(f"{len(waiting)} waiting chunks packed into {len(packed)}, {why}")
