"""Which snapshot of an input each partition of a run reads, where they differ. Pure.

A chunk has partitions of one kind only, so that one frame per input is right for all of them. Engines therefore read
only pins that were narrowed to such partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from errata.errors import EngineError
from errata.model.manifest import InputPin, Manifest


def find_kinds(inputs: Sequence[InputPin], partitions: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Partition → the snapshots it reads, of the inputs that have several; equal ones may share a chunk."""
    several = [_index_spans(pin) for pin in inputs if pin.snapshots]
    return {name: tuple(by_name[name] for by_name in several) for name in partitions}


def narrow_pins(manifest: Manifest, partitions: Sequence[str]) -> Manifest:
    """The manifest with every input at the one snapshot that these partitions read."""
    if not any(pin.snapshots for pin in manifest.inputs):
        return manifest
    return replace(manifest, inputs=tuple(_narrow_pin(pin, partitions) for pin in manifest.inputs))


def refuse_open_pin(pin: InputPin) -> None:
    """Raise ``EngineError`` for a pin that was not narrowed: any one snapshot would be wrong for some partitions."""
    if pin.snapshots:
        raise EngineError(f"input {pin.name} is read at {len(pin.snapshots)} snapshots, by partition; expected one")


def _narrow_pin(pin: InputPin, partitions: Sequence[str]) -> InputPin:
    if not pin.snapshots:
        return pin
    by_name = _index_spans(pin)
    held = {by_name[name] for name in partitions}
    if len(held) != 1:
        raise EngineError(f"input {pin.name}: {', '.join(partitions[:3])} … read {len(held)} snapshots; expected one")
    return replace(pin, snapshot_id=held.pop(), snapshots=())


def _index_spans(pin: InputPin) -> dict[str, str]:
    return {name: span.snapshot_id for span in pin.snapshots for name in span.partitions}
