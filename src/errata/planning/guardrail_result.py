"""Result of one guardrail of a plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    """Result of one rule; ``override`` is the reason for setting it aside. ``final`` results cannot be overridden.

    ``look`` has, line by line, what to look at and what to type instead of an override.
    """

    rule: str
    level: str  # ok | warn | refuse
    message: str
    override: str | None = None
    final: bool = False
    look: tuple[str, ...] = ()
