"""Holds: a publication waits for its consumers as they declared it, and lets go of them however it ends."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from errata.delivery.payment import pay
from errata.errors import (
    ApprovalRefused,
    ConsumerStopped,
    EngineError,
    NotFound,
    PermissionRefused,
    PublishConflict,
    PublishHeld,
    StateRefused,
)
from errata.failpoints import arm
from errata.model.audit import Actor
from errata.model.consumer.hold import READERS
from errata.views import PublishView
from errata.views.readiness import HoldView
from support.clock import Clock, later, stopped_clock
from support.memory_world import MemoryWorld as World
from support.waves import ALONE, in_waves
from support.world import PRODUCT_FILE, TABLE

Make = Callable[..., World]
READY = "lake.errata.ready"
BO = Actor("bo", "bo", "here")
PEOPLE = "  airflow: {roles: [operator, publisher], service: true}\n  di: {roles: [requester], teams: [bi]}\n"


class Killed(BaseException):
    """The process is gone: no handler of errors runs."""


def kill() -> None:
    raise Killed


def fail() -> None:
    raise EngineError("it failed here")


def consumers(**holds: str) -> str:
    """Consumers of the product, each with its hold."""
    lines = [f"  {name}: {{owner: bi, reads: [fin.sales], hold: {{{hold}}}}}" for name, hold in holds.items()]
    return "\n".join(["consumers:", *lines, ""])


@dataclass
class Place:
    """A world with a validated run, or several waves of one."""

    world: World
    run: str

    def publish(self, person: str = "bo", **options: object) -> PublishView:
        return self.world.client.publish(self.run, as_=person, **options)  # type: ignore[arg-type]

    def ack(self, person: str = "di", consumer: str = "dashboard", hold: str | None = None) -> HoldView:
        return self.world.client.acknowledge(self.run, consumer, hold=hold, as_=person)

    def states(self) -> dict[str, str]:
        return {one.partition: one.state for one in self.world.client.ready(TABLE).partitions}

    def holds(self) -> list[tuple[str, str]]:
        return [(one.consumer, one.state.value) for one in self.world.ledger.holds.list(self.run)]

    def actions(self) -> list[str]:
        return [entry.action for entry in self.world.ledger.audit.entries(self.run)]

    def landed(self) -> bool:
        return any(one.state.value == "committed" for one in self.world.ledger.publications.list(self.run))


@pytest.fixture
def make(make_world: Make) -> Callable[..., Place]:
    def of(waves: str = "", state: str = "validated", ready: bool = False, **holds: str) -> Place:
        more = {"product": in_waves(waves, ALONE if "none" in waves else PRODUCT_FILE)} if waves else {}
        world = make_world(days=4, **more)
        table = "ready: {table: lake.errata.ready}\n" if ready else ""
        world.configure("limits:", PEOPLE + table + (consumers(**holds) if holds else "") + "limits:")
        return Place(world, world.to(state))

    return of


@contextmanager
def sleeping(place: Place, act: Callable[[int], None] | None = None, times: int = 30) -> Iterator[Clock]:
    """A wait takes no time here: sleeping moves the database's clock, by a multiple."""
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


NOTICE = "before: 10min, on_timeout: go"
ASKED = "acknowledge: true, on_timeout: stop"


def test_the_first_publish_holds_and_says_until_when(make: Callable[..., Place]) -> None:
    """Nothing is published, the consumer is held, and the next command is the one to type."""
    place = make(dashboard=NOTICE)
    with pytest.raises(PublishHeld, match="dashboard has notice until") as caught:
        place.publish()
    assert f"errata publish {place.run} --wait" in (caught.value.hint or "")
    assert (caught.value.exit_code, 590 < caught.value.fields["seconds_left"] <= 600) == (3, True)
    assert set(place.states().values()) == {"held"}
    assert not place.landed()
    with later(minutes=11):
        place.publish()
    assert (place.holds(), set(place.states().values())) == ([("dashboard", "ended")], {"ready"})


