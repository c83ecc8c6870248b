"""Results of checks: of the gate over a candidate, and of ``errata doctor`` over a machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from errata.text.numbers import format_exact, plural

_WEIGHT = {"ok": 0, "warn": 1, "block": 2}
"""What a rule may say."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one rule for one partition (None: for the whole candidate)."""

    name: str
    partition: str | None
    value: str | None
    level: str  # ok | warn | block
    message: str
    accepted_by: str | None = None


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One result of ``errata doctor``; ``waiting`` with ``ok``: not there yet, and ``hint`` says what creates it."""

    name: str
    ok: bool
    found: str
    hint: str | None = ""
    waiting: bool = False


def count_results(results: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Results of one rule in words: partitions by level, then what it says of the run as a whole, if it does.

    A rule may say several things about a partition, such as one for each input; the worst counts.

    >>> day, run = {"partition": "2026-01-01", "level": "ok"}, {"partition": None, "level": "ok"}
    >>> count_results([day, {**day, "level": "warn"}, {**day, "partition": "2026-01-02"}, run])
    ('1 of 2 partitions ok', '1 warn', 'run as a whole ok')
    """
    worst: dict[str | None, str] = {}
    for one in results:
        place, level = one.get("partition"), str(one.get("level"))
        worst[place] = max(worst.get(place, level), level, key=lambda one: _WEIGHT.get(one, 1))
    whole, levels = worst.pop(None, None), list(worst.values())
    told = [f"{format_exact(levels.count('ok'))} of {plural(len(levels), 'partition')} ok"] if levels else []
    told += [f"{format_exact(number)} {level}" for level in ("block", "warn") if (number := levels.count(level))]
    return (*told, *([f"run as a whole {whole}"] if whole else []))
