"""The pause between two publications of a run: kept on the ledger's own clock, in the transaction of the intent."""

from __future__ import annotations

from typing import Any

import pytest

from errata.errors import PublishHeld, StateRefused
from errata.ledger import Ledger
from errata.model.manifest import Chunk
from errata.model.run import RunState
from unit.ledger.steps import (
    ANA,
    DAYS,
    TABLE,
    adopt,
    bring,
    intend,
    manifest_bytes,
    must_claim,
    roll_back,
    run_in,
    settle,
)


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


def test_no_wave_goes_before_the_one_before_it(ledger: Ledger):
    """Unless someone names its partitions; decided in the transaction of the intent."""
    chunks = [Chunk(f"c{n}", (day,), 1, 1, n) for n, day in enumerate(DAYS, 1)]
    ledger.runs.record(
        "bf-1", manifest_bytes("bf-1"), product="fin.daily_revenue", table=TABLE, partitions=DAYS, chunks=chunks,
        parts={}, actor=ANA, body={},
    )  # fmt: skip
    bring(ledger, "bf-1", RunState.RUNNING)
    for n, day in enumerate(DAYS, 1):
        adopt(ledger, must_claim(ledger))
        made = ledger.candidates.intend("bf-1", f"{n}" * 64, ANA, {"rows": {day: 1}})
        ledger.candidates.record("bf-1", made.n, None, f"{n}", ANA, {"rows": {day: 1}})
        ledger.candidates.record_verdict("bf-1", made.n, passed=True, checks=(), thresholds_digest="t" * 64, actor=ANA)
    second = {"n": [2], "of": 3, "pause": "0s", "pause_seconds": 0}
    with pytest.raises(StateRefused, match="wave 1 is not out yet"):
        intend(ledger, "bf-1", DAYS[1:2], release={"wave": second})
    settle(ledger, intend(ledger, "bf-1", DAYS[1:2], release={"wave": {**second, "named": True}}))
    settle(ledger, intend(ledger, "bf-1", DAYS[:1], release={"wave": {**second, "n": [1]}}))
    settle(ledger, intend(ledger, "bf-1", DAYS[2:], release={"wave": {**second, "n": [3]}}))
    assert ledger.runs.get("bf-1").state is RunState.PUBLISHED


def test_without_waves_a_rollback_of_a_part_stops_nothing(ledger: Ledger):
    """A run that is published by partition is the publisher's to go on with."""
    run_in(ledger, RunState.VALIDATED)
    settle(ledger, intend(ledger, "bf-1", DAYS[:2]))
    roll_back(ledger, "bf-1", DAYS[:1])
    settle(ledger, intend(ledger, "bf-1", DAYS[2:]))
    assert ledger.runs.get("bf-1").state is RunState.PUBLISHED
