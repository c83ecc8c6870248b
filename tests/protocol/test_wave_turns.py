"""Publication in waves: whose turn it is, what it waits for, what stops it, and who may say otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from errata.errors import ApprovalRefused, PermissionRefused, PublishConflict, PublishHeld, StateRefused, UsageError
from errata.views import PublishView
from support.clock import Clock, later, stopped_clock
from support.ids import numbered
from support.memory_world import MemoryWorld as World
from support.waves import in_waves

Make = Callable[..., World]
SERVICE = "  airflow: {roles: [operator, publisher], service: true}\nlimits:"
LAG = "health:\n  - {name: lag, command: [none], pause_above: 900, resume_below: 50, every: 1s}\n"


@dataclass
class Judged:
    """Five days, two in a wave, half an hour between two waves; every wave has passed its gate."""

    world: World
    run: str

    @property
    def days(self) -> tuple[str, ...]:
        return self.world.days

    @property
    def state(self) -> str:
        return self.world.ledger.runs.get(self.run).state.value

    def publish(self, person: str = "bo", **options: object) -> PublishView:
        return self.world.client.publish(self.run, as_=person, **options)  # type: ignore[arg-type]

    def actions(self) -> list[str]:
        return [entry.action for entry in self.world.ledger.audit.entries(self.run)]

    def roll_back(self, *days: str) -> None:
        self.world.client.rollback(self.run, partitions=days, reason="wrong", as_="bo")


@pytest.fixture
def make(make_world: Make) -> Callable[..., Judged]:
    def of(size: int = 2, pause: str = "30min", **options: object) -> Judged:
        world = make_world(days=5, product=in_waves(f"size: {size}, pause: {pause}"), **options)
        world.configure("limits:", SERVICE)
        return Judged(world, world.to("validated"))

    return of


@contextmanager
def sleeping(place: Judged, act: Callable[[int], None] | None = None, times: int = 30) -> Iterator[Clock]:
    """A pause takes no time here: sleeping moves the database's clock, so many times as far."""
    slept = itertools.count(1)
    with stopped_clock() as clock:

        def sleep(seconds: float) -> None:
            clock.move(seconds * times)
            if act is not None:
                act(next(slept))

        place.world.client.close()
        place.world.sleep = sleep
        place.world.open()
        yield clock


def test_one_wave_after_the_other_and_the_run_is_published_with_the_last(make: Callable[..., Judged]) -> None:
    """Each is a publication of its own; the view says what is done, what is next and when."""
    place = make()
    first = place.publish()
    assert (numbered(first.publication_id), first.partitions) == (f"{place.run}-p1", place.days[3:])
    assert (place.state, [(wave.n, wave.state) for wave in first.waves]) == (
        "part_published", [(1, "published"), (2, "validated"), (3, "validated")],
    )  # fmt: skip
    assert first.turn is not None
    assert (first.turn.next, first.waves[0].publications) == (2, (first.publication_id,))
    assert 1700 < first.turn.seconds_left <= 1800
    for ahead, scope in ((31, place.days[1:3]), (62, place.days[:1])):
        with later(minutes=ahead):
            last = place.publish()
            assert last.partitions == scope
    assert last.turn is not None
    assert (place.state, last.turn.next) == ("published", None)


def test_before_the_pause_is_over_the_next_wave_is_refused_with_the_time_that_is_left(
    make: Callable[..., Judged],
) -> None:
    """On the database's clock, and without filling the audit: to come too early is to be asked again."""
    place = make()
    place.publish()
    before = place.actions()
    landed = datetime.fromisoformat(place.world.ledger.publications.list(place.run)[0].settled_at or "")
    with stopped_clock(landed + timedelta(minutes=29, seconds=30)), pytest.raises(PublishHeld, match="has 30 s left"):
        place.publish()
    assert place.actions() == before


def test_named_partitions_wait_for_the_pause_too_and_are_of_one_wave(make: Callable[..., Judged]) -> None:
    """Each wave has its own verdict and release, so a publication is of one of them."""
    place = make()
    with pytest.raises(StateRefused, match="expected partitions of one wave, found some of waves 1, 3"):
        place.publish(partitions=(place.days[0], place.days[4]))
    place.publish(partitions=(place.days[0],))
    with pytest.raises(PublishHeld):
        place.publish(partitions=(place.days[1],))
    with later(hours=1):
        shown = place.publish(partitions=(place.days[3],))
    assert [wave.state for wave in shown.waves] == ["part_published", "validated", "published"]


