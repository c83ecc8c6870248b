"""A run that was sealed for another Spark: it is not computed or measured here, and can still be taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from errata.errors import SetupError
from errata.jars import find_installed_spark, load_jar_groups, load_lanes
from errata.jars.lane import read_minor
from support.memory_world import MemoryWorld

Make = Callable[..., MemoryWorld]


def _list_other_jars() -> Mapping[str, str]:
    here = read_minor(find_installed_spark() or "")
    other = next(lane for lane in load_lanes() if lane != here)
    return {jar.coordinate: jar.sha256 for group in load_jar_groups(other).values() for jar in group}


def test_a_run_sealed_for_another_spark_is_refused_and_stays_approved(make_world: Make) -> None:
    """Nothing is claimed or computed, and the run goes on where its Spark is."""
    world = make_world(days=2)
    run = world.to("approved")
    world.engines.other_jars = _list_other_jars()
    with pytest.raises(SetupError, match=f"run {run} was sealed for Spark") as refused:
        world.client.run(run, as_="ana")
    assert f"--supersede {run}" in (refused.value.hint or "")
    assert world.client.status(run).state == "approved"
    assert not world.ledger.progress.attempts(run)
    world.engines.other_jars = None
    assert world.client.run(run, as_="ana").state == "staged"


def test_what_another_spark_computed_is_not_measured_here(make_world: Make) -> None:
    """A verdict is about what the sealed engine computed and measured."""
    world = make_world(days=2)
    run = world.to("staged")
    world.engines.other_jars = _list_other_jars()
    with pytest.raises(SetupError, match="was sealed for Spark"):
        world.client.validate(run, as_="ana")
    assert world.client.status(run).state == "staged"


def test_what_another_spark_computed_can_be_published_and_taken_back_here(make_world: Make) -> None:
    """Both commit metadata alone, and an undo must not depend on an old environment."""
    world = make_world(days=2)
    run = world.to("validated")
    world.engines.other_jars = _list_other_jars()
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()
