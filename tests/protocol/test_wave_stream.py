"""`run --publish`: waves are judged and published beside each other and beside the computation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from errata.errors import ErasureListMoved, Rebased, StateRefused
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.run import PublicationState
from support.memory_world import MemoryWorld as World
from support.memory_world import build
from support.waves import ALONE, in_waves, seen

Make = Callable[..., World]
ONE_DAY = "1"
ANA = Actor("ana", "u", "h")


def until(condition: Callable[[], bool]) -> None:
    """Wait for it, at most a minute."""
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def states(world: World, run: str) -> list[str]:
    return [wave.state for wave in world.client.status(run).waves]


def test_a_released_wave_does_not_wait_for_the_verdict_on_another(make_world: Make) -> None:
    """The gate of the second wave takes its time; the first one goes as soon as a person has released it."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1"))
    run = world.to("approved")
    measured, go_on = threading.Semaphore(0), threading.Event()
    passes: list[int] = []

    def slow() -> None:
        passes.append(1)
        if len(passes) == 2:
            measured.release()
            assert go_on.wait(60)

    other = world.another_client()
    worker = threading.Thread(target=lambda: other.run(run, parallel=1, publish=True, as_="cy"))
    with arm("validate.after_measure", slow):
        worker.start()
        assert measured.acquire(timeout=60)
        assert states(world, run) == ["validated", "staged"]
        world.client.release(run, digest=world.client.status(run).release_digest, as_="bo")
        until(lambda: seen(world, world.days[1:]))
        go_on.set()
        worker.join(60)
    assert states(world, run) == ["published", "validated"]


