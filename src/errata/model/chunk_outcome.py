"""Outcome of a chunk after an attempt that did not succeed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from errata.errors import ChunkError, ForeignPartition, OutputContract, SourceCorrupt, TransformFailed
from errata.model.manifest import Chunk
from errata.model.run import ChunkState

NEEDS_NEW_PLAN = frozenset(
    one.code for one in (ChunkError, TransformFailed, OutputContract, ForeignPartition, SourceCorrupt)
)
"""Failures that come again with every retry, because the plan seals code and inputs."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that ended without a result, with the history of its chunk."""

    chunk: Chunk
    reason: str  # lease-expired | owner-dead | an error code
    tries: int  # including this attempt
    losses: int  # workers lost on this chunk, or on the chunk it was split from, including this attempt
    message: str = ""


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """Next state: pending again (after ``wait_seconds``), failed, quarantined, or replaced by ``pieces``."""

    to: ChunkState
    wait_seconds: float = 0.0
    pieces: tuple[tuple[str, ...], ...] = ()
    why: str = ""

    def body(self) -> Mapping[str, Any]:
        """The outcome as an audit entry body."""
        told: dict[str, Any] = {"next": self.to.value}
        if self.wait_seconds:
            told["wait_seconds"] = round(self.wait_seconds)
        return told | ({"why": self.why} if self.why else {})
