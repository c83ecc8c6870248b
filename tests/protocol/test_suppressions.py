"""Where the list of suppressed subjects is asked: at the gate, right before a commit, and before files come back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import StateRefused
from errata.model.refs import undo_branch
from errata.testing import arm
from support.memory_world import MemoryWorld as World

Make = Callable[..., World]


def test_a_list_that_grew_after_the_verdict_stops_the_publication(make_world: Make) -> None:
    """Also when it grows between the intent and the commit; judged again, it is published under the new watermark."""
    world = make_world(days=2)
    fake = world.engines.suppressions
    run = world.to("validated")
    head = world.snapshot()
    fake.suppress("ann")
    with pytest.raises(StateRefused, match="assemble and validate again"):
        world.client.publish(run, as_="bo")
    world.client.validate(run, as_="ana")
    with (
        arm("publish.after_intent", lambda: fake.suppress("ben")),
        pytest.raises(StateRefused, match="assemble and validate again"),
    ):
        world.client.publish(run, as_="bo")
    assert world.snapshot() == head
    assert world.ledger.publications.list_open() == ()
    world.client.validate(run, as_="ana")
    view = world.client.publish(run, as_="bo")
    assert world.ledger.publications.get(view.publication_id).release["watermark"] == "2"
    assert world.rows() == world.expected()


def test_a_candidate_with_rows_of_someone_on_the_list_is_refused(make_world: Make) -> None:
    """Judging again does not help; a published part and its rest are asked alike."""
    world = make_world(days=2)
    fake = world.engines.suppressions
    run = world.to("validated")
    world.client.publish(run, partitions=world.days[0], as_="bo")
    fake.suppress("ann", world.days[1])
    with pytest.raises(StateRefused, match=f"suppressed subjects in {world.days[1]}"):
        world.client.validate(run, as_="ana")
    with pytest.raises(StateRefused, match="validate again"):
        world.client.publish(run, as_="bo")
    fake.where["ann"] = ()
    world.client.validate(run, as_="ana")
    assert world.client.publish(run, as_="bo").state == "published"


def test_a_rollback_does_not_bring_back_someone_on_the_list(make_world: Make) -> None:
    """The partition is refused and the others go back; what is asked about are the files that would return."""
    world = make_world(days=2)
    fake = world.engines.suppressions
    run = world.to("published")
    fake.suppress("ann", world.days[0])
    head = world.snapshot()
    with pytest.raises(StateRefused, match=f"bring back rows of suppressed subjects in {world.days[0]}"):
        world.client.rollback(run, reason="undo", as_="bo")
    assert world.snapshot() == head
    undo = world.table.metadata.refs[undo_branch(world.publication(run))].snapshot_id
    assert fake.asked[-1].keys() == {undo}
    back = world.client.rollback(run, partitions=world.days[1], reason="undo", as_="bo")
    assert back.partitions == (world.days[1],)
    assert len(fake.asked) == 2, "a list that has not moved is held against the same files once"
    assert world.ledger.publications.get(back.publication_id).release["watermark"] == "1"
