"""Everything the guardrails look at. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from errata.model.manifest import Code, Estimate
from errata.model.partition import format_partition_list, format_ranges
from errata.model.product import Limits, Product
from errata.planning.plan_command import format_plan_command
from errata.planning.request import Request
from errata.ports.tables import ActiveRun, InputState, PastTarget, TargetState

_SHOWN = 12
_MAX_LIST = 300
"""Longest list of partitions in a command that a person is asked to type or paste."""


@dataclass(frozen=True, slots=True)
class PlanContext:
    """A request, and the state of everything it touches."""

    request: Request
    product: Product
    limits: Limits
    partitions: tuple[str, ...]
    target: TargetState
    inputs: Mapping[str, InputState]
    code: Code
    estimate: Estimate
    now: datetime
    active_runs: Sequence[ActiveRun] = ()
    beside: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)  # columns by side table; None: absent
    held: PastTarget | None = None  # snapshot that a restore puts back
    core_hour_usd: str = "0"

    def folded(self, partitions: Sequence[str]) -> str:
        """Format partitions as ranges, cut short because results are stored for good."""
        return format_ranges(self.product.target.grain, partitions, _SHOWN)

    def command_without(self, left_out: Collection[str]) -> tuple[str, ...]:
        """The command that plans the rest of the request; none if nothing is left or the list would be too long."""
        rest = [name for name in self.partitions if name not in left_out]
        return self.command_for(rest, "then the others")

    def command_for(self, partitions: Sequence[str], what: str) -> tuple[str, ...]:
        """The command that plans these partitions of the request."""
        listed = format_partition_list(self.product.target.grain, partitions) if partitions else ""
        if not listed or len(listed) > _MAX_LIST:
            return ()
        return (f"{what}: {format_plan_command(self.request, partitions=listed)}",)
