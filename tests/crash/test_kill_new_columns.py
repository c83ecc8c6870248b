"""``kill -9`` in a run that brings new columns: readers see rows and columns both old or both new; nothing twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crash.test_kill import _killed, _publications
from spark.test_new_columns import BUILD, NEW, PRODUCT, columns, features, shadows
from support.world import World

Make = Callable[..., World]
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("point", ["run.after_guard", "stage.before_commit", "stage.after_commit", "stage.after_adopt"])
def test_killed_while_staging_the_shadow_is_used_again(make_world: Make, point: str) -> None:
    """One shadow, one run branch in it, and no chunk that was done is computed again."""
    world = make_world(days=2, chunk_bytes="1", product=PRODUCT, transform=BUILD)
    run = world.to("approved")
    nth = "@2" if point.startswith("stage.") else ""
    _killed(world, point, "run", run, "--parallel", "1", person="ana", nth=nth)
    assert not columns(world) & set(NEW)
    done = {c.chunk_id for c in world.client._workspace.ledger.progress.chunks(run) if c.state.value == "done"}
    assert world.client.run(run, as_="ana").state == "staged"
    assert all(a.fence == 1 for a in world.client._workspace.ledger.progress.attempts(run) if a.chunk_id in done)
    assert len(shadows(world)) == 1
    _publish(world, run)


@pytest.mark.parametrize("point", ["candidate.after_commit", "validate.after_measure"])
def test_killed_while_validating_the_candidate_in_the_shadow_is_found_again(make_world: Make, point: str) -> None:
    """By its branch and property, as on the target."""
    world = make_world(days=2, product=PRODUCT, transform=BUILD)
    run = world.to("staged")
    _killed(world, point, "validate", run, person="ana")
    assert world.client.validate(run, as_="ana").passed
    assert not columns(world) & set(NEW)
    _publish(world, run)


@pytest.mark.parametrize(
    "point", ["publish.after_intent", "publish.after_undo", "publish.before_commit", "publish.after_commit"]
)
def test_killed_while_publishing_columns_and_rows_are_both_old_or_both_new(make_world: Make, point: str) -> None:
    """There is no moment at which a reader sees one without the other."""
    world = make_world(days=2, product=PRODUCT, transform=BUILD)
    run = world.to("validated")
    _killed(world, point, "publish", run, "--yes", person="bo")
    landed = point == "publish.after_commit"
    assert world.rows() == (world.expected() if landed else world.wrong())
    assert columns(world) & set(NEW) == (set(NEW) if landed else set())
    _publish(world, run)


def test_killed_while_cleaning_up_the_table_keeps_every_file(make_world: Make) -> None:
    """The shadow is gone, or goes the next time; what was published reads either way."""
    world = make_world(days=2, product=PRODUCT, transform=BUILD)
    run = world.to("published")
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
