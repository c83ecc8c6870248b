"""Health signals of the live pipeline: whether the run may continue, only slowly, or must pause.

Each worker reads the signals in its own thread, so that a slow probe delays nothing. Every change of level is audited
with the reading that caused it. A signal that cannot be read pauses the run unless it is configured otherwise
(``unreadable``), because the live pipeline has priority over the backfill.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Self

from errata.errors import ErrataError
from errata.model.product.throttle import Signal


class Level(StrEnum):
    """What a signal allows, from best to worst."""

    GO = "go"
    SLOW = "slow"
    PAUSE = "pause"


_ORDER = list(Level)


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a signal; ``value`` is None if it could not be read, and ``problem`` says why."""

    signal: Signal
    value: Decimal | None
    level: Level
    problem: str | None = None

    @property
    def told(self) -> str:
        """The reading as text for the user."""
        if self.value is None:
            return f"{self.signal.name} cannot be read: {self.problem}"
        limit = self.signal.pause_above if self.level is Level.PAUSE else self.signal.slow_above
        return f"{self.signal.name} is {self.value}" + (f", above {limit}" if self.level is not Level.GO else "")


def decide_level(signal: Signal, value: Decimal | None, before: Level) -> Level:
    """The level for this value; a paused run resumes only below ``resume_below``, if that is set."""
    if value is None:
        return Level.PAUSE if signal.unreadable == "pause" else Level.GO
    if signal.pause_above is not None and value > Decimal(signal.pause_above):
        return Level.PAUSE
    if before is Level.PAUSE and signal.resume_below is not None and value >= Decimal(signal.resume_below):
        return Level.PAUSE
    if signal.slow_above is not None and value > Decimal(signal.slow_above):
        return Level.SLOW
    return Level.GO


class HealthMonitor:
    """Reads the signals until closed; ``worst`` is the reading that currently limits the run."""

    def __init__(
        self,
        signals: Sequence[Signal],
        read: Callable[[Signal], Decimal],
        changed: Callable[[Reading], None],
        seen: Callable[[Reading], None] = lambda _: None,
    ) -> None:
        self._read = read
        self._changed = changed
        self._seen = seen
        self._over = threading.Event()
        self._now = {signal.name: Reading(signal, None, Level.GO) for signal in signals}
        self._told = dict.fromkeys(self._now, Level.GO)
        self._due = dict.fromkeys(self._now, 0.0)
        self._thread = threading.Thread(target=self._watch_signals, name="health", daemon=True)

    def __enter__(self) -> Self:
        if self._now:
            # read once before the thread starts, so that no chunk starts before the first reading
            self._check_signals()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)

    @property
    def worst(self) -> Reading | None:
        """The reading with the worst level; None without signals."""
        return max(self._now.values(), key=lambda reading: _ORDER.index(reading.level), default=None)

    def _watch_signals(self) -> None:
        while not self._over.wait(1.0):
            self._check_signals()

    def _check_signals(self) -> None:
        for name, before in list(self._now.items()):
            if time.monotonic() >= self._due[name]:
                self._now[name] = self._read_signal(before)
                # only metrics get every reading: while the ledger cannot be reached, there are none
                with suppress(ErrataError):
                    self._seen(self._now[name])
                self._due[name] = time.monotonic() + before.signal.every_seconds
            if self._now[name].level is not self._told[name]:
                self._report_change(self._now[name])

    def _report_change(self, reading: Reading) -> None:
        try:
            self._changed(reading)
        except Exception:  # noqa: BLE001 - a listener that fails is called again at the next reading; the watch continues
            return
        self._told[reading.signal.name] = reading.level

    def _read_signal(self, before: Reading) -> Reading:
        signal = before.signal
        try:
            value = self._read(signal)
        except Exception as error:  # noqa: BLE001 - a watch that ended silently would hold the run, or let it go, for ever
            problem = error.message if isinstance(error, ErrataError) else type(error).__name__
            return Reading(signal, None, decide_level(signal, None, before.level), problem)
        return Reading(signal, value, decide_level(signal, value, before.level))