def test_without_a_hold_nothing_is_different(make: Callable[..., Place]) -> None:
    """A consumer that declares none is not waited for."""
    place = make()
    place.publish()
    assert place.holds() == []


def test_publish_with_wait_waits_out_the_notice(make: Callable[..., Place]) -> None:
    """In one command, with one line about it."""
    place = make(dashboard=NOTICE)
    with sleeping(place):
        place.publish(wait=True)
    assert place.landed()
    assert sum("waiting for dashboard" in line for line in place.world.said) == 1


def test_an_acknowledgement_lets_the_publication_go(make: Callable[..., Place]) -> None:
    """The owner's team acknowledges while the command waits."""
    place = make(dashboard=ASKED)

    def acknowledge(times: int) -> None:
        if times == 3:
            place.ack()

    with sleeping(place, acknowledge):
        place.publish(wait=True)
    assert place.landed()
    assert [name for name in place.actions() if name.startswith("hold.")] == [
        "hold.opened", "hold.acknowledged", "hold.ended",
    ]  # fmt: skip


@pytest.mark.parametrize("on_timeout", ["go", "stop"])
def test_when_nobody_acknowledges_the_consumers_terms_decide(make: Callable[..., Place], on_timeout: str) -> None:
    """Go: it is published after at_most. Stop: it is refused, main is unchanged, and the next try asks again."""
    place = make(dashboard=f"acknowledge: true, at_most: 1h, on_timeout: {on_timeout}")
    before = place.world.snapshot()
    with sleeping(place, times=300) as clock:
        if on_timeout == "go":
            place.publish(wait=True)
            assert place.landed()
            return
        with pytest.raises(ConsumerStopped, match="did not acknowledge its hold by") as caught:
            place.publish(wait=True)
        assert (place.landed(), place.world.snapshot(), place.holds()) == (False, before, [("dashboard", "expired")])
        assert caught.value.hint == f"errata publish {place.run} holds them again"
        assert set(place.states().values()) == {"announced"}, "nobody is held any more"
        clock.move(1)
        with pytest.raises(PublishHeld, match="has not acknowledged"):
            place.publish()
        assert [state for _, state in place.holds()] == ["expired", "open"]


def test_a_refusal_because_of_a_consumer_is_on_record(make: Callable[..., Place]) -> None:
    """Waiting is not: a job that polls would fill the log."""
    place = make(dashboard="acknowledge: true, at_most: 1h, on_timeout: stop")
    for _ in range(3):
        with pytest.raises(PublishHeld):
            place.publish()
    assert "refused" not in place.actions()
    with later(hours=2), pytest.raises(ConsumerStopped):
        place.publish()
    assert place.actions()[-1] == "refused"


class TestOwners:
    """Only the consumer's owner acknowledges."""

    @pytest.mark.parametrize("person", ["bo", "ana", "airflow"])
    def test_others_are_refused(self, make: Callable[..., Place], person: str) -> None:
        """Also a publisher; the attempt is on record."""
        place = make(dashboard=ASKED)
        with pytest.raises(PublishHeld):
            place.publish()
        with pytest.raises(PermissionRefused, match="expected its owner bi") as caught:
            place.ack(person)
        assert caught.value.hint == "ask di"
        assert (place.holds(), place.actions()[-1]) == ([("dashboard", "open")], "refused")

    def test_a_service_account_that_is_the_owner_may(self, make: Callable[..., Place]) -> None:
        """A scheduler that pauses its own jobs acknowledges by itself."""
        place = make(dashboard=ASKED)
        place.world.configure("owner: bi", "owner: airflow")
        with pytest.raises(PublishHeld):
            place.publish()
        assert place.ack("airflow").acknowledged_by == "airflow"

    def test_what_is_not_held_is_not_acknowledged(self, make: Callable[..., Place]) -> None:
        """Nor a consumer that does not exist, nor a hold of another run."""
        place = make(dashboard=ASKED)
        with pytest.raises(StateRefused, match="does not hold it"):
            place.ack()
        with pytest.raises(NotFound, match="expected one of dashboard"):
            place.ack(consumer="nobody")
        with pytest.raises(NotFound, match="has no hold"):
            place.ack(hold="bf-1-h1-abcdef")

    def test_a_replayed_acknowledgement_counts_for_no_later_hold(self, make: Callable[..., Place]) -> None:
        """It names the hold of the first wave; the hold of the second one stays open."""
        place = make("size: 2, pause: 1s", dashboard=ASKED)
        with pytest.raises(PublishHeld):
            place.publish()
        first = place.ack()
        place.publish()
        with later(minutes=1):
            with pytest.raises(PublishHeld, match="has not acknowledged"):
                place.publish()
            with pytest.raises(StateRefused, match="counts for one hold only"):
                place.ack(hold=first.hold_id)
            assert [state for _, state in place.holds()] == ["ended", "open"]
            second = place.ack()
        assert (second.wave, second.hold_id != first.hold_id) == (2, True)


