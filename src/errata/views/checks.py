"""Results of checks: of the gate over a candidate, and of ``errata doctor`` over a machine. Pure."""

from __future__ import annotations

from dataclasses import dataclass


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
