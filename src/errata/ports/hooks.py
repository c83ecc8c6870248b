"""Ports for the user's own hooks: health probes, the break-glass alarm, progress."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

from errata.model.product.throttle import Signal


class Probes(Protocol):
    """How the live pipeline is doing."""

    def read(self, signal: Signal) -> Decimal:
        """The signal's number; raises ``EngineError`` when it cannot be had."""


class AlarmHook(Protocol):
    """Tells people at once that someone broke the glass."""

    @property
    def is_there(self) -> bool:
        """Whether the project names someone to tell."""

    def send_alarm(self, told: Mapping[str, Any]) -> None:
        """Tell them; raises ``EngineError`` when that did not work. May be repeated after a crash."""


class ProgressListener(Protocol):
    """Someone who watches a run."""

    def advance(self, partitions: int, rows: int) -> None:
        """A chunk was adopted."""

    def show(self, chunk_id: str, text: str | None) -> None:
        """What a chunk is doing; None: it is over."""

    def close(self) -> None:
        """The worker stops."""
