"""Live wins: a write into the scope is found at publish and at rollback, whenever it came; a rewrite is no write."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from errata.errors import PlanRefused, PublishConflict, RunExpired, ScopeLocked
from errata.failpoints import arm
from support.memory_world import MemoryWorld as World
from support.terminal import answer
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., World]


@pytest.mark.parametrize("moment", ["planned", "staged", "validated", "committing"])
def test_a_live_write_into_the_scope_is_a_conflict_whenever_it_comes(make_world: Make, moment: str) -> None:
    """Exit 5 names the partition, main stays as live left it, the rest can go out, and a new plan goes through."""
    world = make_world(days=3)
    hit = world.days[1]
    run = world.plan().id
    if moment == "planned":
        world.live(hit)
    world.client.approve(run, digest=world.client.show(run).digest, as_="bo")
    world.client.run(run, as_="ana")
    if moment == "staged":
        world.live(hit)
    world.client.validate(run, as_="ana")
    if moment == "validated":
        world.live(hit)
    before = world.rows()
    late = once(lambda: world.live(hit)) if moment == "committing" else (lambda: None)
    with arm("publish.before_commit", late), pytest.raises(PublishConflict) as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.exit_code == 5
    assert conflict.value.fields["partitions"] == [hit]
    assert hit in conflict.value.message
    after = world.rows()
    assert [row for row in after if row[1] != "live"] == [row for row in before if row[1] != "live"]
    assert len([row for row in after if row[1] == "live"]) == 1
    others = [day for day in world.days if day != hit]
    assert world.client.publish(run, partitions=others, as_="bo").state == "part_published"
    world.to("published", hit, supersede=run, reason="again, with the live row's day")
    assert world.rows() == world.expected()


def test_the_command_that_a_conflict_suggests_works_again_and_again(make_world: Make) -> None:
    """Live writes three times; each time exactly what the hint says is planned, in the place of the run before."""
    world = make_world(days=2)
    hit, run = world.days[1], world.to("validated")
    for account in ("live1", "live2", "live3"):
        world.live(hit, account=account)
        with pytest.raises(PublishConflict) as conflict:
            world.client.publish(run, as_="bo")
        hint = conflict.value.hint or ""
        told = answer(world, hint[hint.index("errata plan") :].splitlines()[0], "ana")
        assert told["supersedes"] == run
        assert told["partitions"] == [hit]
        run = told["run_id"]
        world.client.approve(run, digest=told["manifest_digest"], as_="bo")
        world.client.run(run, as_="ana")
        world.client.validate(run, as_="ana")
    assert world.client.publish(run, as_="bo").state == "published"
    with pytest.raises(PlanRefused, match=f"holds {world.days[0]}"):
        world.plan(supersede=run)


def test_the_rest_of_a_run_can_go_out_after_its_candidate_has_expired(make_world: Make) -> None:
    """Published in part, then left for too long: the same files are assembled and judged again."""
    world = make_world(days=2)
    run = world.to("validated")
    world.client.publish(run, partitions=world.days[0], as_="bo")
    branch = next(ref for ref in world.refs() if "_c1_" in ref)
    world.engines.staging.drop_refs(TABLE, [branch])
    world.expire()
    with pytest.raises(RunExpired, match="is gone"):
        world.client.publish(run, as_="bo")
    view = world.client.validate(run, as_="ana")
    assert (view.passed, view.state) == (True, "part_published")
    assert world.client.publish(run, as_="bo").state == "published"
    assert world.rows() == world.expected()


def test_a_live_write_between_check_and_commit_elsewhere_costs_a_try_and_is_kept(make_world: Make) -> None:
    """One try is one compare-and-swap on what was checked; the next try keeps the row that came in between."""
    world = make_world(days=2)
    run = world.to("validated")
    with arm("publish.before_commit", once(lambda: world.live("2026-03-01"))):
        assert world.client.publish(run, as_="bo").state == "published"
    assert [row for row in world.rows() if row[1] == "live"]
    assert [row for row in world.rows() if row[1] != "live"] == world.expected()


@pytest.mark.parametrize("moment", ["before", "committing"])
def test_a_rollback_that_would_lose_a_later_write_is_refused(make_world: Make, moment: str) -> None:
    """Exit 5, main as it was; the other partitions can be taken back."""
    world = make_world(days=3)
    run = world.to("published")
    hit = world.days[0]
    if moment == "before":
        world.live(hit)
    late = once(lambda: world.live(hit)) if moment == "committing" else (lambda: None)
    with arm("rollback.before_commit", late), pytest.raises(PublishConflict) as conflict:
        world.client.rollback(run, reason="no", as_="bo")
    assert conflict.value.fields["partitions"] == [hit]
    assert [row for row in world.rows() if row[1] != "live"] == world.expected()
    view = world.client.rollback(run, partitions=list(world.days[1:]), reason="the rest", as_="bo")
    assert view.partitions == world.days[1:]
    assert [row for row in world.rows() if row[0] in world.days[1:]] == world.wrong(world.days[1:])


@pytest.mark.parametrize("expired", [False, True], ids=["kept", "expired"])
def test_compaction_is_no_conflict_for_publish_nor_for_rollback(make_world: Make, expired: bool) -> None:
    """Files rewritten without a change of rows are replaced as they are now, also when history was cut."""
    world = make_world(days=2, properties={"write.distribution-mode": "none"})
    world.write_history(())
    for name in ("x", "y"):
        world.live(world.days[0], name)
    run = world.to("validated")
    _rewrite(world, only_split=True, expired=expired)
    view = world.client.publish(run, as_="bo")
    assert world.rows() == world.expected()
    assert world.days[0] in view.compacted
    _rewrite(world, expired=expired)
    back = world.client.rollback(run, reason="undo", as_="bo")
    assert back.data_files_written == 0
    assert len(world.rows()) == len(world.expected()) + 2


def test_a_deleted_partition_and_a_main_rolled_back_by_its_owner_are_conflicts(make_world: Make) -> None:
    """Neither is a rewrite that keeps the rows."""
    world = make_world(days=2)
    start = world.snapshot()
    world.live(world.days[1], "kept", "3.00")
    run = world.to("validated")
    world.remove_day(world.days[0])
    with pytest.raises(PublishConflict) as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.fields["partitions"] == [world.days[0]]
    world.set_main(start)
    with pytest.raises(PublishConflict) as conflict:
        world.client.publish(run, as_="bo")
    assert conflict.value.fields["partitions"] == [world.days[1]]


def _rewrite(world: World, *, expired: bool, only_split: bool = False) -> None:
    world.compact(only_split=only_split)
    if expired:
        world.expire()


@pytest.mark.parametrize("policy", ["conflict", "live_wins"])
def test_another_process_that_publishes_the_same_run_is_no_conflict(make_world: Make, policy: str) -> None:
    """It was faster: the answer is that the run is published already, and nobody is told of a foreign writer."""
    world = make_world(
        days=2, product=PRODUCT_FILE.replace("rollback_window: 30d", f"rollback_window: 30d, on_live_write: {policy}")
    )
    run, other = world.to("validated"), world.another_client()
    with arm("publish.after_release", once(lambda: other.publish(run, as_="bo"))):
        view = world.client.publish(run, as_="bo")
    other.close()
    assert (view.state, view.already, world.count_publications()) == ("published", True, 1)
    assert not [entry for entry in world.ledger.audit.entries(run) if entry.action == "refused"]
    assert world.rows() == world.expected()


def test_a_commit_of_the_same_run_that_is_not_recorded_yet_is_no_conflict(make_world: Make) -> None:
    """The process that made it still works; the other one is told so, and is done when it asks again."""
    world = make_world(days=2)
    run, other = world.to("validated"), world.another_client()
    committed, answered = threading.Event(), threading.Event()
    faster = threading.Thread(target=lambda: other.publish(run, as_="bo"))

    def overtake() -> None:
        faster.start()
        assert committed.wait(30)

    def hold() -> None:
        committed.set()
        assert answered.wait(30)

    with arm("publish.after_release", once(overtake)), arm("publish.after_commit", hold):
        with pytest.raises(ScopeLocked, match="another process is publishing it"):
            world.client.publish(run, as_="bo")
        answered.set()
        faster.join(30)
    other.close()
    assert world.client.publish(run, as_="bo").already
    assert world.count_publications() == 1


def once(act: Callable[[], object]) -> Callable[[], None]:
    done: list[bool] = []

    def maybe() -> None:
        if not done:
            done.append(True)
            act()

    return maybe