class TestRelease:
    """However a publication ends, it lets go of its consumers."""

    def test_a_conflict_ends_the_hold(self, make: Callable[..., Place]) -> None:
        """A live job wrote while the consumer waited."""
        place = make(dashboard="on_timeout: go")
        place.world.live(place.world.days[0])
        with pytest.raises(PublishConflict):
            place.publish()
        assert place.holds() == [("dashboard", "ended")]
        assert set(place.states().values()) == {"announced"}

    def test_a_failure_after_the_intent_ends_the_hold(self, make: Callable[..., Place]) -> None:
        """With the settlement of the publication."""
        place = make(dashboard="on_timeout: go")
        with arm("publish.before_commit", fail), pytest.raises(EngineError):
            place.publish()
        assert place.holds() == [("dashboard", "ended")]
        place.publish()
        assert [state for _, state in place.holds()] == ["ended", "ended"]

    def test_what_could_not_be_published_anyway_holds_nobody(self, make: Callable[..., Place]) -> None:
        """A service account without a release is refused before anyone is asked to wait."""
        place = make(dashboard=NOTICE)
        with pytest.raises(ApprovalRefused):
            place.publish("airflow")
        assert place.holds() == []

    def test_a_publication_that_waits_leaves_no_release_behind(self, make: Callable[..., Place]) -> None:
        """The person publishes when the wait is over; nobody else does on their authority."""
        place = make(dashboard=NOTICE)
        with pytest.raises(PublishHeld):
            place.publish()
        assert place.world.ledger.releases.list(place.run) == ()
        with later(minutes=11), pytest.raises(ApprovalRefused):
            place.publish("airflow")
        assert place.holds() == [("dashboard", "ended")]

    def test_cancelling_ends_the_hold(self, make: Callable[..., Place]) -> None:
        """In the transaction of the decision."""
        place = make(dashboard=NOTICE)
        with pytest.raises(PublishHeld):
            place.publish()
        place.world.client.cancel(place.run, reason="not needed", as_="ana")
        assert place.holds() == [("dashboard", "ended")]
        assert place.states() == {}


class TestSkipping:
    """A person may publish without waiting."""

    def test_early_publishes_at_once_and_consumers_are_still_told(self, make: Callable[..., Place]) -> None:
        """The hold is opened, skipped and ended: all on record."""
        place = make(dashboard="before: 10min, acknowledge: true, on_timeout: stop")
        place.publish(early="the market opens")
        assert place.landed()
        assert [name for name in place.actions() if name.startswith("hold.")] == [
            "hold.opened", "hold.skipped", "hold.ended",
        ]  # fmt: skip

    def test_a_service_account_may_not_skip(self, make: Callable[..., Place]) -> None:
        """The same rule as for pauses."""
        place = make(dashboard=NOTICE)
        digest = place.world.client.status(place.run).release_digest
        place.world.client.release(place.run, digest=digest, as_="bo")
        with pytest.raises(PermissionRefused, match="expected a person"):
            place.publish("airflow", early="in a hurry")
        assert not place.landed()


