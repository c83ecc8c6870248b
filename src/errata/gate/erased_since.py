"""Compute chunks again that used rows of subjects who were erased since, under the same approval.

An attempt reads the newest list of erased subjects when it starts. When the candidate is judged, every chunk has read
the newest list, or was shown to have used nobody who came onto it later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from errata.canonical import digest_of
from errata.errors import ErasedSince
from errata.failpoints import failpoint
from errata.gate.newest_list import read_newest_list
from errata.gate.row_accounts import list_adopted_attempts
from errata.ledger.records import map_partitions_to_chunks
from errata.model.manifest import Chunk, Manifest
from errata.model.partition import format_ranges, sort_oldest_first
from errata.model.rebase import split_by_rebase
from errata.text.numbers import plural
from errata.workspace import RunContext


def recompute_without_erased(context: RunContext) -> str | None:
    """The newest snapshot of the list; raises ``ErasedSince`` if rows of subjects were used that came onto it since.

    The chunks that used them are in the queue again then. Only chunks that read an older list are looked at, and of the
    list only what came after it. None if the run reads no list.
    """
    manifest = context.manifest
    if manifest.erasure is None or not _leaves_out(manifest):
        return None
    newest = read_newest_list(context.workspace, manifest)
    held, read_at = _find_owned_chunks(context)
    snapshot = newest.erasure.snapshot_id if newest.erasure else None
    older: dict[str | None, list[str]] = {}
    for chunk_id, names in held.items():
        if read_at[chunk_id] != snapshot and not _is_known_clean(context, chunk_id, snapshot):
            older.setdefault(read_at[chunk_id], []).extend(names)
    rebases = context.ledger.rebases.list(context.run_id)
    hit: set[str] = set()
    for since, names in older.items():
        for piece in split_by_rebase(replace(newest, partitions=tuple(names)), rebases):
            hit.update(context.engines.suppressions.used(piece, since) if piece.partitions else ())
    again = _choose_chunks(manifest, held, hit)
    if not again:
        _note_clean(context, [chunk_id for chunk_id in held if read_at[chunk_id] != snapshot], snapshot)
        return snapshot
    failpoint("erasure.before_requeue")
    context.ledger.erasures.record(context.run_id, snapshot or "", again, context.actor)
    failpoint("erasure.after_requeue")
    listed = sort_oldest_first(manifest.target.grain, [name for chunk in again for name in chunk.partitions])
    raise ErasedSince(
        f"subjects were erased after {plural(len(again), 'chunk')} had used their rows: "
        f"{format_ranges(manifest.target.grain, listed)} is computed again without them",
        state="main is unchanged; the earlier candidate is dropped, and any release of it",
        hint=f"errata run {context.run_id} --validate",
        run_id=context.run_id,
        partitions=list(listed),
        snapshots=[],
    )


def _leaves_out(manifest: Manifest) -> bool:
    """Whether computing a chunk leaves out rows of erased subjects."""
    is_recorded = manifest.reconstruct is not None and manifest.erasure is not None and manifest.erasure.columns
    return bool(is_recorded) or manifest.leaves_out_prior_rows or any(pin.subjects for pin in manifest.inputs)


def _find_owned_chunks(context: RunContext) -> tuple[dict[str, list[str]], dict[str, str | None]]:
    """Partitions of each chunk whose output counts, and the snapshot of the list that it read."""
    wanted, held = set(context.manifest.partitions), dict[str, list[str]]()
    adopted = list_adopted_attempts(context.workspace, context.run_id)
    for name, chunk_id in map_partitions_to_chunks(context.ledger.progress.chunks(context.run_id)).items():
        if name in wanted:
            held.setdefault(chunk_id, []).append(name)
    read_at = {one.chunk_id: one.erasure_snapshot_id for one in adopted if one.chunk_id in held}
    return {chunk_id: names for chunk_id, names in held.items() if chunk_id in read_at}, read_at


def _choose_chunks(manifest: Manifest, held: Mapping[str, Sequence[str]], hit: Collection[str]) -> list[Chunk]:
    """The chunks that hold one of these partitions, as a whole, because their rows are counted by chunk.

    Where the product reads its own output, those after the first of them too.
    """
    grain = manifest.target.grain
    if not hit:
        return []
    chosen = {chunk_id for chunk_id, names in held.items() if not set(hit).isdisjoint(names)}
    if any(pin.own for pin in manifest.inputs):
        ordered = sort_oldest_first(grain, [name for names in held.values() for name in names])
        since = min(ordered.index(name) for chunk_id in chosen for name in held[chunk_id])
        chosen = {chunk_id for chunk_id, names in held.items() if not set(ordered[since:]).isdisjoint(names)}
    return [Chunk("", sort_oldest_first(grain, held[chunk_id]), 0, 0) for chunk_id in held if chunk_id in chosen]


def _clean_fact(chunk_id: str, snapshot: str | None) -> str:
    return f"unused.{chunk_id}.{digest_of(snapshot)[:16]}"


def _is_known_clean(context: RunContext, chunk_id: str, snapshot: str | None) -> bool:
    return _clean_fact(chunk_id, snapshot) in context.ledger.facts.list(context.run_id)


def _note_clean(context: RunContext, chunks: Sequence[str], snapshot: str | None) -> None:
    """Record that chunks used no row of those who came onto the list since, so that it is not looked up again."""
    known = context.ledger.facts.list(context.run_id)
    for chunk_id in chunks:
        if (name := _clean_fact(chunk_id, snapshot)) not in known:
            context.ledger.facts.record(context.run_id, name, {"chunk": chunk_id, "list": snapshot}, context.actor)