def test_a_wave_is_judged_while_another_is_published(make_world: Make) -> None:
    """Also when all is computed; the run is publishing meanwhile, and part published afterwards."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", ALONE))
    run = world.to("staged")
    reached, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert go_on.wait(60)

    worker = threading.Thread(target=lambda: world.client.run(run, publish=True, as_="cy"))
    with arm("publish.before_commit", wait):
        worker.start()
        assert reached.wait(60)
        other = world.another_client()
        until(lambda: [wave.state for wave in other.status(run).waves] == ["publishing", "validated"])
        assert other.status(run).state == "publishing"
        go_on.set()
        worker.join(60)
    assert world.client.status(run).state == "published"
    assert seen(world, world.days)


def test_a_run_that_is_one_wave_is_not_judged_while_it_is_published(make_world: Make) -> None:
    """Its candidate is about to be main: neither another candidate nor another verdict comes in between."""
    world = make_world(days=1)
    run = world.to("validated")
    refused: list[StateRefused] = []

    def judge() -> None:
        (candidate,) = world.ledger.candidates.list(run)
        for act in (
            lambda: world.ledger.candidates.intend(run, "d" * 64, ANA, {"rows": dict.fromkeys(world.days, 1)}),
            lambda: world.ledger.candidates.record_verdict(
                run, candidate.n, passed=False, checks=[], thresholds_digest="t", actor=ANA
            ),
        ):
            with pytest.raises(StateRefused, match="found publishing") as error:
                act()
            refused.append(error.value)

    with arm("publish.before_commit", judge):
        world.client.publish(run, as_="bo")
    assert (len(refused), world.client.status(run).state) == (2, "published")


def test_a_wave_is_computed_again_while_another_is_published(make_world: Make) -> None:
    """Live won in the second wave: the run is running again at once, and stays so when the first wave is out."""
    live_wins = in_waves(
        "size: 1, release: none", ALONE.replace("manual: false", "manual: false, on_live_write: live_wins")
    )
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=live_wins)
    run = world.to("staged")
    world.client.validate(run, wave=1, as_="ana")
    found: list[str] = []

    def write() -> None:
        if found:
            return
        world.live(world.days[0])
        with pytest.raises(Rebased):
            world.another_client().validate(run, wave=2, as_="ana")
        found.append(world.ledger.runs.get(run).state.value)

    with arm("publish.before_commit", write):
        assert world.client.publish(run, as_="cy").state == "running"
    assert found == ["running"]
    assert states(world, run) == ["published", "computing"]
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert seen(world, world.days)


@pytest.mark.parametrize("settings", ["size: 1", "size: 1, pause: 1h, release: none"])
def test_a_wave_that_waits_fills_neither_the_screen_nor_the_audit(make_world: Make, settings: str) -> None:
    """It is looked at all the time while the rest is computed; nothing is tried that would be refused."""
    ready = threading.Event()

    def transform(ctx: Any, raw: Any) -> list[dict[str, Any]]:
        if ctx.partitions[0] == "2026-01-01":
            assert ready.wait(60)
        return build(ctx, raw)

    product = in_waves(settings, ALONE) if "none" in settings else in_waves(settings)
    world = make_world(days=3, chunk_bytes=ONE_DAY, product=product, transform=transform)
    run = world.to("approved")
    other = world.another_client()
    worker = threading.Thread(target=lambda: other.run(run, parallel=1, max_chunks=3, publish=True, as_="cy"))
    worker.start()
    until(lambda: states(world, run)[1] == "validated")
    time.sleep(2.5)
    world.client.pause(run, as_="ana")  # ends the wait for the hour
    ready.set()
    worker.join(60)
    told = [line for line in world.said if " waits: " in line]
    assert len(told) == len(set(told)) <= 2  # for a person or the hour; then for the person who paused it
    entries = [entry for entry in world.ledger.audit.entries(run) if entry.action == "refused"]
    assert [entry.body["attempted"] for entry in entries if entry.body["attempted"] != "publish"] == []
    assert len(entries) <= 1  # the pause by a person, while the command waited for the hour


ERASURE = 'erasure: {table: lake.privacy.erased, key: "${NOT_NEEDED}"}\n'
OF_PEOPLE = ALONE.replace("    partition: day\n", "    partition: day\n    subjects: [account]\n").replace(
    "key: [day, account]\n", "key: [day, account]\n  subjects: [account]\n"
)


def erase_before_commits(world: World, subjects: Iterable[str]) -> Callable[[], None]:
    """What happens between a verdict and the commit of each publication: the next of these subjects is erased."""
    left = iter(subjects)

    def erase() -> None:
        if (subject := next(left, None)) is not None:
            world.client.erase([subject], reason="a request", as_="bo")

    return erase


def refusals(world: World, run: str) -> list[str]:
    """What was refused, each of them because the list had grown."""
    entries = [entry for entry in world.client.audit_log(run) if entry.action == "refused"]
    assert all("the list of suppressed subjects has moved" in entry.body["reason"] for entry in entries)
    return [entry.body["attempted"] for entry in entries]


@pytest.mark.parametrize("state", ["approved", "staged"])
@pytest.mark.parametrize("growths", [1, 2])
def test_a_wave_is_judged_again_if_the_list_of_erased_subjects_grows(
    make_world: Make, state: str, growths: int
) -> None:
    """Who was erased is in no input: the same candidate passes for the new list, and every wave goes out."""
    world = make_world(
        days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", OF_PEOPLE), project=ERASURE
    )
    run = world.to(state)
    with arm("publish.after_intent", erase_before_commits(world, [f"nobody {n}" for n in range(growths)])):
        assert world.client.run(run, publish=True, as_="cy").state == "published"
    # the second wave is refused once more if it was judged before the list grew
    assert refusals(world, run) in (["publish"] * growths, ["publish"] * (growths + 1))
    assert any("this is done now" in line for line in world.said)
    assert seen(world, world.days)
    made = [one for one in world.ledger.publications.list(run) if one.state is PublicationState.COMMITTED]
    marks = [one.release["watermark"] for one in made]
    assert marks == [str(growths), str(growths)]
    assert world.ledger.progress.counts(run).total == 2  # nothing was computed again


def test_a_wave_that_used_someone_erased_since_is_computed_again_and_goes_out(make_world: Make) -> None:
    """In the same command and under the same approval; nobody sees a row of the subject in any wave."""
    world = make_world(
        days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", OF_PEOPLE), project=ERASURE
    )
    run = world.to("approved")
    with arm("publish.after_intent", erase_before_commits(world, ["a1"])):
        assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert {row[1] for row in world.rows()} == {"a0", "a2"}
    assert world.rows() == [row for row in world.expected() if row[1] != "a1"]
    assert refusals(world, run) in (["publish"], ["publish"] * 2)
    assert any("is computed again without them" in line for line in world.said)


def test_a_wave_whose_list_grows_after_each_of_three_verdicts_is_left_to_a_person(make_world: Make) -> None:
    """The error is that of the publication, with the next command; readers see nothing, and that command goes on."""
    world = make_world(
        days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1, release: none", OF_PEOPLE), project=ERASURE
    )
    run = world.to("approved")
    erase = erase_before_commits(world, (f"nobody {n}" for n in range(9)))
    with arm("publish.after_intent", erase), pytest.raises(ErasureListMoved) as given_up:
        world.client.run(run, publish=True, as_="cy")
    assert refusals(world, run) == ["publish"] * 3
    assert given_up.value.hint == f"errata validate {run} --wave 1"
    assert "main is unchanged" in str(given_up.value.state)
    assert states(world, run)[0] == "validated"
    assert seen(world, ())
    assert any("no further wave goes out" in line for line in world.said)
    world.client.validate(run, wave=1, as_="cy")
    assert world.client.run(run, publish=True, as_="cy").state == "published"
    assert seen(world, world.days)


def test_the_command_to_judge_again_names_the_wave(make_world: Make) -> None:
    """Without its number the wave that has no verdict yet would be judged, and the publication refused again."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, product=in_waves("size: 1", OF_PEOPLE), project=ERASURE)
    run = world.to("staged")
    world.client.validate(run, wave=1, as_="ana")
    world.client.erase(["nobody"], reason="a request", as_="bo")
    with pytest.raises(ErasureListMoved) as refused:
        world.client.publish(run, as_="bo")
    assert refused.value.hint == f"errata validate {run} --wave 1"
    world.client.validate(run, wave=1, as_="ana")
    world.client.publish(run, as_="bo")
    assert states(world, run) == ["published", "staged"]