class TestWaves:
    """A hold is for a wave, unless it is over the run."""

    def test_each_wave_has_a_hold_of_its_own(self, make: Callable[..., Place]) -> None:
        """The consumer may read between two of them."""
        place = make("size: 2, pause: 1s", dashboard="on_timeout: go")
        place.publish()
        assert sorted(place.states().values()) == ["announced", "announced", "ready", "ready"]
        with later(minutes=1):
            place.publish()
        assert [(one.wave, len(one.partitions)) for one in place.world.ledger.holds.list(place.run)] == [(1, 2), (2, 2)]

    def test_a_hold_over_the_run_lasts_from_the_first_wave_to_the_last(self, make: Callable[..., Place]) -> None:
        """One acknowledgement for all of it, and no reader in between."""
        place = make("size: 2, pause: 1s", dashboard="acknowledge: true, over: run, on_timeout: stop")
        with pytest.raises(PublishHeld):
            place.publish()
        place.ack()
        place.publish()
        assert set(place.states().values()) == {"held"}
        with later(minutes=1):
            place.publish()
        assert (place.holds(), set(place.states().values())) == ([("dashboard", "ended")], {"ready"})

    def test_a_hold_over_the_run_that_is_too_short_is_refused(self, make: Callable[..., Place]) -> None:
        """It would end before the last wave, and the consumer would read a mixture."""
        place = make("size: 1, pause: 2h", dashboard="at_most: 5h, over: run, on_timeout: go")
        with pytest.raises(StateRefused, match=r"for about 6 h 00 m, and its hold lasts at most 5 h 00 m"):
            place.publish()
        assert place.holds() == []

    def test_publish_with_wait_holds_for_every_wave(self, make: Callable[..., Place]) -> None:
        """Pauses and waits follow each other in one command."""
        place = make("size: 2, pause: 30min", dashboard=NOTICE)
        with sleeping(place, times=60):
            place.publish(wait=True)
        assert place.world.ledger.runs.get(place.run).state.value == "published"
        assert [state for _, state in place.holds()] == ["ended", "ended"]

    @pytest.mark.parametrize("answers", [True, False])
    def test_a_stream_of_waves_waits_for_consumers(self, make: Callable[..., Place], answers: bool) -> None:
        """`run --publish` continues with an acknowledgement, and stops where the consumer's terms say so."""
        place = make("size: 2, pause: 1s, release: none", "approved", dashboard=f"{ASKED}, at_most: 30min")
        place.world.client.close()

        def acknowledge(_: int) -> None:
            if answers:
                with suppress(StateRefused):
                    place.ack()

        with sleeping(place, acknowledge, times=60):
            if answers:
                place.world.client.run(place.run, publish=True, as_="cy")
                assert place.world.ledger.runs.get(place.run).state.value == "published"
            else:
                with pytest.raises(ConsumerStopped):
                    place.world.client.run(place.run, publish=True, as_="cy")
                assert [state for _, state in place.holds()] == ["expired"]

    def test_a_wave_that_waits_holds_up_no_chunk_and_no_verdict(self, make: Callable[..., Place]) -> None:
        """The first wave waits while the rest is computed and judged; nothing is released meanwhile."""
        place = make("size: 1, pause: 1s, release: none", "approved", dashboard=ASKED)
        opened, claims, seen = threading.Event(), itertools.count(1), list[tuple[set[str], int]]()

        def claim() -> None:
            if next(claims) == 4:
                assert opened.wait(60), "the first wave waits before the last chunk is computed"

        def look(_: int) -> None:
            waves = {wave.state.value for wave in place.world.ledger.waves.list(place.run)}
            seen.append((waves, len(place.world.ledger.releases.list(place.run))))
            with suppress(StateRefused):
                place.ack()

        with arm("hold.after_open", opened.set), arm("chunk.after_claim", claim), sleeping(place, look):
            place.world.client.run(place.run, publish=True, parallel=1, as_="cy")
        assert seen[0] == ({"validated"}, 0)
        assert place.world.ledger.runs.get(place.run).state.value == "published"
        assert len(place.holds()) == 4

    def test_a_wait_does_not_keep_live_jobs_out_longer(self, make: Callable[..., Place]) -> None:
        """Nothing renews their freeze while a consumer is waited for; the publication freezes again, and checks all."""
        place = make("size: 2, pause: 1s, release: none", "approved", dashboard=f"{ASKED}, at_most: 5h")
        product = place.world.root / "products/sales.yaml"
        place.world.client.cancel(place.run, reason="another plan", as_="ana")
        frozen = product.read_text().replace("publish: {", "publish: {on_live_write: freeze, freeze: {idle: 30min}, ")
        product.write_text(frozen)
        place.world.client.close()
        place.world.open()
        place.run = place.world.to("approved")
        renewed = []

        def look(_: int) -> None:
            renewed.append(any(one.name == f"freeze-{place.run}" for one in threading.enumerate()))
            with suppress(StateRefused):
                place.ack()

        with sleeping(place, look):
            place.world.client.run(place.run, publish=True, as_="cy")
        assert renewed[0] is False
        assert place.world.ledger.runs.get(place.run).state.value == "published"

    def test_a_stream_that_is_repeated_waits_for_the_hold_that_there_is(self, make: Callable[..., Place]) -> None:
        """Killed while its consumer was held, it asks nobody again."""
        place = make("size: 2, pause: 1s, release: none", "approved", dashboard=f"{ASKED}, at_most: 30min")
        with arm("hold.after_open", kill), suppress(Killed):
            place.world.client.run(place.run, publish=True, as_="cy")
        assert [state for _, state in place.holds()] == ["open"]

        def acknowledge(_: int) -> None:
            with suppress(StateRefused):
                place.ack()

        with sleeping(place, acknowledge):
            place.world.client.run(place.run, publish=True, as_="cy")
        assert place.holds() == [("dashboard", "ended")] * 2


