"""``kill -9`` around rows that are written anew: main is old or new, and nothing is lost or there twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crash.test_kill import _killed, _publications
from spark.test_rewrite import MERGE_ON_READ
from support.world import TABLE, World

Make = Callable[..., World]
pytestmark = [pytest.mark.spark]


@pytest.mark.parametrize(
    "point",
    [
        "publish.after_carry",
        pytest.param("publish.after_undo", marks=pytest.mark.slow),
        pytest.param("publish.before_commit", marks=pytest.mark.slow),
        pytest.param("publish.after_commit", marks=pytest.mark.slow),
    ],
)
def test_killed_while_carrying_over_the_publication_lands_once(make_world: Make, point: str) -> None:
    """The same command again; rows of other days are there once, whatever the first one had written."""
    world = make_world(days=3, spec="")
    first, hit, last = world.days
    run = world.to("validated", hit)
    _killed(world, point, "publish", run, "--yes", person="bo")
    new = sorted([*world.wrong([first, last]), *world.expected([hit])])
    assert world.rows() == (new if point == "publish.after_commit" else world.wrong())
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.rows() == new
    assert _publications(world) == 1


@pytest.mark.slow
@pytest.mark.parametrize("spec", [pytest.param("", id="unpartitioned"), pytest.param("day", id="deletes")])
def test_killed_while_bringing_rows_back_the_rollback_lands_once(make_world: Make, spec: str) -> None:
    """Rows that shared files, and rows whose files carry deletes, come back once."""
    world = make_world(days=2, spec=spec, properties=MERGE_ON_READ)
    world.sql(f"DELETE FROM {TABLE} WHERE day = date'{world.days[0]}' AND account = 'a0'")
    old = world.rows()
    run = world.to("published", world.days[0])
    new = world.rows()
    _killed(world, "rollback.after_carry", "rollback", run, "--reason", "undo", "--yes", person="bo")
    assert world.rows() == new
    assert world.client.rollback(run, reason="undo", as_="bo").state == "rolled_back"
    assert world.rows() == old
