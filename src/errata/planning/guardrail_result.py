"""Result of one guardrail of a plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    """Result of one rule; ``override`` is the reason for setting it aside. ``final`` results cannot be overridden.

    A refusal says what to look at before anything is overridden (``look``, by line), and how to plan without it: leave
    partitions out, or supersede a run. ``is_limit``: as many partitions as the limit allows would pass.
    """

    rule: str
    level: str  # ok | warn | refuse
    message: str
    override: str | None = None
    final: bool = False
    look: tuple[str, ...] = ()
    leave_out: frozenset[str] = frozenset()
    supersede: str | None = None
    is_limit: bool = False

    @property
    def can_be_avoided(self) -> bool:
        """Whether another request of the same kind passes this rule."""
        return bool(self.leave_out or self.supersede or self.is_limit)
