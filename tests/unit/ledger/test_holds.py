"""Holds in the ledger, on both databases: opened once, acknowledged by id, ended with their cause, never for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from errata.errors import ConsumerStopped, PublishHeld, StateRefused
from errata.ledger import Ledger
from errata.ledger.schema.definition import hold as hold_table
from errata.model.consumer.declaration import Hold
from errata.model.consumer.hold import READERS, WHOLE_RUN, HoldRequest, HoldState
from errata.model.run import RunState
from support.clock import later
from unit.ledger.shell import Shell, refused
from unit.ledger.steps import ANA, BO, DAYS, actions, hold, intend, publish, roll_back, run_in, settle

S, H = RunState, HoldState


@pytest.fixture
def validated(ledger: Ledger) -> Ledger:
    """A run that may be published."""
    run_in(ledger, S.VALIDATED)
    return ledger


def states(ledger: Ledger, run: str = "bf-1") -> list[str]:
    return [one.state.value for one in ledger.holds.list(run)]


class TestIntent:
    """What a publication needs, in the transaction of its intent."""

    def test_nothing_is_published_before_its_consumers_were_held(self, validated: Ledger):
        """Whatever the caller forgot, the transaction that begins a publication looks for the hold itself."""
        with pytest.raises(PublishHeld, match="dashboard was not held"):
            intend(validated, "bf-1", DAYS, consumers=["dashboard"])
        hold(validated, consumer="stream")
        with pytest.raises(PublishHeld, match="dashboard was not held"):
            intend(validated, "bf-1", DAYS, consumers=["dashboard", "stream"])
        assert validated.publications.list("bf-1") == ()

    def test_a_hold_of_some_partitions_does_not_cover_others(self, validated: Ledger):
        """The consumer was told about other days."""
        hold(validated, days=DAYS[:1], before_seconds=0)
        with pytest.raises(PublishHeld, match="was not held"):
            intend(validated, "bf-1", DAYS[1:], consumers=["dashboard"])
        intend(validated, "bf-1", DAYS[:1], consumers=["dashboard"])

    def test_notice_is_given_in_full(self, validated: Ledger):
        """On the database's clock."""
        hold(validated, before_seconds=600)
        with later(seconds=590), pytest.raises(PublishHeld, match="dashboard has notice until"):
            intend(validated, "bf-1", DAYS, consumers=["dashboard"])
        with later(seconds=610):
            intend(validated, "bf-1", DAYS, consumers=["dashboard"])

    def test_an_acknowledgement_is_waited_for(self, validated: Ledger):
        """And with it the publication may begin at once."""
        opened = hold(validated, before_seconds=0, acknowledge=True)
        with pytest.raises(PublishHeld, match="has not acknowledged its hold") as caught:
            intend(validated, "bf-1", DAYS, consumers=["dashboard"])
        assert "errata ack bf-1 dashboard" in (caught.value.hint or "")
        validated.holds.acknowledge(opened.hold_id, BO)
        intend(validated, "bf-1", DAYS, consumers=["dashboard"])

    @pytest.mark.parametrize("on_timeout", ["go", "stop"])
    def test_without_an_acknowledgement_the_terms_decide(self, validated: Ledger, on_timeout: str):
        """After at_most: publish, or not."""
        hold(validated, before_seconds=0, acknowledge=True, on_timeout=on_timeout)
        with later(hours=2, seconds=5):
            if on_timeout == "go":
                intend(validated, "bf-1", DAYS, consumers=["dashboard"])
            else:
                with pytest.raises(ConsumerStopped, match="did not acknowledge its hold by"):
                    intend(validated, "bf-1", DAYS, consumers=["dashboard"])

    def test_a_hold_of_long_ago_lets_nothing_through(self, validated: Ledger):
        """Who was told on Monday does not expect a publication on Friday."""
        hold(validated, before_seconds=0, on_timeout="go")
        with later(hours=5), pytest.raises(PublishHeld, match="is no longer held"):
            intend(validated, "bf-1", DAYS, consumers=["dashboard"])

    def test_an_acknowledgement_expires_with_its_hold(self, validated: Ledger):
        """The consumer continued after at_most, so its yes no longer counts."""
        opened = hold(validated, before_seconds=0, acknowledge=True, on_timeout="stop")
        validated.holds.acknowledge(opened.hold_id, BO)
        with later(hours=3), pytest.raises(PublishHeld, match="is no longer held"):
            intend(validated, "bf-1", DAYS, consumers=["dashboard"])

    def test_a_person_may_skip_the_wait_and_is_on_record(self, validated: Ledger):
        """The hold stays: consumers were told."""
        opened = hold(validated, before_seconds=600, acknowledge=True)
        validated.holds.skip([opened.hold_id], "market opens", BO)
        intend(validated, "bf-1", DAYS, consumers=["dashboard"])
        assert validated.holds.get(opened.hold_id).skipped_by == "bo"
        entry = next(one for one in validated.audit.entries("bf-1") if one.action == "hold.skipped")
        assert entry.body["why"].startswith("sealed:"), "what people type can be erased"