def test_a_person_may_go_early_with_a_reason_and_it_is_on_the_record(make: Callable[..., Judged]) -> None:
    """Who and why stand in the audit, and the publication says that it did not wait."""
    place = make()
    place.publish(early="no pause yet")
    assert "pause.skipped" not in place.actions()
    place.publish(early="books close at noon")
    entry = next(e for e in place.world.ledger.audit.readable_entries(place.run) if e.action == "pause.skipped")
    assert (entry.actor.person, entry.body) == ("bo", {"waves": [2], "why": "books close at noon"})
    assert place.world.ledger.publications.list(place.run)[-1].release["wave"]["early"] is True


def test_a_service_account_may_not_go_early(make: Callable[..., Judged]) -> None:
    """It waits, as programs can."""
    place = make()
    place.publish()
    with pytest.raises(PermissionRefused, match="expected a person, airflow is a service account"):
        place.publish("airflow", early="impatient")


def test_going_early_lifts_the_pause_and_nothing_else(make: Callable[..., Judged]) -> None:
    """Neither a stop by a person nor a failing signal is lifted with it."""
    place = make(project=LAG)
    place.world.engines.probes.values["lag"] = 950
    with pytest.raises(StateRefused, match="lag is 950, above 900"):
        place.publish(early="now")
    assert place.actions()[-1] == "refused"
    place.world.client.pause(place.run, as_="ana")
    with pytest.raises(StateRefused, match="its waves are stopped"):
        place.publish(early="now")


def test_pause_stops_the_waves_until_someone_resumes(make: Callable[..., Judged]) -> None:
    """The state of the run stays; both are audited, and again is already so."""
    place = make()
    first = place.publish()
    client = place.world.client
    paused = client.pause(place.run, as_="ana")
    assert (paused.state, paused.already, paused.note) == (
        "part_published", False, f"no further wave is published until: errata resume {place.run}",
    )  # fmt: skip
    assert client.pause(place.run, as_="ana").already
    with later(hours=1), pytest.raises(StateRefused, match="stopped: paused by ana"):
        place.publish()
    turn = client.status(place.run).turn
    assert turn is not None
    assert turn.stopped.startswith("paused by ana")
    resumed = client.resume(place.run, as_="cy")
    assert (resumed.already, "the next wave may go at 20" in resumed.note) == (False, True)
    assert client.resume(place.run, as_="cy").already
    with later(hours=1):
        assert place.publish().partitions != first.partitions
    assert [action for action in place.actions() if action.startswith("waves.")] == ["waves.paused", "waves.resumed"]


def test_only_a_person_resumes_after_a_rollback(make: Callable[..., Judged]) -> None:
    """Someone took it back for a reason; a schedule that goes on by itself must not outrun them."""
    place = make()
    place.publish()
    place.roll_back(place.days[4])
    with later(hours=3), pytest.raises(StateRefused, match=r"-r2-[0-9a-f]{6} rolled back 1 partition"):
        place.publish()
    with pytest.raises(PermissionRefused, match="airflow is a service account"):
        place.world.client.resume(place.run, as_="airflow")
    place.world.client.resume(place.run, as_="bo")
    with later(hours=3):
        assert place.publish().partitions == place.days[1:3]


def test_all_waves_are_published_with_the_pause_between_them(make: Callable[..., Judged]) -> None:
    """Sleeping is ours, the time is the database's."""
    place = make()
    with sleeping(place) as clock:
        started = clock.at
        view = place.publish(wait=True)
        assert timedelta(minutes=60) <= clock.at - started < timedelta(minutes=61)
    assert (place.state, numbered(view.publication_id)) == ("published", f"{place.run}-p3")
    landed = [datetime.fromisoformat(p.settled_at or "") for p in place.world.ledger.publications.list(place.run)]
    assert all(after - before >= timedelta(minutes=30) for before, after in itertools.pairwise(landed))
    assert any(line.startswith("wave 1 of 3 published") for line in place.world.said)


def test_a_yes_to_all_waves_is_to_those_that_were_judged_by_then(make: Callable[..., Judged]) -> None:
    """The digest that was reviewed is that of the next wave; a later wave that is judged again meanwhile stops it."""
    place = make(pause="1s")
    digest = place.world.client.status(place.run).release_digest
    assert place.publish(wait=True, digest=digest).state == "published"
    other = make(pause="30min")
    digest = other.world.client.status(other.run).release_digest

    def judge_again(n: int) -> None:
        if n == 1:
            path = other.world.root / "products/sales.yaml"
            path.write_text(path.read_text().replace("mustBeGreaterOrEqualTo: 0", "mustBeGreaterOrEqualTo: 1"))
            another = other.world.another_client()
            another.validate(other.run, thresholds="one row at least", wave=2, as_="bo")

    with sleeping(other, judge_again), pytest.raises(ApprovalRefused, match="is not the digest of what would be"):
        other.publish(wait=True, digest=digest)
    assert other.state == "part_published"


