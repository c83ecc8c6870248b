"""A ledger that was put back from an older copy: the table has what was done since, and nothing false is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.errors import PublishConflict
from errata.failpoints import arm
from spark import test_modes as modes
from support.ids import numbered
from support.world import World
from support.worlds import WorldAt

At = Callable[[str], tuple[World, str]]
Make = Callable[..., World]
slow = pytest.mark.slow


class _Died(BaseException):
    """The process ends here, as far as the command can tell."""


def _die() -> None:
    raise _Died


def approve(world: World, run: str) -> None:
    world.client.approve(run, digest=world.client.show(run).manifest_digest, as_="bo")


def publish(world: World, run: str) -> Any:
    return world.client.publish(run, as_="bo")


def rollback(world: World, run: str) -> Any:
    return world.client.rollback(run, reason="wrong", as_="bo")


STEPS: dict[str, Callable[[World, str], Any]] = {
    "planned": approve,
    "approved": lambda world, run: world.client.run(run, as_="ana"),
    "running": lambda world, run: world.client.run(run, as_="ana"),
    "staged": lambda world, run: world.client.validate(run, as_="ana"),
    "validated": publish,
    "publishing": publish,
    "part_published": publish,
    "published": rollback,
}


def go_on(world: World, run: str, end: str) -> None:
    """The ordinary commands, one after the other, until the run is in this state."""
    for _ in range(8):
        state = world.client.status(run).state
        if state == end:
            return
        STEPS[state](world, run)
    raise AssertionError(f"{run} does not get from {state} to {end}")


def stop_at(point: str) -> Callable[[World, str], None]:
    def act(world: World, run: str) -> None:
        with arm(point, _die), pytest.raises(_Died):
            STEPS[world.client.status(run).state](world, run)

    return act


def one_chunk(world: World, run: str) -> None:
    world.client.run(run, max_chunks=1, as_="ana")
    assert world.client.status(run).state == "running"


def first_day(world: World, run: str) -> None:
    world.client.publish(run, partitions=world.days[0], as_="bo")


COPIES: dict[str, tuple[str, Callable[[World, str], None]]] = {
    "planned": ("planned", lambda *_: None),
    "approved": ("approved", lambda *_: None),
    "running": ("approved", one_chunk),
    "staged": ("staged", lambda *_: None),
    "validated": ("validated", lambda *_: None),
    "publishing, not landed": ("validated", stop_at("publish.before_commit")),
    "publishing, landed": ("validated", stop_at("publish.after_commit")),
    "part published": ("validated", first_day),
    "published": ("published", lambda *_: None),
    "rolling back, not landed": ("published", stop_at("rollback.before_commit")),
    "rolling back, landed": ("published", stop_at("rollback.after_commit")),
}


def forget(at: At, copied: str, end: str) -> tuple[World, str]:
    """A run in one state, taken on to a later one by a ledger that is lost; the copy of the first is put back."""
    state, further = COPIES[copied]
    world, run = at(state)
    further(world, run)
    copy = world.copy_ledger()
    go_on(world, run, end)
    world.put_back(copy)
    return world, run


@pytest.mark.slow
@pytest.mark.parametrize(
    "copied, end",
    [
        ("planned", "staged"),
        ("planned", "rolled_back"),
        ("approved", "staged"),
        ("approved", "validated"),
        ("approved", "rolled_back"),
        ("running", "staged"),
        ("running", "validated"),
        ("staged", "validated"),
        ("staged", "rolled_back"),
        ("validated", "rolled_back"),
        ("publishing, not landed", "rolled_back"),
    ],
)
def test_what_main_no_longer_holds_is_published_under_a_new_id(at: At, copied: str, end: str) -> None:
    """The run goes on as if nothing had been lost: main gets the rows that are judged now, and can be rolled back."""
    world, run = forget(at, copied, end)
    assert world.rows() == world.wrong()
    go_on(world, run, "published")
    assert world.rows() == world.expected()
    assert world.publication(run, len(world.ledger.publications.list(run))) not in world.lost
    assert publish(world, run).already
    rollback(world, run)
    assert world.rows() == world.wrong()


@pytest.mark.parametrize(
    "copied",
    [
        pytest.param("staged", marks=slow),
        "validated",
        pytest.param("publishing, not landed", marks=slow),
        pytest.param("publishing, landed", marks=slow),
        pytest.param("part published", marks=slow),
    ],
)
def test_a_publication_that_main_still_holds_is_put_on_the_record(at: At, copied: str) -> None:
    """Main holds the very files of the candidate: nothing is committed, the lost id is known again, rollback works."""
    world, run = forget(at, copied, "published")
    head = world.snapshot()
    go_on(world, run, "published")
    assert (world.snapshot(), world.rows()) == (head, world.expected())
    last = world.ledger.publications.list(run)[-1]
    assert (last.pub_id in world.lost, last.result_snapshot_id) == (True, str(head))
    assert world.client.audit_verify().ok
    rollback(world, run)
    assert world.rows() == world.wrong()


@pytest.mark.parametrize(
    "copied",
    [
        pytest.param("publishing, landed", marks=slow),
        "published",
        pytest.param("rolling back, not landed", marks=slow),
        pytest.param("rolling back, landed", marks=slow),
    ],
)
def test_a_rollback_that_main_still_shows_is_put_on_the_record(at: At, copied: str) -> None:
    """The ledger believes that the run is published; rolling it back finds that this was done, and commits nothing."""
    world, run = forget(at, copied, "rolled_back")
    head = world.snapshot()
    world.client.cleanup(run, as_="ana")  # settles what was left open
    if world.client.status(run).state == "published":
        assert rollback(world, run).publication_id in world.lost
    assert (world.client.status(run).state, world.snapshot(), world.rows()) == ("rolled_back", head, world.wrong())
    assert rollback(world, run).already


@slow
@pytest.mark.parametrize("copied", ["planned", "approved", "running"])
def test_output_that_was_computed_again_is_not_what_main_holds(at: At, copied: str) -> None:
    """Other files of the same run are live: a conflict that names the lost publication, and the way on works."""
    world, run = forget(at, copied, "published")
    with pytest.raises(PublishConflict) as refused:
        go_on(world, run, "published")
    (lost,) = refused.value.fields["publications"]
    assert lost in world.lost
    assert f"{lost} is not in this ledger" in refused.value.message
    assert f"--supersede {run}" in (refused.value.hint or "")
    assert world.rows() == world.expected()
    again = world.to("published", supersede=run, reason="again")
    assert world.rows() == world.expected()
    rollback(world, again)
    assert world.rows() == world.expected()


@slow
def test_partitions_that_a_lost_publication_left_alone_are_published(at: At) -> None:
    """One day was published and forgotten; the other one goes out under a new id, and then the first is recorded."""
    world, run = at("validated")
    copy = world.copy_ledger()
    world.client.publish(run, partitions=world.days[0], as_="bo")
    world.put_back(copy)
    with pytest.raises(PublishConflict, match=f"1 of 2 partitions .*\n  {world.days[0]}"):
        publish(world, run)
    fresh = world.client.publish(run, partitions=world.days[1], as_="bo").publication_id
    assert (numbered(fresh), fresh in world.lost) == (f"{run}-p1", False)
    assert publish(world, run).publication_id in world.lost
    assert (world.client.status(run).state, world.rows()) == ("published", world.expected())
    rollback(world, run)
    assert world.rows() == world.wrong()


@slow
def test_a_rollback_of_more_than_the_ledger_knows_is_a_conflict_with_a_way_on(at: At) -> None:
    """The copy knows one day as published; both were, and both were taken back: said, and a new run corrects them."""
    world, run = forget(at, "part published", "rolled_back")
    with pytest.raises(PublishConflict, match="is not in this ledger"):
        rollback(world, run)
    assert world.rows() == world.wrong()
    world.to("published", supersede=run, reason="again")
    assert world.rows() == world.expected()


@slow
def test_what_a_later_run_published_is_not_rolled_back_with_an_older_one(at: At) -> None:
    """The ledger lacks the later run altogether; its rows stay, and the conflict names its publication."""
    world, run = at("published")
    copy = world.copy_ledger()
    later = world.to("published", reason="later")
    world.put_back(copy)
    with pytest.raises(PublishConflict, match=rf"{later}-p1-\w{{6}} is not in this ledger"):
        rollback(world, run)
    assert world.rows() == world.expected()
    again = world.to("published", reason="once more")
    rollback(world, again)
    assert world.rows() == world.expected()


@slow
def test_a_dark_name_of_a_lost_ledger_reads_the_new_candidate(at: At) -> None:
    """Nobody but the run may have that name, so it is moved and not refused."""
    world, run = at("staged")
    copy = world.copy_ledger()
    go_on(world, run, "validated")
    world.client.dark(run, as_="bo")
    world.put_back(copy)
    go_on(world, run, "validated")
    name = world.client.dark(run, as_="bo").name
    assert world.rows(world.table().metadata.refs[name].snapshot_id) == world.expected()


@slow
def test_corrections_are_told_once_whatever_the_ledger_has_forgotten(world_at: WorldAt) -> None:
    """Told and forgotten: put on the record. Told, taken back and forgotten: told anew."""
    world, run = world_at("validated", days=1, product=modes.ALONE)
    copy = world.copy_ledger()
    publish(world, run)
    world.put_back(copy)
    lost = publish(world, run).publication_id
    assert lost in world.lost
    assert len(_told(world)) == len(world.expected())
    rollback(world, run)
    world.put_back(copy)
    fresh = publish(world, run).publication_id
    assert fresh not in world.lost
    assert modes.told(world, fresh) == modes.corrected(world, world.days)
    assert len(_told(world)) == 3 * len(world.expected())


def _told(world: World) -> list[Any]:
    return world.sql(f"SELECT * FROM {modes.CORRECTIONS}")


@slow
def test_a_version_number_is_given_once_whatever_the_ledger_has_forgotten(world_at: WorldAt) -> None:
    """The table remembers numbers that the ledger lost; the view shows each row once."""
    world, run = world_at("validated", days=1, product=modes.VERSION)
    copy = world.copy_ledger()
    publish(world, run)
    world.put_back(copy)
    publish(world, run)
    shown = world.sql(f"SELECT account, gross, n FROM {modes.VIEW}")
    assert len(shown) == len(world.expected())
    numbers = world.sql(f"SELECT DISTINCT errata_version FROM {modes.VERSIONS} ORDER BY 1")
    assert [row[0] for row in numbers] == [1, 2]