def test_two_runs_on_one_consumer_follow_each_other(make: Callable[..., Place]) -> None:
    """The second waits until the first is out; the consumer is never asked twice at once."""
    place = make(state="planned", dashboard=ASKED)
    days = place.world.days
    place.world.client.cancel(place.run, reason="two runs instead", as_="ana")
    one, two = (Place(place.world, place.world.to("validated", day)) for day in days[:2])
    with pytest.raises(PublishHeld, match="has not acknowledged"):
        one.publish()
    with pytest.raises(PublishHeld, match=f"dashboard is held by {one.run}"):
        two.publish()

    def act(times: int) -> None:
        if times == 2:
            one.ack()
            one.publish()
        if times == 5:
            two.ack()

    with sleeping(two, act):
        two.publish(wait=True)
    assert (one.landed(), two.landed()) == (True, True)


def test_the_consumer_is_told_with_the_hold_and_gets_the_command_for_it(make: Callable[..., Place]) -> None:
    """Owed in the transaction that opens the hold, and sent before the command ends; once for each hold."""
    place = make(dashboard=f"{ASKED}, before: 5min")
    place.world.configure("consumers:", "channels:\n  finance: {file: messages.jsonl}\nconsumers:")
    place.world.configure("hold: {", "tell: {channel: finance, on: [holding]}, hold: {")
    for _ in range(2):
        with pytest.raises(PublishHeld):
            place.publish()
    (message,) = place.world.engines.channels.list_once("finance")
    (hold,) = place.world.ledger.holds.list(place.run)
    assert message.title.startswith("Please hold")
    assert message.commands["acknowledge"] == f"errata ack {place.run} dashboard --hold {hold.hold_id}"
    place.ack(hold=hold.hold_id)
    assert place.holds() == [("dashboard", "acknowledged")]


