"""The fields of log lines about a run and about an attempt at a chunk. Pure."""

from __future__ import annotations

from typing import Any

from errata.model.kind import find_kind
from errata.model.manifest import Chunk, Manifest
from errata.model.partition import format_ranges
from errata.model.waves import wave_of_chunk

_SHOWN = 20
"""Ranges that a line shows."""


def describe_run(run_id: str, manifest: Manifest) -> dict[str, Any]:
    """The fields of every line about a run."""
    return {
        "run_id": run_id,
        "source_range": format_ranges(manifest.target.grain, manifest.partitions, _SHOWN),
        "transform_version": f"{manifest.code.version}@{manifest.code.zip_digest[:12]}",
        "target": manifest.target.table,
        "processing_mode": find_kind(manifest.kind).mode.value,
    }


def describe_attempt(run_id: str, manifest: Manifest, chunk: Chunk, attempt: str, fence: int) -> dict[str, Any]:
    """The fields of every line about an attempt; its range is that of its chunk."""
    planned = next((one for one in manifest.chunks if one.chunk_id == chunk.chunk_id), chunk)
    return {
        **describe_run(run_id, manifest),
        "chunk_id": chunk.chunk_id,
        "source_range": format_ranges(manifest.target.grain, chunk.partitions, _SHOWN),
        "attempt": attempt,
        "fence": fence,
        "wave": wave_of_chunk(planned.wave),
    }
