"""Publication in groups: whose turn it is, what holds it, what stops it, and who may say otherwise."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from errata.publishing.groups import groups_view, require_group_ready, select_group

from errata.commands.publish import publish_wait as stepping
from errata.errors import EngineError, PermissionRefused, PublishConflict, PublishHeld, StateRefused, UsageError
from errata.model.audit import Actor
from errata.model.product import Publish, Waves
from errata.model.product.throttle import Signal
from errata.views import GroupsView, PublishView
from errata.workspace import RunContext
from support.clock import Clock, stopped_clock
from support.ids import numbered
from support.office import Office, office

DAYS = tuple((date(2026, 1, 1) + timedelta(days=n)).isoformat() for n in range(5))
LAG = Signal("lag", "command", ("true",), pause_above="900")
BO = Actor("bo", "u", "h")
Make = Callable[..., Office]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Office] = []

    def of(size: int = 2, hold: str = "30min", **options: Any) -> Office:
        publish = Publish(waves=Waves(str(size), hold))
        place = office(tmp_path / str(len(made)), partitions=DAYS, publish=publish, **options)
        made.append(place)
        place.approve("bo")
        place.judged()
        return place

    (tmp_path / "0").mkdir()
    yield of
    for place in made:
        place.ledger.close()


def publish(place: Office, *, person: str = "bo", named: tuple[str, ...] = (), early: str | None = None) -> PublishView:
    """One publication as far as groups and ledger go; no table is touched."""
    actor, ledger = Actor(person, "u", "h"), place.ledger
    run = ledger.runs.get(place.run.run_id)
    states = ledger.partitions.states(run.run_id)
    scope = select_group(place.manifest, named or DAYS, states, named=bool(named))
    turn = require_group_ready(RunContext(place.workspace, actor, run, place.manifest), scope, early)
    made = ledger.publications.intend(
        run.run_id, "publish", scope, table=run.table, person=person, reason="", detail={"add": list(scope)},
        lease_seconds=60, actor=actor, release=turn,
    )  # fmt: skip
    ledger.publications.settle(made.pub_id, "committed", actor=actor, snapshot_id=f"s{made.n}", data_files_written=0)
    after = ledger.runs.get(run.run_id)
    return PublishView(
        run_id=run.run_id, state=after.state.value, already=False, publication_id=made.pub_id,
        snapshot_id=f"s{made.n}", partitions=scope, data_files_written=0, removed_files=0, added_files=0, compacted=(),
        live_commits=0, seconds=0.0, undo_until="", groups=groups_view(place.workspace, after, place.manifest),
    )  # fmt: skip


def groups(place: Office) -> GroupsView:
    found = groups_view(place.workspace, place.ledger.runs.get(place.run.run_id), place.manifest)
    assert found is not None
    return found


def roll_back(place: Office, *days: str) -> None:
    made = place.ledger.publications.intend(
        place.run.run_id, "rollback", days, table=place.run.table, person="bo", reason="", detail={}, lease_seconds=60,
        actor=BO,
    )  # fmt: skip
    place.ledger.publications.settle(made.pub_id, "committed", actor=BO, snapshot_id="r", data_files_written=0)
    place.ledger.guards.close_hazard(made.pub_id, "no files", BO)  # no table has to be looked at


def stepped(place: Office, once: Callable[[], PublishView], *, holds: bool = True) -> PublishView:
    return stepping.publish_by_group(place.workspace, BO, place.run.run_id, once, holds=holds)


@contextmanager
def sleeping(place: Office, act: Callable[[float], None] | None = None, times: int = 30) -> Iterator[Clock]:
    """A hold takes no time here: sleeping moves the database's clock, so many times as far."""
    with stopped_clock() as clock:

        def sleep(seconds: float) -> None:
            clock.move(seconds * times)
            if act is not None:
                act(seconds * times)

        progress = SimpleNamespace(advance=lambda *_: None, show=lambda *_: None, close=lambda: None)
        place.workspace = replace(place.workspace, progress=lambda *_: progress, sleep=sleep)  # type: ignore[arg-type,return-value]
        yield clock


