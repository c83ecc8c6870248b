"""``kill -9`` in a run that brings new columns: readers see rows and columns both old or both new; nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crash.test_kill import _killed, _publications
from spark.test_new_columns import BUILD, NEW, PRODUCT, columns, features, shadows
from support.world import World
from support.worlds import WorldAt

Make = Callable[..., World]
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("point", ["run.after_guard", "stage.before_commit", "stage.after_commit", "stage.after_adopt"])
def test_killed_while_staging_the_shadow_is_used_again(world_at: WorldAt, point: str) -> None:
    """One shadow, one run branch in it, and no chunk that was done is computed again."""
    world, run = world_at("approved", days=2, chunk_bytes="1", product=PRODUCT, transform=BUILD)
    nth = "@2" if point.startswith("stage.") else ""
    _killed(world, point, "run", run, "--parallel", "1", person="ana", nth=nth)
    assert not columns(world) & set(NEW)
    done = {c.chunk_id for c in world.ledger.progress.chunks(run) if c.state.value == "done"}
    assert world.client.run(run, as_="ana").state == "staged"
    assert all(a.fence == 1 for a in world.ledger.progress.attempts(run) if a.chunk_id in done)
    assert len(shadows(world)) == 1
    _publish(world, run)


@pytest.mark.parametrize("point", ["candidate.after_commit", "validate.after_measure"])
def test_killed_while_validating_the_candidate_in_the_shadow_is_found_again(world_at: WorldAt, point: str) -> None:
    """By its branch and property, as on the target."""
    world, run = world_at("staged", days=2, product=PRODUCT, transform=BUILD)
    _killed(world, point, "validate", run, person="ana")
    assert world.client.validate(run, as_="ana").passed
    assert not columns(world) & set(NEW)
    _publish(world, run)


@pytest.mark.parametrize(
    "point", ["publish.after_intent", "publish.after_undo", "publish.before_commit", "publish.after_commit"]
)
def test_killed_while_publishing_columns_and_rows_are_both_old_or_both_new(world_at: WorldAt, point: str) -> None:
    """There is no moment at which a reader sees one without the other."""
    world, run = world_at("validated", days=2, product=PRODUCT, transform=BUILD)
    _killed(world, point, "publish", run, "--yes", person="bo")
    landed = point == "publish.after_commit"
    assert world.rows() == (world.expected() if landed else world.wrong())
    assert columns(world) & set(NEW) == (set(NEW) if landed else set())
    _publish(world, run)


def test_killed_while_cleaning_up_the_table_keeps_every_file(world_at: WorldAt) -> None:
    """The shadow is gone, or goes the next time; what was published reads either way."""
    world, run = world_at("published", days=2, product=PRODUCT, transform=BUILD)
    _killed(world, "cleanup.after_remove", "cleanup", "--yes", person="ana")
    assert world.rows() == world.expected()
    world.client.cleanup(as_="ana")
    assert shadows(world) == []
    assert world.rows() == world.expected()
    world.client.rollback(run, reason="still possible", as_="bo")
    assert world.rows() == world.wrong()


def _publish(world: World, run: str) -> None:
    world.client.validate(run, as_="ana")
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.rows() == world.expected()
    assert all(feature != (None, None) for feature in features(world).values())
    assert _publications(world) == 1
