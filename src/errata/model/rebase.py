"""Rebases: partitions that live jobs wrote after the plan, pinned again to be recomputed. Pure.

The manifest stays as sealed and approved; it states that live wins. A rebase records which partitions were concerned
and the state of the target and the inputs at that time. The newest rebase of a partition counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from errata.model.graph.read_rule import rule_of_pin
from errata.model.manifest import InputPin, Manifest
from errata.model.pinned_snapshots import find_kinds, narrow_pins
from errata.model.refs import base_tag, input_tags

LIVE_WINS = "live_wins"
"""Value of ``publish.on_live_write`` with which runs are rebased."""


@dataclass(frozen=True, slots=True)
class Rebase:
    """One rebase onto live writes."""

    n: int
    partitions: tuple[str, ...]  # partitions to recompute
    written: tuple[str, ...]  # partitions that live jobs wrote; fewer than ``partitions`` if rows are counted by chunk
    snapshots: tuple[str, ...]  # commits that wrote them
    base_snapshot_id: str | None
    expected_part: str  # digest of {partition: [ExpectedFile…]}
    pins_part: str  # digest of the inputs
    inputs: tuple[InputPin, ...]
    chunks: tuple[str, ...] = ()


def latest_by_partition(rebases: Sequence[Rebase]) -> dict[str, Rebase]:
    """The rebase that counts for each partition."""
    # rebases are in order, so a later one overwrites an earlier one
    return {name: rebase for rebase in rebases for name in rebase.partitions}


def apply_rebase(manifest: Manifest, rebases: Sequence[Rebase], partitions: Sequence[str]) -> Manifest:
    """The manifest with the pins of these partitions, which share a chunk and so a snapshot and at most one rebase."""
    if not partitions:
        return manifest
    manifest = narrow_pins(manifest, partitions)
    rebase = latest_by_partition(rebases).get(partitions[0])
    if rebase is None:
        return manifest
    inputs = {pin.name: pin for pin in rebase.inputs}
    return replace(
        manifest,
        target=replace(manifest.target, base_snapshot_id=rebase.base_snapshot_id),
        inputs=tuple(inputs.get(pin.name, pin) for pin in manifest.inputs),
    )


def split_by_rebase(manifest: Manifest, rebases: Sequence[Rebase]) -> tuple[Manifest, ...]:
    """Split the manifest into partitions with equal pins; the first keeps the plan's."""
    found: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    counts, kinds = latest_by_partition(rebases), find_kinds(manifest.inputs, manifest.partitions)
    for name in manifest.partitions:
        found.setdefault((counts[name].n if name in counts else 0, kinds[name]), []).append(name)
    if not any(n == 0 for n, _ in found):
        found[0, ()] = []
    # stable, so that pieces of the plan itself stay in the order of their partitions
    return tuple(
        replace(apply_rebase(manifest, rebases, names), partitions=tuple(names))
        for _, names in sorted(found.items(), key=lambda item: item[0][0])
    )


def list_rebase_bases(rebases: Sequence[Rebase]) -> dict[str, str | None]:
    """Base snapshot for explaining a difference, for partitions whose base is no longer the plan's."""
    return {name: rebase.base_snapshot_id for name, rebase in latest_by_partition(rebases).items()}


def apply_recounts(manifest: Manifest, rebases: Sequence[Rebase]) -> Manifest:
    """The manifest with the current row counts from the inputs' file metadata."""
    counts = latest_by_partition(rebases)
    if not counts:
        return manifest

    def pin_of(pin: InputPin) -> InputPin:
        if not pin.counts:
            return pin
        rule = rule_of_pin(pin, manifest.target.grain).without_look
        later = {name: {one.name: one for one in rebase.inputs}.get(pin.name, pin) for name, rebase in counts.items()}
        found = {read: one.counts.get(read, 0) for name, one in later.items() for read in rule.list_reads([name])}
        return replace(pin, counts={**pin.counts, **found})

    return replace(manifest, inputs=tuple(map(pin_of, manifest.inputs)))


def list_rebase_tags(run_id: str, table: str, rebase: Rebase) -> Mapping[tuple[str, str], str]:
    """Tags that keep the snapshots a rebase reads: (table, tag) → snapshot."""
    name = f"{run_id}_r{rebase.n}"
    base = {(table, base_tag(name)): rebase.base_snapshot_id} if rebase.base_snapshot_id else {}
    return {**base, **input_tags(name, rebase.inputs)}
