"""What becomes of a chunk whose attempt did not succeed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.model.manifest import Chunk
from errata.model.run import ChunkState


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that ended without a result, and what its chunk had been through before."""

    chunk: Chunk
    reason: str  # lease-expired | owner-dead | an error code
    tries: int  # with this one
    losses: int  # workers lost on this chunk, or on the one it was cut from, with this one
    message: str = ""


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """The next state: pending again (not before ``wait_seconds``), failed, quarantined, or replaced by ``pieces``."""

    to: ChunkState
    wait_seconds: float = 0.0
    pieces: tuple[tuple[str, ...], ...] = ()
    why: str = ""

    def body(self) -> Mapping[str, Any]:
        """For the audit."""
        told: dict[str, Any] = {"next": self.to.value}
        if self.wait_seconds:
            told["wait_seconds"] = round(self.wait_seconds)
        return told | ({"why": self.why} if self.why else {})
