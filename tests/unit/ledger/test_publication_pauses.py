"""The pause between two publications of a run: kept on the ledger's own clock, in the transaction of the intent."""

from __future__ import annotations

from typing import Any

import pytest

from errata.errors import PublishHeld, StateRefused
from errata.ledger import Ledger
from errata.model.run import RunState
from unit.ledger.steps import ANA, DAYS, intend, roll_back, run_in, settle


def under(pause: str, seconds: int, **more: Any) -> dict[str, Any]:
    return {"wave": {"n": [1], "of": 3, "pause": pause, "pause_seconds": seconds, **more}}


def test_a_second_wave_is_refused_until_the_pause_is_over(ledger: Ledger):
    """Whoever passed a check before someone else published is still held back, and the refusal is audited."""
    run_in(ledger, RunState.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS[:1], release=under("1h", 3600)))
    with pytest.raises(PublishHeld, match="the pause of 1h after its last wave") as held:
        intend(ledger, "bf-1", DAYS[1:2], release=under("1h", 3600))
    assert 3500 < held.value.fields["seconds_left"] <= 3600
    assert ledger.audit.entries("bf-1")[-1].body["attempted"] == "publish.intended"
    assert ledger.runs.get("bf-1").state is RunState.PART_PUBLISHED
    assert ledger.publications.list_open() == ()


def test_a_pause_that_is_over_or_was_lifted_lets_the_next_wave_go(ledger: Ledger):
    """A person who does not wait says so in the intent; a wave that did not land starts no pause."""
    run_in(ledger, RunState.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS[:1], release=under("1h", 3600)), "abandoned")
    settle(ledger, intend(ledger, "bf-1", DAYS[:1], release=under("1h", 3600)))
    settle(ledger, intend(ledger, "bf-1", DAYS[1:2], release=under("1h", 3600, early=True)))
    settle(ledger, intend(ledger, "bf-1", DAYS[2:], release=under("0s", 0)))
    assert ledger.runs.get("bf-1").state is RunState.PUBLISHED


@pytest.mark.parametrize("stop", ["waves.paused", "rollback"])
def test_waves_that_someone_stopped_meanwhile_are_refused_until_a_person_lets_them_go_on(ledger: Ledger, stop: str):
    """Whoever looked before the stop, and waited for live jobs since, is refused in the transaction of the intent."""
    run_in(ledger, RunState.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS[:2], release=under("0s", 0)))
    if stop == "rollback":
        roll_back(ledger, "bf-1", DAYS[:1])
    else:
        ledger.audit.note("bf-1", ANA, stop)
    with pytest.raises(StateRefused, match="its waves are stopped"):
        intend(ledger, "bf-1", DAYS[2:], release=under("0s", 0, early=True))
    assert ledger.audit.entries("bf-1")[-1].body["attempted"] == "publish.intended"
    ledger.audit.note("bf-1", ANA, "waves.resumed")
    settle(ledger, intend(ledger, "bf-1", DAYS[2:], release=under("0s", 0)))
    assert ledger.publications.list_open() == ()


def test_without_waves_a_rollback_of_a_part_stops_nothing(ledger: Ledger):
    """A run that is published by partition is the publisher's to go on with."""
    run_in(ledger, RunState.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS[:2]))
    roll_back(ledger, "bf-1", DAYS[:1])
    settle(ledger, intend(ledger, "bf-1", DAYS[2:]))
    assert ledger.runs.get("bf-1").state is RunState.PUBLISHED
