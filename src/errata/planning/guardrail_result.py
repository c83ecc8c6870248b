"""Result of one guardrail of a plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    """What one rule says; ``override`` is the reason it was set aside with, which ``final`` ones cannot be."""

    rule: str
    level: str  # ok | warn | refuse
    message: str
    override: str | None = None
    final: bool = False