class TestTurn:
    def test_groups_go_one_after_the_other_and_the_run_is_published_with_the_last(self, make: Make):
        """Each is a publication of its own; the view says what is done, what is next and when."""
        place = make()
        first = publish(place)
        assert (numbered(first.publication_id), first.partitions) == (f"{place.run.run_id}-p1", DAYS[3:])
        assert place.state == "part_published"
        shown = groups(place)
        assert [(group.n, group.state) for group in shown.groups] == [(1, "published"), (2, "waiting"), (3, "waiting")]
        assert (shown.next, shown.groups[0].publications) == (2, (first.publication_id,))
        assert 1790 < shown.seconds_left <= 1800
        for ahead, scope in ((31, DAYS[1:3]), (62, DAYS[:1])):
            with place.later(minutes=ahead):
                assert publish(place).partitions == scope
        assert (place.state, groups(place).next) == ("published", None)

    def test_before_the_hold_is_over_the_next_group_is_refused_with_the_time_that_is_left(self, make: Make):
        """On the database's clock, and without filling the audit: to come too early is to be asked again."""
        place = make()
        publish(place)
        before = place.actions()
        with place.later(minutes=29, seconds=30), pytest.raises(PublishHeld, match=r"has (29|30) s left"):
            publish(place)
        assert place.actions() == before

    def test_named_partitions_wait_for_the_hold_too_and_are_no_more_than_a_group(self, make: Make):
        """The promise is so many partitions in so much time, whichever they are."""
        place = make()
        with pytest.raises(StateRefused, match="expected at most 2 partitions at once"):
            publish(place, named=DAYS[:3])
        publish(place, named=(DAYS[0], DAYS[4]))
        with pytest.raises(PublishHeld):
            publish(place, named=(DAYS[1],))
        with place.later(hours=1):
            assert publish(place).partitions == (DAYS[3],)
        assert [group.state for group in groups(place).groups] == ["published", "waiting", "published"]

    def test_a_product_without_groups_is_published_whole(self, make: Make):
        """Nothing is held, nothing is kept of it."""
        place = make()
        whole = replace(place.manifest, publish=Publish())
        states = place.ledger.partitions.states(place.run.run_id)
        assert select_group(whole, DAYS, states, named=False) == DAYS
        assert require_group_ready(RunContext(place.workspace, BO, place.run, whole), DAYS, None) == {}
        assert groups_view(place.workspace, place.run, whole) is None


class TestEarly:
    def test_a_person_may_go_early_with_a_reason_and_it_is_on_the_record(self, make: Make):
        """Who and why stand in the audit, and the publication says that it did not wait."""
        place = make()
        publish(place)
        publish(place, early="books close at noon")
        entry = next(e for e in place.ledger.audit.readable_entries(place.run.run_id) if e.action == "hold.skipped")
        assert (entry.actor.person, entry.body) == ("bo", {"groups": [2], "why": "books close at noon"})
        last = place.ledger.publications.list(place.run.run_id)[-1]
        assert last.release["group"]["early"] is True

    def test_a_service_account_may_not(self, make: Make):
        """It waits, as programs can."""
        place = make()
        publish(place, person="airflow")
        with pytest.raises(PermissionRefused, match="expected a person, airflow is a service account"):
            publish(place, person="airflow", early="impatient")

    def test_going_early_lifts_the_hold_and_nothing_else(self, make: Make):
        """Neither a pause nor a failing signal is lifted with it; where no hold is, nothing is recorded."""
        place = make(health=(LAG,))
        place.workspace.engines.probes = SimpleNamespace(read=lambda _: Decimal(5))  # type: ignore[misc]
        publish(place, early="no hold yet")
        assert "hold.skipped" not in place.actions()
        place.workspace.engines.probes = SimpleNamespace(read=lambda _: Decimal(950))  # type: ignore[misc]
        with pytest.raises(StateRefused, match="lag is 950, above 900"):
            publish(place, early="now")
        place.client.pause(place.run.run_id, as_="ana")
        with pytest.raises(StateRefused, match="its groups are stopped"):
            publish(place, early="now")


