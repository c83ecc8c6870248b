"""Where the list of suppressed subjects is asked: at the gate, right before a commit, and before files come back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import StateRefused
from errata.model.refs import undo_branch
from errata.testing import arm
from support.memory_world import MemoryWorld as World
from support.world import PRODUCT_FILE

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


def test_a_rollback_brings_back_the_others_without_someone_on_the_list(make_world: Make) -> None:
    """Their partition comes back as rows, counted roughly and said; the other one comes back as files, untouched."""
    product = PRODUCT_FILE.replace("key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n")
    world = make_world(days=2, product=product, project='erasure: {table: lake.privacy.erased, key: "${NONE}"}\n')
    fake = world.engines.suppressions
    before = world.files()[world.days[1]]
    run = world.to("published")
    fake.suppress("a0", world.days[0])
    back = world.client.rollback(run, reason="undo", as_="bo")
    undo = world.table.metadata.refs[undo_branch(world.publication(run))].snapshot_id
    assert fake.asked[-1].keys() == {undo}
    assert len(fake.asked) == 1
    assert back.partitions == world.days
    assert f"<5 rows of erased subjects were left out of {world.days[0]}" in back.warnings
    assert [row for row in world.wrong() if (str(row[0]), row[1]) != (world.days[0], "a0")] == world.rows()
    assert world.files()[world.days[1]] == before
    record = world.ledger.publications.get(back.publication_id).release
    assert (record["watermark"], record["without_erased"]) == ("1", [world.days[0]])


def test_a_rollback_is_refused_if_someone_is_erased_before_its_commit(make_world: Make) -> None:
    """The files that come back were looked at before; the same command looks again."""
    world = make_world(days=1)
    fake = world.engines.suppressions
    run = world.to("published")
    head = world.snapshot()
    with (
        arm("rollback.after_intent", lambda: fake.suppress("ann")),
        pytest.raises(StateRefused, match="has grown since the files"),
    ):
        world.client.rollback(run, reason="undo", as_="bo")
    assert world.snapshot() == head
    world.client.rollback(run, reason="undo", as_="bo")
    assert world.rows() == world.wrong()
