"""The promise to undo: what it pins, what it survives, and what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ErrataError, PublishConflict, RunExpired
from errata.failpoints import arm
from errata.model.refs import GUARD, pub_tag, run_branch, undo_branch
from support.ids import numbered
from support.memory_world import MemoryWorld as World
from support.world import TABLE

Make = Callable[..., World]


def test_a_hazard_closes_when_the_restored_files_were_rewritten(make_world: Make) -> None:
    """A rollback opens it; after a rewrite of those files the next command closes it."""
    world = make_world(days=1)
    run = world.to("published")
    world.client.rollback(run, reason="undo", as_="bo")
    ledger = world.ledger
    assert len(ledger.guards.open_hazards()) == 1
    world.client.status()
    assert len(ledger.guards.open_hazards()) == 1
    world.compact()
    world.client.status()
    assert ledger.guards.open_hazards() == ()


def test_compaction_between_stacked_runs_does_not_void_the_lower_rollback(make_world: Make) -> None:
    """A published, compacted, B published and taken back: A can still be taken back."""
    world = make_world(days=1)
    first = world.to("published")
    world.compact()
    second = world.to("published", reason="again")
    world.client.rollback(second, reason="undo", as_="bo")
    assert world.client.rollback(first, reason="undo", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def _without_guard(world: World) -> None:
    """A tool that drops refs it does not know, and an expiry after it."""
    world.drop_refs(*world.refs() - {"main"})
    world.expire()


def _hazards_closed(world: World) -> list[str]:
    return [e.body["why"] for e in world.ledger.audit.entries() if e.action == "hazard.closed"]


def test_a_hazard_during_which_the_guard_was_missing_is_closed_with_that(make_world: Make) -> None:
    """The record never says that the guard was there when it was not; what it says of the files was looked at."""
    world = make_world(days=2)
    run = world.to("published")
    world.client.rollback(run, reason="undo", as_="bo")
    _without_guard(world)
    world.client.status()
    assert any("was gone and has been put back" in line for line in world.said)
    checks = {check.name: check for check in world.client.doctor()}
    assert checks[f"files {world.publication(run, 2)}"].ok
    assert checks[f"files {world.publication(run, 2)}"].found == f"all 2 of {world.days[0]} … {world.days[1]} are there"
    assert _hazards_closed(world) == []
    world.client.status()
    (why,) = _hazards_closed(world)
    assert why.startswith("the publication's snapshot has expired; the guard was missing for a time, and 2 files")


def test_a_hazard_with_a_guard_throughout_is_closed_as_that(make_world: Make) -> None:
    """The publication's snapshot expires, the guard is where it was."""
    world = make_world(days=1)
    run = world.to("published")
    world.client.rollback(run, reason="undo", as_="bo")
    world.drop_refs(*world.refs() - {"main", GUARD})
    world.expire()
    world.client.status()
    assert _hazards_closed(world) == ["the publication's snapshot has expired while the guard was there"]


@pytest.mark.slow
def test_publications_of_one_run_have_ids_of_their_own(make_world: Make) -> None:
    """Two groups, a rollback of one, and a new run over it: each look-up finds its own publication."""
    world = make_world(days=4)
    run = world.to("validated")
    first = world.client.publish(run, partitions=list(world.days[:2]), as_="bo")
    second = world.client.publish(run, as_="bo")
    assert (first.state, second.state) == ("part_published", "published")
    assert second.partitions == world.days[2:]
    back = world.client.rollback(run, partitions=list(world.days[:2]), reason="first group", as_="bo")
    assert len({first.publication_id, second.publication_id, back.publication_id}) == 3
    assert [r for r in world.rows() if r[0] in world.days[:2]] == world.wrong(world.days[:2])
    again = world.to("published", f"{world.days[0]}..{world.days[1]}", reason="second try")
    assert world.rows() == world.expected()
    assert world.client.rollback(run, partitions=world.days[0], reason="first group", as_="bo").already
    assert world.client.rollback(again, reason="unwind", as_="bo").state == "rolled_back"
    assert world.client.rollback(run, reason="all", as_="bo").state == "rolled_back"
    assert world.rows() == world.wrong()


def test_a_fence_keeps_a_late_commit_out(make_world: Make) -> None:
    """Once the publication's own tag sits on the guard, its commit cannot land any more."""
    world = make_world(days=2)
    run = world.to("validated")
    publishing, target = (
        world.engines.publishing,
        world.ledger.runs.manifest(run).target,
    )
    head = world.snapshot()
    with (
        arm("publish.before_commit", lambda: publishing.fence(target, world.publication(run))),
        pytest.raises(PublishConflict),
    ):
        world.client.publish(run, as_="bo")
    assert world.snapshot() == head
    refs = world.engines.pins.refs(TABLE)
    assert refs[pub_tag(world.publication(run))] == refs[GUARD]
    assert numbered(world.client.publish(run, as_="bo").publication_id) == f"{run}-p2"


