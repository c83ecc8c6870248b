"""Records that a run sends to a topic after its publication, and the headers that say where they come from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from errata.model.manifest import InputPin, Manifest


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """One record of a topic. Consumers drop records whose run (or publication) and key they have seen."""

    key: str
    value: str
    headers: Mapping[str, str]


def build_headers(
    run_id: str, publication_id: str, manifest: Manifest, mode: str, input_snapshot: str
) -> dict[str, str]:
    """Headers of every record: the run, what it is for, its code, and what it read."""
    return {
        "x-run-id": run_id,
        "x-publication-id": publication_id,
        "x-processing-mode": mode,
        "x-transform-version": f"{manifest.product}/{manifest.code.version}",
        "x-input-snapshot": input_snapshot,
    }


def describe_inputs(inputs: tuple[InputPin, ...]) -> str:
    """The exact state of every input: ``lake.raw.events@8392012349012``, or the digest of its files or offsets."""
    return ",".join(f"{_name_input(pin)}@{version}" for pin in inputs if (version := identify_input(pin)))


def _name_input(pin: InputPin) -> str:
    """Its location; of files the name of the input, because a pattern has paths of the project in it."""
    return pin.name if pin.kind == "files" and pin.recording is None else pin.location


def identify_input(pin: InputPin) -> str | None:
    """The exact state of an input: a snapshot, or the digest of its files or offsets, which the ledger keeps."""
    if pin.log is not None:
        return f"log:{pin.log.base}-{pin.log.position}:{pin.files_part or pin.snapshot_id}"
    if pin.files_part is None:
        return pin.snapshot_id
    return f"{'offsets' if pin.topic else 'recording' if pin.recording else 'files'}:{pin.files_part}"
