"""A catalog that did what it was asked and whose answer was lost: the outcome is looked up, never guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ErrataError
from support.catalog_proxy import FAULTS, FaultyProxy
from support.ids import numbered
from support.lakes import Lake
from support.world import World

Make = Callable[..., World]


@pytest.fixture
def make_lake(behind_proxy: Callable[..., Lake]) -> Callable[..., Lake]:
    """A REST catalog behind a proxy that can lose answers."""
    return behind_proxy


@pytest.mark.parametrize("act", ["publish", pytest.param("rollback", marks=pytest.mark.slow)])
def test_a_commit_whose_answer_was_lost_is_found_and_not_made_again(
    make_world: Make, proxies: list[FaultyProxy], act: str
):
    """The server committed and the connection broke: one snapshot, and the command says so."""
    world = make_world(days=2)
    run = world.to("validated" if act == "publish" else "published")
    before = len(world.table().snapshots())
    (proxy,) = proxies
    with proxy.faulty(FAULTS["cut after"], act) as hits:
        if act == "publish":
            view = world.client.publish(run, as_="bo")
        else:
            view = world.client.rollback(run, reason="undo", as_="bo")
    assert [hit.statuses for hit in hits] == [[200]]
    assert view.state == ("published" if act == "publish" else "rolled_back")
    assert world.rows() == (world.expected() if act == "publish" else world.wrong())
    main = [
        s for s in world.table().snapshots() if s.summary and "errata.publication" in s.summary.additional_properties
    ]
    assert len(main) == (1 if act == "publish" else 2)
    assert len(world.table().snapshots()) > before


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 100], ids=["the first try", "every try"])
def test_a_commit_that_is_delivered_after_its_time_out_changes_nothing(
    make_world: Make, proxies: list[FaultyProxy], times: int
):
    """A gateway answered 504 and passed the commit on later: by then another try has landed, or the fence is there."""
    world = make_world(days=2)
    run = world.to("validated")
    (proxy,) = proxies
    with proxy.faulty(FAULTS["late, at the end"], "publish", times=times):
        if times == 1:
            assert world.client.publish(run, as_="bo").state == "published"
        else:
            with pytest.raises(ErrataError, match="did not land"):
                world.client.publish(run, as_="bo")
    rows, head = world.rows(), world.snapshot()
    assert rows == (world.expected() if times == 1 else world.wrong())
    late = proxy.deliver()
    assert late
    assert set(late) == {409}
    assert (world.rows(), world.snapshot()) == (rows, head)
    if times > 1:
        assert world.client.status(run).state == "validated"
        assert numbered(world.client.publish(run, as_="bo").publication_id) == f"{run}-p2"
        assert world.rows() == world.expected()