class TestStopped:
    def test_pause_stops_the_groups_until_someone_resumes(self, make: Make):
        """The state of the run stays; both are audited, and again is already so."""
        place = make()
        publish(place)
        paused = place.client.pause(place.run.run_id, as_="ana")
        assert (paused.state, paused.already, paused.note) == (
            "part_published", False, f"no further group is published until: errata resume {place.run.run_id}",
        )  # fmt: skip
        assert place.client.pause(place.run.run_id, as_="ana").already
        with place.later(hours=1), pytest.raises(StateRefused, match="stopped: paused by ana"):
            publish(place)
        assert groups(place).stopped.startswith("paused by ana")
        assert not place.client.resume(place.run.run_id, as_="cy").already
        assert place.client.resume(place.run.run_id, as_="cy").already
        with place.later(hours=1):
            publish(place)
        told = [action for action in place.actions() if action.startswith("groups.")]
        assert told == ["groups.paused", "groups.resumed"]

    def test_a_rollback_of_an_earlier_group_stops_the_later_ones(self, make: Make):
        """Someone took it back for a reason; a schedule that goes on by itself must not outrun them."""
        place = make()
        publish(place)
        with place.later(hours=1):
            publish(place)
        roll_back(place, DAYS[4])
        with place.later(hours=3), pytest.raises(StateRefused, match=r"-r3-[0-9a-f]{6} rolled back 1 partition"):
            publish(place)
        with pytest.raises(PermissionRefused, match="airflow is a service account"):
            place.client.resume(place.run.run_id, as_="airflow")
        place.client.resume(place.run.run_id, as_="bo")
        with place.later(hours=3):
            assert publish(place).partitions == DAYS[:1]

    def test_a_run_that_is_not_there_yet_is_paused_as_ever(self, make: Make):
        """Before the gate, pause is about chunks."""
        place = make()
        whole = replace(place.manifest, publish=Publish())
        place.ledger.runs.manifest = lambda *_: whole  # type: ignore[method-assign]
        with pytest.raises(StateRefused):
            place.client.pause(place.run.run_id, as_="ana")

    @pytest.mark.parametrize("reading, said", [(950, "lag is 950, above 900"), (None, "lag cannot be read")])
    def test_a_failing_health_signal_holds_every_group(self, make: Make, reading: int | None, said: str):
        """The first as well: it is looked at before each; a signal that cannot be read counts as bad."""
        place = make(health=(LAG,))

        def read(_: Signal) -> Decimal:
            if reading is None:
                raise EngineError("no answer")
            return Decimal(reading)

        place.workspace.engines.probes = SimpleNamespace(read=read)  # type: ignore[misc]
        with pytest.raises(StateRefused, match=said):
            publish(place)
        assert place.actions()[-1] == "refused"


