"""A candidate readable by name: what the name says, and when it goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ValidationRejected
from support.memory_world import MemoryWorld
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., MemoryWorld]


def test_a_rejected_candidate_has_a_name_that_says_so_until_it_passes(make_world: Make) -> None:
    """It is readable to find out why; once accepted, the name that says rejected is gone."""
    product = PRODUCT_FILE.replace("checks:", "compare:\n  - {metric: sum(gross), warn: 5%}\nchecks:")
    world = make_world(days=2, product=product)
    run = world.to("staged")
    with pytest.raises(ValidationRejected):
        world.client.validate(run, as_="ana")
    view = world.client.dark(run, rejected=True, compare=True, as_="bo")
    assert view.name.endswith("_dark_rejected")
    assert world.rows(view.name) == world.expected()
    world.client.validate(run, accept={"sum(gross)": "the bug doubled it"}, as_="bo")
    assert view.name not in world.refs()
    assert view.view not in world.lake.views


def test_a_name_is_taken_away_by_cleanup_and_main_never_sees_it(make_world: Make) -> None:
    """Readers of main see the old rows while it is there; the pair of tags and the view go together."""
    world = make_world(days=2)
    run = world.to("validated")
    view = world.client.dark(run, name="preview", compare=True, as_="bo")
    assert (world.rows(), world.rows("preview"), world.rows("preview_before")) == (
        world.wrong(), world.expected(), world.wrong()
    )  # fmt: skip
    assert world.client.dark(run, name="preview", compare=True, as_="bo").already
    world.client.publish(run, as_="bo")
    removed = {(item["table"], item["ref"]) for item in world.client.cleanup(as_="ana").removed}
    assert {(TABLE, "preview"), (TABLE, "preview_before"), (view.view, "the view itself")} <= removed
    assert "preview" not in world.refs()
    assert world.client.cleanup(as_="ana").removed == ()
