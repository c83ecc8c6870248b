"""Port for checkpoints of streaming queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from errata.model.consumer.checkpoint import Checkpoint


class CheckpointStore(Protocol):
    """Reads checkpoints, and writes copies of them; a checkpoint that a reader uses is never written to."""

    def read(self, location: str) -> Checkpoint:
        """A checkpoint with all of its files; raises ``NotFound`` if there is none, ``EngineError`` if it is broken.

        Files that come or go while they are listed are read as they are then.
        """

    def write(self, location: str, files: Mapping[str, bytes]) -> None:
        """Write a copy with exactly these files; safe to repeat. Raises ``StateRefused`` if there are others."""