def test_two_publishers_of_one_scope_do_not_both_commit(make_world: Make) -> None:
    """The second is refused while the first holds the locks, and told so."""
    world = make_world(days=2)
    run = world.to("validated")
    refused: list[ErrataError] = []

    def second() -> None:
        if refused:
            return
        try:
            world.client.publish(run, as_="cy")
        except ErrataError as error:
            refused.append(error)

    with arm("publish.before_commit", second):
        world.client.publish(run, as_="bo")
    assert [error.exit_code for error in refused] == [3]
    assert world.rows() == world.expected()


def test_a_run_branch_dropped_too_early_expires_the_run_and_touches_nothing(make_world: Make) -> None:
    """Validate says what is gone; main is unchanged."""
    world = make_world(days=2)
    run = world.to("staged")
    world.drop_refs(run_branch(run))
    world.expire()
    with pytest.raises(RunExpired):
        world.client.validate(run, as_="ana")
    assert world.rows() == world.wrong()


def test_after_the_window_a_rollback_is_refused_and_a_restore_does_it(make_world: Make) -> None:
    """The undo set is gone: the refusal says how an older snapshot is put back, and that works."""
    world = make_world(days=2)
    before = world.snapshot()
    run = world.to("published")
    world.drop_refs(undo_branch(world.publication(run)))
    head = world.snapshot()
    with pytest.raises(RunExpired) as refused:
        world.client.rollback(run, reason="too late", as_="bo")
    assert "--restore" in (refused.value.hint or "")
    assert f"errata history {TABLE}" in (refused.value.hint or "")
    assert world.snapshot() == head
    again = world.to("published", restore=str(before), reason="too late for a rollback")
    assert world.rows() == world.wrong()
    accepted = world.ledger.partitions.accepted(TABLE)
    assert {record.run_id for record in accepted.values()} == {again}
    assert world.client.status(run).state == "superseded"


def test_a_rollback_takes_a_restore_back_and_not_what_it_superseded(make_world: Make) -> None:
    """Live, run, restore of live's rows, rollback of the restore: the run is the truth again, in table and history."""
    world = make_world(days=1)
    before = world.snapshot()
    run = world.to("published")
    restore = world.to("published", restore=str(before), reason="the old numbers were right")
    assert world.rows() == world.wrong()
    world.client.rollback(restore, reason="they were not", as_="bo")
    assert world.rows() == world.expected()
    told = [(event.action, event.run_id) for event in world.client.why(TABLE, world.days[0]).history]
    assert told == [("live", None), ("published", run), ("published", restore), ("rolled_back", restore)]
    told = [event.restored for event in world.client.why(TABLE, world.days[0]).history]
    assert told == [None, None, str(before), None]
    view = world.client.history(TABLE, world.days[0])
    assert [(one.writer, one.run_id) for one in view.commits] == [
        ("errata", restore), ("errata", restore), ("errata", run), ("job", None),
    ]  # fmt: skip
    assert [one.accepted for one in view.commits] == [True, False, False, False]
    assert view.complete
    moments = [row.at for row in world.ledger.partitions.history(TABLE, world.days[0])]
    truths = [world.client.runs(accepted_at=at).accepted[0].run_id for at in moments]
    assert truths == [run, restore, run]


@pytest.mark.slow
def test_a_rollback_that_would_lose_a_later_live_write_is_refused_for_that_day_only(make_world: Make) -> None:
    """The refusal names the day and who wrote it; the other days go back, again and again the same."""
    world = make_world(days=3)
    run = world.to("published")
    world.live(world.days[1], "late")
    with pytest.raises(PublishConflict, match=world.days[1]):
        world.client.rollback(run, reason="undo", as_="bo")
    for day in (world.days[0], world.days[2]):
        assert world.client.rollback(run, partitions=day, reason="undo", as_="bo").partitions == (day,)
        assert world.client.rollback(run, partitions=day, reason="undo", as_="bo").already
    assert world.client.status(run).state == "published"
    assert [r for r in world.rows() if r[0] != world.days[1]] == world.wrong((world.days[0], world.days[2]))


def test_what_was_rolled_back_is_not_published_again(make_world: Make) -> None:
    """Repeating publish after a rollback is refused; only a new run publishes those partitions."""
    world = make_world(days=2)
    run = world.to("published")
    world.client.rollback(run, reason="wrong", as_="bo")
    with pytest.raises(ErrataError) as refused:
        world.client.publish(run, as_="bo")
    assert refused.value.exit_code == 3
    again = world.to("published", reason="second try")
    assert again != run
    assert world.rows() == world.expected()
