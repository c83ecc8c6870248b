"""The guide on lineage: its settings are valid, and what it lists is what is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.model.lineage.moments import Subject
from support.lineage import read_events
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT, PRODUCT_FILE

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/lineage.md").read_text("utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
SETTINGS = [block for block in BLOCKS if "lineage:" in block]


@pytest.mark.parametrize("settings", SETTINGS, ids=["file", "http", "kafka", "names"])
def test_the_settings_of_the_guide_load(settings: str, make_world: Callable[..., World]) -> None:
    """Each as it is printed; nothing is sent by opening a project."""
    project = make_world(days=1, project=f"\n{settings}").workspace.project
    assert project.lineage is not None
    assert project.lineage.transport in settings


def test_the_guide_lists_the_jobs_and_facets_that_are_sent(make_world: Callable[..., World]) -> None:
    """No facet is missing in the page, and none is in it that is never sent."""
    (declared,) = [block for block in BLOCKS if "made_from:" in block]
    world = make_world(days=2, project=f"\n{SETTINGS[0]}", product=PRODUCT_FILE + declared)
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    world.client.cancel(world.to("staged"), reason="enough", as_="ana")
    world.client.deliver(as_="ana")
    assert world.client.outbox().items == ()
    events = read_events(world.root / "lineage.jsonl")
    jobs = {one["job"]["name"].replace(PRODUCT, "PRODUCT") for one in events}
    assert jobs == set(re.findall(r"^\| `(PRODUCT[.\w]*)` \|", GUIDE, re.MULTILINE))
    assert len(jobs) == len(Subject)
    table = GUIDE.partition("| facet | holds |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("|")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert find_facets(events) | {"errorMessage"} == listed


def find_facets(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for one in value for name in find_facets(one)}
    if not isinstance(value, dict):
        return set()
    own = {name for name, one in value.items() if isinstance(one, dict) and "_schemaURL" in one}
    return own | {name for one in value.values() for name in find_facets(one)}
