"""Signals of the live pipeline: what they allow, and who hears of a change."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from errata.errors import EngineError, LedgerUnavailable
from errata.model.product.throttle import Signal
from errata.worker.pipeline_health import HealthMonitor, Level, Reading, decide_level

LAG = Signal("lag", "command", ("x",), slow_above="100", pause_above="300", resume_below="50", every_seconds=1)


@pytest.mark.parametrize(
    "value, before, level",
    [
        ("10", Level.GO, Level.GO),
        ("100", Level.GO, Level.GO),
        ("101", Level.GO, Level.SLOW),
        ("301", Level.GO, Level.PAUSE),
        ("120", Level.PAUSE, Level.PAUSE),
        ("50", Level.PAUSE, Level.PAUSE),
        ("49", Level.PAUSE, Level.GO),
        (None, Level.GO, Level.PAUSE),
    ],
)
def test_a_reading_slows_pauses_and_resumes(value: str | None, before: Level, level: Level) -> None:
    """Above a limit, and back only below the lower one; what cannot be read is bad."""
    assert decide_level(LAG, None if value is None else Decimal(value), before) is level


def test_an_unreadable_signal_may_be_ignored_by_its_owner() -> None:
    """Only where the project says so."""
    assert decide_level(Signal("x", "http", ("u",), unreadable="ignore"), None, Level.GO) is Level.GO


def test_every_change_is_told_once_with_its_reading() -> None:
    """The worst signal counts; a broken probe is told as such."""
    values: list[Decimal | None] = [Decimal(10), Decimal(500), Decimal(500), Decimal(10), None]
    told: list[Reading] = []

    def read(_: Signal) -> Decimal:
        value = values.pop(0) if len(values) > 1 else values[0]
        if value is None:
            raise EngineError("no answer")
        return value

    with HealthMonitor([LAG], read, told.append) as watch:
        assert watch.worst is not None
        assert watch.worst.level is Level.GO
        ends = time.monotonic() + 20
        while len(told) < 3 and time.monotonic() < ends:
            time.sleep(0.05)
    assert [(reading.level, reading.value) for reading in told] == [
        (Level.PAUSE, Decimal(500)),
        (Level.GO, Decimal(10)),
        (Level.PAUSE, None),
    ]
    assert "above 300" in told[0].told
    assert "no answer" in told[2].told


def test_nothing_to_watch_holds_nothing() -> None:
    """No thread, no reading."""
    with HealthMonitor([], lambda _: Decimal(0), lambda _: None) as watch:
        assert watch.worst is None


def test_a_watch_survives_whoever_cannot_hear_it() -> None:
    """A ledger that does not answer is told again at the next look, and the signals are read on."""
    told: list[Level] = []
    readings = iter([Decimal(500)] * 3)

    def changed(reading: Reading) -> None:
        told.append(reading.level)
        if len(told) <= 2:
            raise LedgerUnavailable("not now")

    with HealthMonitor([LAG], lambda _: next(readings, Decimal(10)), changed) as watch:
        assert watch.worst is not None
        assert watch.worst.level is Level.PAUSE
        ends = time.monotonic() + 20
        while len(told) < 4 and time.monotonic() < ends:
            time.sleep(0.05)
    assert told == [Level.PAUSE, Level.PAUSE, Level.PAUSE, Level.GO]


def test_a_probe_that_breaks_in_its_own_way_counts_as_unreadable() -> None:
    """Whatever it raises: the watch goes on, and says no more than what kind of error it was."""

    def read(_: Signal) -> Decimal:
        raise RuntimeError("token=hunter2")

    told: list[Reading] = []
    with HealthMonitor([LAG], read, told.append) as watch:
        assert watch.worst is not None
        assert watch.worst.level is Level.PAUSE
    assert told[0].told == "lag cannot be read: RuntimeError"
