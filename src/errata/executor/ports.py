"""What the worker needs from an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from errata.model.manifest import Chunk, Manifest

__all__ = ["ChunkEngine", "ChunkWork"]


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """One attempt at one chunk. ``parts`` holds the content-addressed parts of the manifest by digest."""

    run_id: str
    manifest: Manifest
    manifest_digest: str
    chunk: Chunk
    fence: int
    parts: Mapping[str, bytes]

    @property
    def attempt(self) -> str:
        """The name that the attempt's snapshot carries."""
        return f"{self.run_id}/{self.chunk.chunk_id}/{self.fence}"


class ChunkEngine(Protocol):
    """Computes a chunk and appends it to the run branch."""

    def check_sources(self, work: ChunkWork) -> None:
        """Raises ``SourceChanged`` naming every pinned file of this chunk that is missing or different."""

    def append(self, work: ChunkWork) -> None:
        """One ``append()`` of the transform's output, named after the attempt; at most once per fence. Raises
        ``ChunkError`` when the transform or its output is at fault; anything else may pass."""

    def cancel(self, work: ChunkWork) -> None:
        """Stop the Spark jobs of an attempt that lost its lease. Best effort."""