class TestEnd:
    """A hold ends with its cause."""

    @pytest.mark.parametrize("outcome", ["committed", "abandoned"])
    def test_settlement_ends_the_hold_whatever_the_outcome(self, validated: Ledger, outcome: str):
        """A conflict or a crash releases the consumer as a publication does."""
        hold(validated, before_seconds=0)
        made = intend(validated, "bf-1", DAYS, consumers=["dashboard"])
        assert states(validated) == ["open"], "while it is published, the consumer waits"
        settle(validated, made, outcome)
        assert states(validated) == ["ended"]
        assert validated.holds.list_active() == ()

    @pytest.mark.parametrize("to", [S.CANCELLED, S.EXPIRED, S.REJECTED, S.NEEDS_ACCEPTANCE])
    def test_a_run_that_cannot_be_published_holds_nobody(self, validated: Ledger, to: RunState):
        """With the move of the run, in one transaction."""
        hold(validated)
        validated.runs.move("bf-1", to, actor=ANA)
        assert states(validated) == ["ended"]

    def test_a_dead_process_holds_nobody_for_longer_than_at_most(self, validated: Ledger):
        """Nothing has to run for a hold to lapse."""
        hold(validated, at_most_seconds=7200)
        with later(hours=1, minutes=59):
            assert len(validated.holds.list_active()) == 1
        with later(hours=2, seconds=1):
            assert validated.holds.list_active() == ()

    def test_a_refused_publication_ends_its_holds_and_no_others(self, validated: Ledger):
        """By partitions: another wave keeps its own."""
        hold(validated, days=DAYS[:1])
        hold(validated, days=DAYS[1:], consumer="stream", wave=2)
        validated.holds.end("bf-1", BO, "conflict", DAYS[:1])
        assert states(validated) == ["ended", "open"]

    def test_a_hold_over_the_run_lasts_until_the_last_wave(self, validated: Ledger):
        """And not longer: nor after a publication that did not land."""
        opened = hold(validated, before_seconds=0, over="run")
        assert opened.wave == WHOLE_RUN
        publish(validated, "bf-1", DAYS[:1])
        assert states(validated) == ["open"]
        publish(validated, "bf-1", DAYS[1:])
        assert states(validated) == ["ended"]

    def test_a_publication_that_did_not_land_ends_a_hold_over_the_run(self, validated: Ledger):
        """Nobody knows when the next one comes."""
        hold(validated, before_seconds=0, over="run")
        settle(validated, intend(validated, "bf-1", DAYS[:1]), "abandoned")
        assert states(validated) == ["ended"]

    def test_a_rollback_ends_the_holds_of_its_run(self, validated: Ledger):
        """It stops the waves, so there is nothing to wait for."""
        publish(validated, "bf-1", DAYS[:1])
        hold(validated, days=DAYS[1:], wave=2)
        roll_back(validated, "bf-1", DAYS[:1])
        assert states(validated) == ["ended"]


class TestOneAtATime:
    """A consumer has one hold."""

    def test_a_second_run_waits_until_the_first_is_done(self, validated: Ledger):
        """Holds are not nested: the consumer would resume after the first and be surprised by the second."""
        run_in(validated, S.VALIDATED, "bf-2", ("2026-02-01",))
        hold(validated, before_seconds=0)
        with pytest.raises(PublishHeld, match="dashboard is held by bf-1") as caught:
            hold(validated, "bf-2", ("2026-02-01",))
        assert caught.value.fields["holder"] == "bf-1"
        publish(validated, "bf-1")
        hold(validated, "bf-2", ("2026-02-01",))
        assert states(validated, "bf-2") == ["open"]

    def test_all_holds_of_a_publication_are_opened_or_none(self, validated: Ledger):
        """A consumer that cannot be held now leaves the others alone."""
        run_in(validated, S.VALIDATED, "bf-2", ("2026-02-01",))
        hold(validated, consumer="stream")
        wanted = [HoldRequest(name, Hold("go"), ("2026-02-01",)) for name in ("dashboard", "stream")]
        with pytest.raises(PublishHeld):
            validated.holds.open("bf-2", wanted, wave=1, actor=BO)
        assert states(validated, "bf-2") == []

    def test_a_hold_that_lapsed_is_in_nobodys_way(self, validated: Ledger):
        """It is recorded as expired when it is found."""
        run_in(validated, S.VALIDATED, "bf-2", ("2026-02-01",))
        hold(validated)
        with later(hours=3):
            hold(validated, "bf-2", ("2026-02-01",))
        assert states(validated) == ["expired"]

    def test_opening_again_changes_nothing_while_the_hold_counts(self, validated: Ledger):
        """A repeated command gives no new notice and asks for no new acknowledgement."""
        first = hold(validated, before_seconds=600)
        with later(minutes=5):
            assert hold(validated, before_seconds=600) == first

    def test_readers_of_the_ready_table_are_held_by_several_runs(self, validated: Ledger):
        """Each run has rows of its own there."""
        run_in(validated, S.VALIDATED, "bf-2", ("2026-02-01",))
        hold(validated, consumer=READERS)
        hold(validated, "bf-2", ("2026-02-01",), consumer=READERS)
        assert len(validated.holds.list_active()) == 2