def test_waiting_ends_at_a_wave_that_is_not_judged(make_world: Make) -> None:
    """What may go went; the rest is not an error."""
    world = make_world(days=2, chunk_bytes="1", product=in_waves("size: 1"))
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    world.client.validate(run, as_="ana")
    view = world.client.publish(run, wait=True, as_="bo")
    assert (view.state, view.partitions) == ("running", world.days[1:])
    assert any("wave 2 was not judged yet" in line for line in world.said)


def test_a_restart_waits_for_what_is_left_of_the_pause(make: Callable[..., Judged]) -> None:
    """The process that died took nothing with it."""
    place = make()
    place.publish()
    with sleeping(place) as clock:
        clock.move(20 * 60)
        started = clock.at
        place.publish(wait=True)
        assert timedelta(minutes=39) < clock.at - started < timedelta(minutes=41)
    assert place.state == "published"


def test_someone_else_who_publishes_meanwhile_starts_the_pause_anew(make: Callable[..., Judged]) -> None:
    """Whoever waits sees it in the ledger and waits on."""
    place = make(size=1)
    place.publish()

    def act(n: int) -> None:
        if n == 3:
            place.publish(early="meanwhile")

    with sleeping(place, act) as clock:
        started = clock.at
        place.publish(wait=True)
        assert clock.at - started >= timedelta(minutes=93)
    assert place.state == "published"


@pytest.mark.parametrize(
    "event, said",
    [
        (lambda place: place.world.client.pause(place.run, as_="ana"), "paused by ana"),
        (lambda place: place.roll_back(place.days[3]), "rolled back 1 partition"),
        (lambda place: place.roll_back(*place.days[3:]), "rolled back 2 partitions"),
    ],
)
def test_whatever_happens_during_a_pause_ends_it_at_once(
    make: Callable[..., Judged], event: Callable[[Judged], object], said: str
) -> None:
    """A stop by a person, a rollback of a part, a rollback of all that is published."""
    place = make()
    slept: list[int] = []

    def act(n: int) -> None:
        slept.append(n)
        if n == 3:
            event(place)

    with sleeping(place, act), pytest.raises(StateRefused, match=said):
        place.publish(wait=True)
    assert len(slept) == 3
    assert len([one for one in place.world.ledger.publications.list(place.run) if one.kind == "publish"]) == 1


def test_a_health_signal_that_fails_during_a_pause_ends_it(make: Callable[..., Judged]) -> None:
    """That is what the pause is for."""
    place = make(project=LAG)

    def act(n: int) -> None:
        import time

        if n == 2:
            place.world.engines.probes.values["lag"] = 950
        time.sleep(0.1)

    with sleeping(place, act, times=1), pytest.raises(StateRefused, match="lag is 950"):
        place.publish(wait=True)
    assert place.state == "part_published"


def test_a_conflict_ends_the_waiting_and_what_was_published_stays(make: Callable[..., Judged]) -> None:
    """The error is the conflict itself, with its way on."""
    place = make()
    place.world.live(place.days[1])
    with sleeping(place), pytest.raises(PublishConflict):
        place.publish(wait=True)
    assert place.state == "part_published"


def test_whoever_may_not_publish_is_told_so_before_the_pause(make: Callable[..., Judged]) -> None:
    """Nobody sleeps for half an hour to be refused."""
    place = make()
    place.publish()
    slept: list[int] = []
    with sleeping(place, slept.append), pytest.raises(PermissionRefused):
        place.publish("ana", wait=True)
    assert slept == []


def test_waiting_with_named_partitions_is_refused(make: Callable[..., Judged]) -> None:
    """Waves come in turn, or partitions are named."""
    place = make()
    with pytest.raises(UsageError, match="expected one of them"):
        place.publish(partitions=place.days[0], wait=True)


def test_a_run_that_is_over_is_refused_for_that_and_not_for_its_turn(make: Callable[..., Judged]) -> None:
    """Whoever follows the hint must not be sent to a resume that leads nowhere."""
    place = make(size=3)
    place.publish()
    with later(hours=1):
        place.publish()
    place.roll_back(*place.days)
    assert place.state == "rolled_back"
    with pytest.raises(StateRefused) as refused:
        place.publish()
    assert "rolled back" in refused.value.message
    assert "errata plan" in (refused.value.hint or "")
