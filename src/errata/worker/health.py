"""Watches how the live pipeline is doing and says whether the run may go on, only slowly, or not at all.

Each worker reads the signals itself, in a thread of its own, so that a slow probe holds up nothing. Every change of
mind is audited with the reading that caused it. A signal that cannot be read counts as bad unless its owner said
otherwise: the live pipeline outranks the backfill.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Self

from errata.errors import ErrataError
from errata.model.product.throttle import Signal


class Level(StrEnum):
    """What a signal allows; in this order."""

    GO = "go"
    SLOW = "slow"
    PAUSE = "pause"


_ORDER = list(Level)


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a signal; ``value`` None: it could not be read, and ``problem`` says why."""

    signal: Signal
    value: Decimal | None
    level: Level
    problem: str | None = None

    @property
    def told(self) -> str:
        """For people."""
        if self.value is None:
            return f"{self.signal.name} cannot be read: {self.problem}"
        limit = self.signal.pause_above if self.level is Level.PAUSE else self.signal.slow_above
        return f"{self.signal.name} is {self.value}" + (f", above {limit}" if self.level is not Level.GO else "")


def decide_level(signal: Signal, value: Decimal | None, before: Level) -> Level:
    """What this value allows; once paused, a run resumes only below ``resume_below``."""
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
    """Reads the signals until closed; ``worst`` is what holds now."""

    def __init__(
        self, signals: Sequence[Signal], read: Callable[[Signal], Decimal], changed: Callable[[Reading], None]
    ) -> None:
        self._read = read
        self._changed = changed
        self._over = threading.Event()
        self._now = {signal.name: Reading(signal, None, Level.GO) for signal in signals}
        self._told = dict.fromkeys(self._now, Level.GO)
        self._due = dict.fromkeys(self._now, 0.0)
        self._thread = threading.Thread(target=self._watch_signals, name="health", daemon=True)

    def __enter__(self) -> Self:
        if self._now:
            # the first chunk starts only after the first look
            self._check_signals()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)

    @property
    def worst(self) -> Reading | None:
        """The reading that allows least; None when there is nothing to watch."""
        return max(self._now.values(), key=lambda reading: _ORDER.index(reading.level), default=None)

    def _watch_signals(self) -> None:
        while not self._over.wait(1.0):
            self._check_signals()

    def _check_signals(self) -> None:
        for name, before in list(self._now.items()):
            if time.monotonic() >= self._due[name]:
                self._now[name] = self._read_signal(before)
                self._due[name] = time.monotonic() + before.signal.every_seconds
            if self._now[name].level is not self._told[name]:
                self._report_change(self._now[name])

    def _report_change(self, reading: Reading) -> None:
        try:
            self._changed(reading)
        except Exception:  # noqa: BLE001 - whoever cannot hear now is told at the next look; the watch goes on
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
