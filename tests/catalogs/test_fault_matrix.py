"""Every change that Errata makes to a REST catalog × every way in which a request or its answer goes wrong.

After each fault: main has exactly the right rows, by pyiceberg and by Spark; every snapshot that a table lists can be
opened; the owner's expiry works; what the command said is what the table shows; the next command goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalogs.stories import STORIES, Step, Story, Telling
from support.catalog_proxy import FAULTS, FaultyProxy
from support.invariants import assert_invariants
from support.lakes import Lake, rest_lake
from support.rest import RestCatalogServer
from support.savepoint import Savepoint
from support.soundness import expire_with_java, expire_with_spark, spark_rows, unreadable
from support.world import World


def assert_sound(telling: Telling, step: Step) -> None:
    """Main shows what it should after the step, to both readers, and every snapshot can be opened."""
    world, expected = telling.world, step.main(telling)
    assert unreadable(world) == []
    assert telling.rows() == expected
    assert telling.without_live(spark_rows(world)) == expected
    step.shows(telling)
    published = [s.summary.additional_properties for s in world.table().snapshots() if s.summary]
    ids = [told["errata.publication"] for told in published if "errata.publication" in told]
    assert len(ids) == len(set(ids))


def assert_survives_expiry(telling: Telling, step: Step) -> None:
    """The owner expires all that can be expired, by the procedure and by the API; main reads as before."""
    world = telling.world
    expire_with_spark(world)
    telling.add_live()  # so that there is something to expire
    expire_with_java(world)
    assert unreadable(world) == []
    assert telling.rows() == telling.without_live(spark_rows(world)) == step.main(telling)


def meet(telling: Telling, step: Step, proxy: FaultyProxy, fault: str, *changes: str) -> None:
    """The step, with the fault at the first of each of these changes; the table is whole, and the verdict is right."""
    with proxy.faulty(FAULTS[fault], *changes) as hits:
        step.carry_on(telling)
    assert {hit.kind for hit in hits} == set(changes), f"{step.name} did not make all of these changes"
    proxy.deliver()
    assert_sound(telling, step)


@pytest.fixture
def make_lake(behind_proxy: Callable[..., Lake]) -> Callable[..., Lake]:
    return behind_proxy


@pytest.mark.slow
@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_correction_gets_through_with_one_fault_at_each_kind_of_commit(
    make_world: Callable[..., World], proxies: list[FaultyProxy], tmp_path: Path, fault: str
) -> None:
    """From the plan to the clean-up, every kind of commit meets the fault once, and the table is whole after each."""
    story = STORIES[0]
    telling = story.begin(make_world, tmp_path)
    for step in story.steps:
        meet(telling, step, proxies[0], fault, *step.changes)
    assert_survives_expiry(telling, step)


class Saved:
    """Stories told once without a fault, with a savepoint before each step."""

    def __init__(self, base: SparkSession, catalogs: RestCatalogServer, places: pytest.TempPathFactory) -> None:
        self._base, self._catalogs, self._places = base, catalogs, places
        self._stack = ExitStack()
        self._told: dict[str, tuple[FaultyProxy, dict[str, tuple[Savepoint, Telling]]]] = {}

    def before(self, story: Story, step: Step) -> tuple[Telling, FaultyProxy]:
        """The story as it was before this step."""
        if story.name not in self._told:
            self._told[story.name] = self._report_change(story)
        proxy, moments = self._told[story.name]
        savepoint, telling = moments[step.name]
        savepoint.restore()
        return replace(telling), proxy

    def _report_change(self, story: Story) -> tuple[FaultyProxy, dict[str, tuple[Savepoint, Telling]]]:
        root = self._places.mktemp(story.name.replace(" ", "_"))
        (root / ".errata").mkdir()
        proxy = self._stack.enter_context(FaultyProxy.before(self._catalogs.catalog(root / ".errata")))

        def make(**options: object) -> World:
            return World.make(root, self._base, lake=rest_lake(proxy.address), **options)  # type: ignore[arg-type]

        telling = story.begin(make, root)
        moments = {}
        for step in story.steps:
            moments[step.name] = (Savepoint(telling.world, telling.run), replace(telling))
            step.carry_on(telling)
        return proxy, moments

    def close(self) -> None:
        """End every world and every proxy."""
        for _, moments in self._told.values():
            next(iter(moments.values()))[1].world.client.close()
        self._stack.close()


@pytest.fixture(scope="module")
def saved(
    base_spark: SparkSession, rest_catalogs: RestCatalogServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Saved]:
    """The stories, each told when it is first asked for."""
    stories = Saved(base_spark, rest_catalogs, tmp_path_factory)
    yield stories
    stories.close()


COMMITS = [
    pytest.param(story, step, change, id=f"{story.name}: {change} of {step.name}")
    for story in STORIES
    for step in story.steps
    for change in step.changes
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("story, step, change", COMMITS)
def test_a_fault_at_one_commit_harms_nobody_and_holds_up_nothing(
    saved: Saved, story: Story, step: Step, change: str, fault: str
) -> None:
    """The command ends with a right verdict, the owner's expiry works, and the next command goes on."""
    telling, proxy = saved.before(story, step)
    meet(telling, step, proxy, fault, change)
    assert_survives_expiry(telling, step)
    later = story.steps[story.steps.index(step) + 1 :][:1]
    for following in later:
        following.carry_on(telling)
        assert_sound(telling, following)
    assert_invariants(telling.world.root, telling.world.lake.pyiceberg)