def test_a_dead_channel_holds_up_nothing(make: Callable[..., Place]) -> None:
    """The message stays owed, and the publication goes when its notice is over."""
    place = make(dashboard=NOTICE)
    place.world.configure("consumers:", "channels:\n  finance: {file: messages.jsonl}\nconsumers:")
    place.world.configure("hold: {", "tell: {channel: finance, on: [holding]}, hold: {")
    place.world.engines.channels.down.add("finance")
    with pytest.raises(PublishHeld):
        place.publish()
    with later(minutes=11):
        place.publish()
    assert place.landed()
    assert any(one.event == "holding" for one in place.world.ledger.outbox.list_open(run_id=place.run))


def test_a_consumer_that_was_declared_meanwhile_is_held_first(make: Callable[..., Place]) -> None:
    """The transaction of the intent asks today's project, not what the command saw at its start."""
    place = make(dashboard="on_timeout: go")
    place.publish(partitions=place.world.days[:1])
    place.world.configure(
        "consumers:\n", "consumers:\n  late: {reads: [fin.sales], hold: {before: 5min, on_timeout: go}}\n"
    )
    with pytest.raises(PublishHeld, match="late has notice until"):
        place.publish()
    assert place.holds()[-1] == ("late", "open")


class TestReadyTable:
    """What SQL readers see."""

    def test_not_ready_is_in_the_lake_before_the_intent(self, make: Callable[..., Place]) -> None:
        """A process that is killed right before or after its intent has told readers already."""
        place = make(ready=True)
        for point, written in (("ready.before_commit", {"announced"}), ("ready.after_commit", {"held"})):
            with arm(point, kill), suppress(Killed):
                place.publish()
            assert {row.state for row in place.world.lake.ready.rows(READY)} == written
            assert place.world.ledger.publications.list(place.run) == ()

    def test_a_ready_table_that_cannot_be_written_blocks_the_publication(self, make: Callable[..., Place]) -> None:
        """Readers would not know; main is unchanged, and nobody stays held."""
        place = make(ready=True)
        before = place.world.snapshot()
        place.world.lake.ready.broken = "the catalog does not answer"
        with pytest.raises(EngineError, match="the ready table could not say that partitions are not ready") as caught:
            place.publish()
        assert (place.world.snapshot(), place.world.ledger.publications.list(place.run)) == (before, ())
        assert caught.value.state == "main is unchanged"
        assert set(place.states().values()) == {"announced"}
        place.world.lake.ready.broken = ""
        place.publish()
        assert place.landed()

    def test_the_rows_follow_the_publication(self, make: Callable[..., Place]) -> None:
        """Held, then ready, with the snapshot to read; ranges, not partitions."""
        place = make(ready=True)
        before = place.world.snapshot()
        done = place.publish()
        told = [[(row.first_partition, row.last_partition, row.state, row.snapshot_id) for row in rows]
                for rows in place.world.lake.ready.commits]  # fmt: skip
        first, last = place.world.days[0], place.world.days[-1]
        assert told == [
            [(first, last, "announced", None)],
            [(first, last, "held", before)],
            [(first, last, "ready", done.snapshot_id)],
        ]

    def test_a_rollback_tells_readers_too(self, make: Callable[..., Place]) -> None:
        """The same promise: nobody reads while main moves."""
        place = make(ready=True)
        place.publish()
        place.world.client.rollback(place.run, reason="wrong", as_="bo")
        told = [rows[0].state for rows in place.world.lake.ready.commits]
        assert told == ["announced", "held", "ready", "held", "ready"]

    def test_ready_may_come_late_and_is_not_forgotten(self, make: Callable[..., Place]) -> None:
        """A process that dies after the commit leaves the row to whoever pays next."""
        place = make(ready=True)
        with arm("publish.after_record", kill), suppress(Killed):
            place.publish()
        assert {row.state for row in place.world.lake.ready.rows(READY)} == {"held"}
        assert set(place.states().values()) == {"ready"}
        place.world.to("approved", place.world.days[0], supersede=None)
        place.world.client.run(place.world.ledger.runs.list()[0].run_id, as_="ana")
        assert "held" not in {row.state for row in place.world.lake.ready.rows(READY)}

    def test_a_run_is_announced_from_its_approval_until_it_is_given_up(self, make: Callable[..., Place]) -> None:
        """Written by the next command that pays; readers may read what is announced."""
        place = make(state="approved", ready=True)
        place.world.client.run(place.run, as_="ana")
        rows = place.world.lake.ready.rows(READY)
        assert {(row.state, row.run_id, row.snapshot_id) for row in rows} == {("announced", place.run, None)}
        place.world.client.cancel(place.run, reason="not needed", as_="ana")
        pay(place.world.workspace, Actor("ana", "ana", "here"), seconds=5)
        assert place.world.lake.ready.rows(READY) == ()

    def test_readers_wait_until_what_they_see_is_up_to_date(self, make: Callable[..., Place]) -> None:
        """Settling in the lake, too; and ready in the end, by whoever pays."""
        place = make(ready=True, dashboard="on_timeout: go")
        place.world.configure("hold: {", 'refresh: [{redis: "redis://memory/0", delete: "rev:{partition}:*"}], hold: {')
        place.publish()
        told = [{row.state for row in rows} for rows in place.world.lake.ready.commits]
        assert told == [{"announced"}, {"held"}, {"ready"}]

    @pytest.mark.parametrize("ready", [False, True])
    def test_a_waived_refresh_is_ready_only_if_the_waiver_says_so(
        self, make: Callable[..., Place], ready: bool
    ) -> None:
        """Otherwise readers wait until the partitions are published or rolled back again, and nothing stays owed."""
        place = make(ready=True, dashboard="on_timeout: go")
        place.world.configure("hold: {", 'refresh: [{redis: "redis://memory/0", delete: "rev:{partition}:*"}], hold: {')
        place.world.engines.consumers.broken = "down"
        done = place.publish()
        rows = place.world.lake.ready.rows
        assert {(row.state, row.snapshot_id) for row in rows(READY)} == {("settling", done.snapshot_id)}
        (item,) = (one for one in place.world.ledger.outbox.list_open() if one.effect.value == "recover")
        view = place.world.client.waive_outbox(item.item_id, reason="switched off", ready=ready, as_="bo")
        with later(minutes=5):
            pay(place.world.workspace, BO, seconds=5)
        assert {row.state for row in rows(READY)} == {"ready" if ready else "settling"}
        assert set(place.states().values()) == {"ready" if ready else "settling"}
        assert place.world.ledger.outbox.list_open() == ()
        assert view.next == ((f"errata deliver {place.run}",) if ready else (f"errata status {place.run}",))
        if not ready:
            with pytest.raises(StateRefused, match="bo waived it without --ready"):
                place.world.client.waive_outbox(item.item_id, reason="after all", ready=True, as_="bo")
        place.world.engines.consumers.broken = ""
        place.world.client.rollback(place.run, reason="wrong", as_="bo")
        assert {row.state for row in rows(READY)} == {"ready"}

    def test_a_consumers_hold_is_in_the_lake_as_well(self, make: Callable[..., Place]) -> None:
        """From its opening; one commit, which also counts for the publication."""
        place = make(ready=True, dashboard=NOTICE)
        with pytest.raises(PublishHeld):
            place.publish()
        assert {row.state for row in place.world.lake.ready.rows(READY)} == {"held"}
        with later(minutes=11):
            place.publish()
        assert [rows[0].state for rows in place.world.lake.ready.commits] == ["announced", "held", "ready"]
        assert [name for name, _ in place.holds()] == ["dashboard", READERS]
