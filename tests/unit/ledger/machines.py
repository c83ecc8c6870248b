"""Runs the state machines against their models: few short histories by default, many long ones in ``make chaos``."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

from support.chaos import amount

__all__ = ["SIZES", "follow"]

Size = tuple[int, int]
SIZES = [
    pytest.param((20, 30), id="few"),
    pytest.param((amount("HISTORIES", 300), 100), id="many", marks=[pytest.mark.chaos, pytest.mark.timeout(7200)]),
]


def follow(machine: type[RuleBasedStateMachine], size: Size) -> None:
    """So many histories of up to so many steps."""
    histories, steps = size
    machine.TestCase.settings = settings(
        max_examples=histories,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        # each step is a commit: making a failure shorter would take minutes
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    machine.TestCase("runTest").runTest()
    print(f"\n{machine.__name__}: {histories} histories of up to {steps} steps followed the model")  # noqa: T201