class TestAcknowledgement:
    """It is of one hold."""

    def test_an_acknowledgement_is_recorded_once(self, validated: Ledger):
        """Repeating it is no error; who was first stays."""
        opened = hold(validated, acknowledge=True)
        one, already = validated.holds.acknowledge(opened.hold_id, BO)
        assert (one.state, one.acknowledged_by, already) == (H.ACKNOWLEDGED, "bo", False)
        again, already = validated.holds.acknowledge(opened.hold_id, ANA)
        assert (again.acknowledged_by, already) == ("bo", True)

    @pytest.mark.parametrize("end", [
        lambda ledger: ledger.holds.end("bf-1", BO, "conflict", DAYS),
        lambda ledger: ledger.runs.move("bf-1", S.CANCELLED, actor=ANA),
    ])  # fmt: skip
    def test_a_replayed_acknowledgement_counts_for_no_later_hold(
        self, validated: Ledger, end: Callable[[Ledger], object]
    ):
        """It names the hold that it is for, and that one is over."""
        opened = hold(validated, acknowledge=True)
        end(validated)
        with pytest.raises(StateRefused, match="has ended"):
            validated.holds.acknowledge(opened.hold_id, BO)
        if validated.runs.get("bf-1").state is S.VALIDATED:
            assert hold(validated, acknowledge=True).state is H.OPEN

    def test_a_late_acknowledgement_is_refused(self, validated: Ledger):
        """After at_most the consumer is no longer held."""
        opened = hold(validated, acknowledge=True)
        with later(hours=3), pytest.raises(StateRefused, match="has expired"):
            validated.holds.acknowledge(opened.hold_id, BO)

    def test_a_hold_that_timed_out_is_followed_by_a_new_one(self, validated: Ledger):
        """Once it is on record that nobody answered, the next publication asks again."""
        opened = hold(validated, before_seconds=0, acknowledge=True, on_timeout="stop")
        with later(hours=3):
            assert hold(validated, before_seconds=0, acknowledge=True) == opened, "first it is said"
            validated.holds.expire([opened.hold_id], BO)
            assert hold(validated, before_seconds=0, acknowledge=True).hold_id != opened.hold_id


def test_the_database_keeps_the_rules_of_holds(validated: Ledger, shell: Shell):
    """Past every line of Python: no second hold, no acknowledgement without an entry, no change of terms."""
    opened = hold(validated, acknowledge=True)
    where = f"WHERE hold_id = '{opened.hold_id}'"
    names = [column.name for column in hold_table.columns][3:]
    refused(
        lambda: shell.execute(f"UPDATE hold SET until = until + 1 {where}"),
        "hold: (these columns are fixed|a change needs)",
    )
    refused(
        lambda: shell.execute(f"UPDATE hold SET state = 'acknowledged', acknowledged_by = 'x' {where}"),
        "a change needs its audit entry",
    )
    refused(lambda: shell.execute(f"DELETE FROM hold {where}"), "delete refused")
    again = f"INSERT INTO hold SELECT 'other', run_id, 9, {', '.join(names)} FROM hold {where}"
    refused(lambda: shell.execute(again), "hold: (a consumer has one hold at a time|a hold starts as open)")
    validated.holds.end("bf-1", BO, "conflict", DAYS)
    refused(lambda: shell.execute(f"UPDATE hold SET state = 'open' {where}"), "hold")


def test_holds_are_explained_by_the_audit_log(validated: Ledger):
    """Every change of a hold has an entry, and the rows are what the entries say."""
    opened = hold(validated, before_seconds=0, acknowledge=True)
    validated.holds.acknowledge(opened.hold_id, BO)
    publish(validated, "bf-1")
    assert [name for name in actions(validated) if name.startswith("hold.")] == [
        "hold.opened", "hold.acknowledged", "hold.ended",
    ]  # fmt: skip
    assert validated.audit.verify().ok
