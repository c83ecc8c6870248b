"""Readiness as the ledger tells it: each step of a correction is seen in the partitions that it concerns."""

from __future__ import annotations

import pytest

from errata.ledger import Ledger
from errata.model.consumer.outbox import Effect, Owed
from errata.model.consumer.readiness import ReadyState
from errata.model.run import RunState
from support.clock import later
from unit.ledger.steps import ALIVE, ANA, BO, DAYS, TABLE, hold, intend, plan, publish, roll_back, run_in, settle

S, R = RunState, ReadyState


def found(ledger: Ledger) -> dict[str, tuple[str, str | None, str | None]]:
    return {name: (one.state.value, one.run_id, one.snapshot_id) for name, one in ledger.readiness.judge(TABLE).items()}


def all_days(state: str, run: str | None, snapshot: str | None) -> dict[str, tuple[str, str | None, str | None]]:
    return dict.fromkeys(DAYS, (state, run, snapshot))


def test_a_partition_goes_from_announced_to_ready(ledger: Ledger):
    """With the run that does it and the snapshot to read at each step."""
    plan(ledger)
    assert found(ledger) == {}, "a plan that nobody approved announces nothing"
    ledger.runs.move("bf-1", S.APPROVED, actor=ANA)
    assert found(ledger) == all_days("announced", "bf-1", None)
    for state in (S.RUNNING, S.STAGED, S.VALIDATED):
        ledger.runs.move("bf-1", state, actor=ANA)
    hold(ledger, before_seconds=0)
    assert found(ledger) == all_days("held", "bf-1", "10")
    made = intend(ledger, "bf-1", DAYS, consumers=["dashboard"])
    assert {state for state, *_ in found(ledger).values()} == {"publishing"}
    settle(ledger, made)
    assert found(ledger) == all_days("ready", "bf-1", f"s-{made.pub_id}")


def test_a_publication_that_did_not_land_leaves_everything_as_announced(ledger: Ledger):
    """Readers continue, and the run may be published later."""
    run_in(ledger, S.VALIDATED)
    hold(ledger, before_seconds=0)
    settle(ledger, intend(ledger, "bf-1", DAYS, consumers=["dashboard"]), "abandoned")
    assert found(ledger) == all_days("announced", "bf-1", None)
    ledger.runs.move("bf-1", S.CANCELLED, actor=ANA)
    assert found(ledger) == {}


def test_a_hold_that_lapsed_keeps_nobody_waiting(ledger: Ledger):
    """Also if its process died."""
    run_in(ledger, S.VALIDATED)
    hold(ledger, at_most_seconds=3600)
    with later(hours=1, seconds=1):
        assert {state for state, *_ in found(ledger).values()} == {"announced"}


def test_parts_of_a_run_have_states_of_their_own(ledger: Ledger):
    """A wave that is out is ready while the next one is held."""
    run_in(ledger, S.VALIDATED)
    out = publish(ledger, "bf-1", DAYS[:1])
    hold(ledger, days=DAYS[1:2], wave=2)
    assert found(ledger) == {
        DAYS[0]: ("ready", "bf-1", f"s-{out.pub_id}"),
        DAYS[1]: ("held", "bf-1", "10"),
        DAYS[2]: ("announced", "bf-1", None),
    }


def test_a_rollback_is_a_publication_of_what_was_before(ledger: Ledger):
    """While it goes on nobody reads; afterwards its snapshot is the one to read."""
    run_in(ledger, S.VALIDATED)
    publish(ledger, "bf-1")
    made = intend(ledger, "bf-1", DAYS[:1], "rollback")
    assert found(ledger)[DAYS[0]][0] == "publishing"
    settle(ledger, made)
    assert set(found(ledger).values()) == {("ready", "bf-1", f"s-{made.pub_id}")}, "it contains the other days as well"


def test_other_tables_and_runs_that_change_nothing_do_not_count(ledger: Ledger):
    """An attestation announces nothing."""
    run_in(ledger, S.RUNNING, kind="attest")
    assert found(ledger) == {}
    assert ledger.readiness.judge("lake.other") == {}


def test_a_later_run_announces_partitions_that_an_earlier_one_published(ledger: Ledger):
    """They are still readable, at the snapshot of the earlier one."""
    run_in(ledger, S.VALIDATED)
    out = publish(ledger, "bf-1")
    run_in(ledger, S.APPROVED, "bf-2", DAYS[:1])
    assert found(ledger)[DAYS[0]] == ("announced", "bf-2", f"s-{out.pub_id}")
    roll_back(ledger, "bf-1", DAYS[1:])
    assert found(ledger)[DAYS[0]][0] == "announced"


RECOVER = Owed(Effect.RECOVER, "published", "dashboard", DAYS[:2])


def test_a_published_partition_is_settling_until_what_shows_it_is_up_to_date(ledger: Ledger):
    """Only the partitions of the unpaid item; messages hold nobody up."""
    run_in(ledger, S.VALIDATED)
    made = intend(ledger, "bf-1", DAYS, owes=[RECOVER, Owed(Effect.TELL, "published", "dashboard", DAYS)])
    settle(ledger, made)
    assert found(ledger) == {
        DAYS[0]: ("settling", "bf-1", f"s-{made.pub_id}"),
        DAYS[1]: ("settling", "bf-1", f"s-{made.pub_id}"),
        DAYS[2]: ("ready", "bf-1", f"s-{made.pub_id}"),
    }
    item = ledger.outbox.claim("dashboard/recover/" + TABLE, ALIVE, lease_seconds=60)
    assert item is not None
    ledger.outbox.record_paid(item, {}, BO)
    assert {state for state, *_ in found(ledger).values()} == {"ready"}
    since = {one.since for one in ledger.readiness.judge(TABLE).values()}
    assert since == {ledger.outbox.get(item.item_id).ended_at}


@pytest.mark.parametrize("ready", [False, True])
def test_a_waived_refresh_keeps_readers_waiting_unless_the_waiver_says_ready(ledger: Ledger, ready: bool):
    """Waiving ends retries, not the condition; a later publication owes for itself."""
    run_in(ledger, S.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS, owes=[RECOVER]))
    ledger.outbox.waive(1, "the cache is gone", BO, ready=ready)
    assert found(ledger)[DAYS[0]][0] == ("ready" if ready else "settling")
    roll_back(ledger, "bf-1", DAYS[:1])
    assert found(ledger)[DAYS[0]][0] == "ready"
    assert found(ledger)[DAYS[1]][0] == ("ready" if ready else "settling")


def test_what_a_publication_owes_counts_only_once_it_landed(ledger: Ledger):
    """A publication that was abandoned owes nothing."""
    run_in(ledger, S.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS, owes=[RECOVER]), "abandoned")
    assert {state for state, *_ in found(ledger).values()} == {"announced"}
