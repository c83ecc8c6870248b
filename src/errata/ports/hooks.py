"""Ports for the user's own hooks: health probes, the break-glass alarm, progress."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

from errata.model.product.throttle import Signal


class Probes(Protocol):
    """Reads the health signals of the live pipeline."""

    def read(self, signal: Signal) -> Decimal:
        """Current value of the signal; raises ``EngineError`` when it cannot be read."""


class AlarmHook(Protocol):
    """Alerts people at once when break-glass is used."""

    @property
    def is_there(self) -> bool:
        """Whether the project configures an alarm."""

    def send_alarm(self, told: Mapping[str, Any]) -> None:
        """Send the alarm; raises ``EngineError`` on failure. May be repeated after a crash."""


class ProgressListener(Protocol):
    """Receives the progress of a run."""

    def advance(self, partitions: int, rows: int) -> None:
        """Count an adopted chunk: its partitions and rows."""

    def show(self, chunk_id: str, text: str | None) -> None:
        """Show what a chunk is doing; None when it has ended."""

    def close(self) -> None:
        """Stop showing progress, because the worker stops."""
