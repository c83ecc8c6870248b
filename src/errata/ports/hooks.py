"""Ports for the user's own hooks: health probes, the break-glass alarm, progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class DbtBuild:
    """What came of building a model with dbt."""

    is_built: bool
    results: bytes  # run_results.json; empty if dbt wrote none
    said: str  # the last lines of its output


class DbtRunner(Protocol):
    """Runs dbt for the models that campaigns build."""

    def seal(self, command: Sequence[str], select: str) -> dict[str, str]:
        """Digests of project, packages, manifest and compiled SQL of a model as they are now; builds nothing."""

    def build(self, command: Sequence[str], select: str, start: str, end: str) -> DbtBuild:
        """Build a model and run its tests for an interval of event_time, half-open; may be repeated."""


class ProgressListener(Protocol):
    """Receives the progress of a run."""

    def prepare(self, text: str | None) -> None:
        """Show what has to be done before the first chunk; None when it is done."""

    def advance(self, partitions: Collection[str], rows: int) -> None:
        """Note an adopted chunk: its partitions and rows. A partition that is computed again counts once."""

    def show(self, chunk_id: str, text: str | None) -> None:
        """Show what a chunk is doing; None when it has ended."""

    def close(self) -> None:
        """Stop showing progress, because the worker stops."""
