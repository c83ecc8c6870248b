"""Control periods of a run: counted in the plan, and named in the verdict with their numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ValidationRejected
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE

GATED = (
    PRODUCT_FILE
    + 'control:\n  - {name: usual rows, metric: "count(*)", weeks: 2, least: 4}\n'
    + '  - {name: usual gross, metric: "sum(gross)", weeks: 2, least: 4}\n'
).replace(
    "lineage_columns",
    '  - {name: by account, input: raw, source: "sum(amount)", target: "sum(gross)", by: [account]}\n'
    '  - {name: by name, input: raw, source: "count(*)", target: "sum(n)", per: run,\n'
    "     by: {who: upper(account)}, where: \"account <> 'nobody'\"}\n"
    "lineage_columns",
)


def test_a_run_shows_its_controls_in_the_plan_and_in_the_verdict(make_world: Callable[..., World]) -> None:
    """The history is doubled, so the corrected day differs from its controls, which the finding names."""
    world = make_world(days=39, product=GATED)
    plan = world.plan(world.days[24])
    assert {key: plan.gate[key] for key in ("controls", "control_partitions", "short_of_controls")} == {
        "controls": 2,
        "control_partitions": 4,
        "short_of_controls": 0,
    }
    assert world.to("staged", world.days[24]) == plan.id
    with pytest.raises(ValidationRejected) as caught:
        world.client.validate(plan.id, as_="ana")
    checks = {check["name"]: check for check in caught.value.fields["validation"].checks}
    assert (checks["usual gross"]["level"], checks["usual gross"]["value"]) == ("warn", "-3.81")
    assert checks["usual gross"]["message"].endswith(
        "controls 2026-01-11: 12.54, 2026-01-18: 13.38, 2026-02-01: 15.06, 2026-02-08: 15.90"
    )
    assert {name: checks[name]["level"] for name in ("by account", "by name", "usual rows")} == {
        "by account": "ok",
        "by name": "ok",
        "usual rows": "ok",
    }
    assert checks["by name"]["partition"] is None
