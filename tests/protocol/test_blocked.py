"""A candidate that a check blocks: what validate says, and that no acceptance sets a block aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import UsageError, ValidationRejected
from support.memory_world import MemoryWorld, build
from support.world import PRODUCT_FILE

Make = Callable[..., MemoryWorld]
CHECK = "duplicateValues(day,account)"

SUMS = 'reconcile:\n  - {name: gross, input: raw, source: "sum(amount)", target: "sum(gross)", tolerance: 0}\n'
NO_SUMS = PRODUCT_FILE.replace(SUMS, "")


def _double(ctx: Any, raw: Any) -> list[dict[str, Any]]:
    return [row for row in build(ctx, raw) for _ in range(2)]


def test_one_check_in_two_partitions_is_one_failed_check(make_world: Make) -> None:
    """Checks are counted by name, not once for every partition."""
    world = make_world(days=2, transform=_double, product=NO_SUMS)
    with pytest.raises(ValidationRejected, match=r"^1 check failed in 2 partitions: "):
        world.client.validate(world.to("staged"), as_="ana")


def test_a_check_that_blocks_cannot_be_accepted(make_world: Make) -> None:
    """The refusal says that it blocks, and leads to the diff and another plan."""
    world = make_world(days=1, transform=_double)
    run = world.to("staged")
    with pytest.raises(UsageError, match="this check blocks, and only a warning can be accepted") as refused:
        world.client.validate(run, accept={CHECK: "it is fine"}, as_="bo")
    look, plan = (refused.value.hint or "").splitlines()
    assert look.endswith(f"errata diff {run}")
    assert f"--supersede {run}" in plan


def test_a_check_that_is_not_a_warning_leads_to_a_look(make_world: Make) -> None:
    """A name that no check has is not called a block."""
    world = make_world(days=1)
    run = world.to("staged")
    with pytest.raises(UsageError, match="expected a warning of this candidate: there is none") as refused:
        world.client.validate(run, accept={"nosuch": "it is fine"}, as_="bo")
    assert refused.value.hint == f"look at it: errata diff {run}"
