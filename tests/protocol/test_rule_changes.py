"""A correction that is planned again with other rules: the approver sees which."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from errata.errors import ValidationRejected
from errata.views import RuleChangeView
from support.memory_world import MemoryWorld
from support.world import PRODUCT, PRODUCT_FILE

Make = Callable[..., MemoryWorld]
STRICT = PRODUCT_FILE.replace("checks:", "compare:\n  - {metric: sum(gross), block: 5%}\nchecks:")


def _loosen(world: MemoryWorld) -> None:
    place = world.root / "products/sales.yaml"
    place.write_text(place.read_text().replace("block: 5%", "block: 95%"))
    world.client.close()
    world.open()


def _told(changes: Iterable[RuleChangeView]) -> list[tuple[str, str | None, str | None]]:
    return [(one.rule, one.was, one.now) for one in changes]


def test_a_limit_that_was_loosened_after_a_rejection_is_in_the_new_plan(make_world: Make):
    """The rejection gives the whole command; plan and show of the new run name the old limit and the new one."""
    world = make_world(days=2, product=STRICT)
    run = world.to("staged")
    with pytest.raises(ValidationRejected) as rejected:
        world.client.validate(run, as_="ana")
    scope = f"{world.days[0]}..{world.days[1]}"
    again = f'errata plan {PRODUCT} --partitions {scope} --supersede {run} --reason "…"'
    assert rejected.value.hint == f"correct the transform or the rule, then: {again}"
    _loosen(world)
    made = world.plan(supersede=run)
    assert _told(made.rules_changed) == [("compare sum(gross)", "block 5%", "block 95%")]
    assert world.client.show(made.run_id).rules_changed == made.rules_changed
    assert made.rules_changed[0].run_id == run


def test_a_plan_that_nobody_approved_does_not_hide_what_was_loosened(make_world: Make):
    """Cancelled and planned once more, the rules are still compared with those that somebody approved."""
    world = make_world(days=1, product=STRICT)
    run = world.to("staged")
    _loosen(world)
    between = world.plan(supersede=run)
    world.client.cancel(between.run_id, reason="no longer needed", as_="ana")
    made = world.plan(supersede=run)
    assert made.supersedes == between.run_id
    assert made.rules_changed == between.rules_changed != ()


def test_the_same_rules_are_not_mentioned(make_world: Make):
    """A plan that supersedes nothing, or changes only the reason, has no change of rules."""
    world = make_world(days=1, product=STRICT)
    first = world.plan()
    assert first.rules_changed == ()
    assert world.plan(supersede=first.run_id, reason="other words").rules_changed == ()