class TestWait:
    def test_all_groups_are_published_with_the_hold_between_them(self, make: Make):
        """Sleeping is ours, the time is the database's."""
        place = make()
        with sleeping(place) as clock:
            started = clock.at
            view = stepped(place, lambda: publish(place))
            assert timedelta(minutes=60) <= clock.at - started < timedelta(minutes=61)
        assert (place.state, numbered(view.publication_id)) == ("published", f"{place.run.run_id}-p3")
        landed = [datetime.fromisoformat(p.settled_at or "") for p in place.ledger.publications.list(place.run.run_id)]
        assert all(later - earlier >= timedelta(minutes=30) for earlier, later in itertools.pairwise(landed))
        assert next(line for line in place.said if line.startswith("group ")).startswith("group 1 of 3 published")

    def test_a_restart_waits_for_what_is_left_of_the_hold(self, make: Make):
        """The process that died took nothing with it."""
        place = make()
        publish(place)
        with sleeping(place) as clock:
            clock.move(20 * 60)
            started = clock.at
            stepped(place, lambda: publish(place))
            assert timedelta(minutes=39) < clock.at - started < timedelta(minutes=41)
        assert place.state == "published"

    def test_someone_else_who_publishes_meanwhile_starts_the_hold_anew(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ):
        """Also when they come between the last look and the intent."""
        place = make(size=1)
        raced: list[str] = []

        def once() -> PublishView:
            if len(raced) == 0 and place.ledger.publications.list(place.run.run_id):
                raced.append(publish(place).publication_id)
            return publish(place)

        with sleeping(place) as clock:
            started = clock.at
            stepped(place, once)
            assert clock.at - started >= timedelta(minutes=120)
        assert (place.state, len(raced)) == ("published", 1)

    @pytest.mark.parametrize(
        "event, said",
        [
            (lambda place: place.client.pause(place.run.run_id, as_="ana"), "paused by ana"),
            (lambda place: roll_back(place, DAYS[3]), "rolled back 1 partition"),
            (lambda place: roll_back(place, *DAYS[3:]), "found rolled_back"),
        ],
    )
    def test_whatever_happens_during_a_hold_ends_it_at_once(
        self, make: Make, event: Callable[[Office], object], said: str
    ):
        """A pause, a rollback of a part, a rollback of all that is published."""
        place = make()
        slept: list[float] = []

        def act(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                event(place)

        def once() -> PublishView:
            run = place.ledger.runs.get(place.run.run_id)
            if run.state.value not in ("validated", "part_published"):
                raise StateRefused(f"expected a validated run, found {run.state}")
            return publish(place)

        with sleeping(place, act), pytest.raises(StateRefused, match=said):
            stepped(place, once)
        assert len(slept) == 3
        assert len([p for p in place.ledger.publications.list(place.run.run_id) if p.kind == "publish"]) == 1

    def test_a_health_signal_that_fails_during_a_hold_ends_it(self, make: Make):
        """That is what the hold is for."""
        place = make(health=(replace(LAG, every_seconds=0),))
        readings = iter([5, 5])
        place.workspace.engines.probes = SimpleNamespace(read=lambda _: Decimal(next(readings, 950)))  # type: ignore[misc]
        with (
            sleeping(place, lambda _: time.sleep(0.02), times=1),
            pytest.raises(StateRefused, match="lag is 950"),
        ):
            stepped(place, lambda: publish(place))
        assert place.state == "part_published"

    def test_a_conflict_ends_it_and_what_was_published_stays(self, make: Make):
        """The error is the conflict itself, with its way on."""
        place = make()

        def once() -> PublishView:
            if place.ledger.publications.list(place.run.run_id):
                raise PublishConflict("1 of 2 partitions were written by someone else")
            return publish(place)

        with sleeping(place), pytest.raises(PublishConflict):
            stepped(place, once)
        assert place.state == "part_published"

    def test_whoever_may_not_publish_is_told_so_before_the_hold(self, make: Make):
        """Nobody sleeps for half an hour to be refused."""
        place = make()
        publish(place)
        with pytest.raises(PermissionRefused):
            stepping.publish_by_group(
                place.workspace, Actor("ana", "u", "h"), place.run.run_id, lambda: publish(place), holds=True
            )

    def test_waiting_with_named_partitions_is_refused(self, make: Make):
        """Groups come in turn, or partitions are named."""
        place = make()
        with pytest.raises(UsageError, match="expected one of them"):
            place.client.publish(place.run.run_id, partitions=DAYS[0], wait=True, as_="bo")


def test_a_run_that_is_over_is_refused_for_that_and_not_for_its_turn(make: Make):
    """Whoever follows the hint must not be sent to a resume that leads nowhere."""
    place = make()
    run_id = place.run.run_id
    publish(place)
    roll_back(place, *DAYS[3:])
    with pytest.raises(StateRefused) as refused:
        place.client.publish(run_id, as_="bo")
    assert "found rolled_back" in refused.value.message
    assert "errata plan" in (refused.value.hint or "")


def test_letting_groups_go_on_says_when_the_next_one_may(make: Make):
    """The hold stands: resuming lifts the stop and nothing else."""
    place = make()
    publish(place)
    place.client.pause(place.run.run_id, as_="ana")
    told = place.client.resume(place.run.run_id, as_="bo").note
    assert "the next group may go at 20" in told
