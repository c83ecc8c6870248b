"""What metrics are made of, on both databases: sums over a run with kills, failures, waves, copies and a rollback."""

from __future__ import annotations

import pytest

from errata.ledger import Ledger
from errata.ledger.figures.figure_values import Pace, RunFigures
from errata.ledger.figures.readings import Reading, ReadingName
from errata.ledger.figures.run_results import LAKE
from errata.model.chunk_outcome import ChunkOutcome
from errata.model.consumer.outbox import Effect, Owed
from errata.model.manifest import Chunk
from errata.model.run import ChunkState, RunState
from unit.ledger.steps import (
    ANA,
    BO,
    DAYS,
    TABLE,
    adopt,
    bring,
    judge,
    manifest_bytes,
    must_claim,
    plan,
    roll_back,
    run_in,
)
from unit.ledger.steps import publish as publish_run


def figures_of(ledger: Ledger, run_id: str = "bf-1", last: int = 20) -> RunFigures:
    return next(one for one in ledger.figures.collect(last).runs if one.run_id == run_id)


def test_only_adopted_attempts_count(ledger: Ledger):
    """Rows of attempts that were lost or failed are in no sum; such attempts are counted apart."""
    plan(ledger, chunks=3)
    bring(ledger, "bf-1", RunState.RUNNING)
    cost = {"input_rows": 11, "rows_in:raw": 6, "rows_in:rates": 5, "rows_quarantined:raw": 2, "write_ms": 400}
    for _ in range(2):
        ledger.chunks.adopt(
            must_claim(ledger), snapshot_id="9", rows=7, files=1, bytes=50, seconds=20.0, actor=ANA, cost=cost
        )
    ledger.chunks.give_back(must_claim(ledger), actor=ANA)
    ledger.chunks.fail(
        must_claim(ledger), error_code="transform", message="no", actor=ANA,
        fate=lambda _: ChunkOutcome(ChunkState.FAILED),
    )  # fmt: skip
    found = figures_of(ledger)
    assert found.cost == {"input_rows": 22, "rows_in": 22, "rows_quarantined": 4, "write_ms": 800}
    assert (found.output_rows, found.writes, found.lost_attempts, found.failed_attempts) == (14, 2, 1, 1)
    assert found.chunks == {"done": 2, "failed": 1}
    assert (found.durations.count, found.durations.seconds) == (2, 40.0)
    assert found.durations.within == (0, 0, 0, 2, 2, 2, 2, 2, 2, 2)
    assert found.progress_at is not None


def test_the_last_runs_that_ended_and_all_active_ones_have_figures_of_their_own(ledger: Ledger):
    """All runs are counted, whatever their state."""
    for n in range(4):
        run_in(ledger, RunState.CANCELLED, f"bf-{n}", DAYS[:1])
    for n in range(4, 6):
        plan(ledger, f"bf-{n}", DAYS[:1])
    found = ledger.figures.collect(3)
    assert sorted(one.run_id for one in found.runs) == ["bf-1", "bf-2", "bf-3", "bf-4", "bf-5"]
    assert found.run_counts == {("fin.daily_revenue", "cancelled"): 4, ("fin.daily_revenue", "planned"): 2}
    assert found.left_out == 0


def test_a_wave_is_visible_when_all_of_it_is_published_and_not_after_its_rollback(ledger: Ledger):
    """A wave that is half out does not count; time passes from the last chunk to the commit."""
    chunks = [Chunk(f"c{n}", (day,), 10, 100, wave=n) for n, day in enumerate(DAYS)]
    ledger.runs.record(
        "bf-1", manifest_bytes("bf-1"), product="fin.daily_revenue", table=TABLE, partitions=DAYS, chunks=chunks,
        parts={}, actor=ANA, body={"deadline": "2026-01-02T00:00:00Z"},
    )  # fmt: skip
    bring(ledger, "bf-1", RunState.RUNNING)
    ledger.facts.record("bf-1", "canary", {"usd": "1.25", "passed": True}, ANA)
    for _ in DAYS:
        adopt(ledger, must_claim(ledger))
    ledger.runs.move("bf-1", RunState.STAGED, actor=ANA)
    # the canary belongs to the first wave
    assert figures_of(ledger).waves == {"visible": 0, "waiting": 2}
    ledger.candidates.intend("bf-1", "d", ANA)
    ledger.candidates.record("bf-1", 1, None, "5", ANA)
    judge(ledger, [{"level": "block"}], passed=False)
    judge(ledger, passed=True)
    publish_run(ledger, "bf-1", DAYS[:1])
    assert figures_of(ledger).waves == {"visible": 0, "waiting": 2}
    publish_run(ledger, "bf-1", DAYS[1:])
    found = figures_of(ledger)
    assert found.waves == {"visible": 2, "waiting": 0}
    assert found.publications["publish"].count == found.visible[LAKE].count == 2
    assert (found.rejections, found.estimate_usd, found.deadline) == (1, "1.25", "2026-01-02T00:00:00Z")
    roll_back(ledger, "bf-1", DAYS[2:])
    assert figures_of(ledger).waves == {"visible": 1, "waiting": 1}


def test_a_copy_that_was_delivered_has_the_time_of_its_transaction(ledger: Ledger):
    """Its receipt says how long the write took, and how long after the commit its readers saw it."""
    run_in(ledger, RunState.VALIDATED)
    publish_run(ledger, "bf-1")
    owed = Owed(Effect.COPY, "published", "pg:fin.daily", DAYS, {})
    ledger.outbox.owe("bf-1", "bf-1-p1", [owed, Owed(Effect.TELL, "published", "bi")], ANA)
    first = ledger.figures.collect(20).owed
    assert [(one.effect, one.consumer, one.state, one.count) for one in first] == [
        ("copy", "pg:fin.daily", "owed", 1), ("tell", "bi", "owed", 1),
    ]  # fmt: skip
    queue = owed.queue(TABLE, "")
    from errata.ledger import current_owner

    item = ledger.outbox.claim(queue, current_owner("p"), lease_seconds=60)
    assert item is not None
    assert [(one.kind, one.is_expired) for one in ledger.figures.collect(20).leases] == [("delivery", False)]
    ledger.outbox.record_paid(item, {"seconds": 2.5, "seconds_since_commit": 40.0}, BO)
    found = figures_of(ledger)
    assert found.deliveries["pg:fin.daily"].seconds == 2.5
    assert found.visible["pg:fin.daily"].seconds == 40.0


def test_a_lease_that_ran_out_is_seen(ledger: Ledger):
    """Nobody has renewed it, so its worker is gone or cannot reach the ledger."""
    run_in(ledger, RunState.RUNNING)
    must_claim(ledger, lease=-1.0)
    assert [(one.kind, one.is_expired) for one in ledger.figures.collect(20).leases] == [("chunk", True)]


def test_decisions_of_the_throttle_are_counted_by_level(ledger: Ledger):
    """They are audit entries of the run."""
    run_in(ledger, RunState.RUNNING)
    for level in ("pause", "go", "pause"):
        ledger.audit.note("bf-1", ANA, f"throttle.{level}", {"signal": "lag", "reading": "5"})
    assert figures_of(ledger).throttle == {"pause": 2, "go": 1}


def test_a_run_is_expected_to_finish_at_the_pace_of_its_last_hour(ledger: Ledger):
    """Nobody can tell before its first chunk."""
    run_in(ledger, RunState.RUNNING)
    assert figures_of(ledger).finish is None
    adopt(ledger, must_claim(ledger))
    found, now = figures_of(ledger).finish, ledger.now_ms() / 1000
    assert found is not None
    assert now - 5 < found < now + 60
    assert Pace(30, 10, 0).find_finish(20_000) == 80.0
    assert Pace(30, 0, 0).find_finish(20_000) is None


def test_a_reading_takes_the_place_of_the_one_before(ledger: Ledger):
    """There is one for each subject; a value that could not be read is none."""
    for value in (3.0, None):
        ledger.readings.put(Reading(ReadingName.LIVE_SIGNAL, "fin.sales", value, "lag", "pause"))
    ledger.readings.put(Reading(ReadingName.LIVE_SIGNAL, "fin.sales", 1.0, "other"))
    assert [(one.subject, one.value, one.detail) for one in ledger.readings.list()] == [
        ("lag", None, "pause"), ("other", 1.0, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("last", [0, 1])
def test_an_empty_ledger_has_figures(ledger: Ledger, last: int):
    """A project that has planned nothing can be scraped."""
    found = ledger.figures.collect(last)
    assert (found.runs, found.run_counts, found.owed, found.leases, found.audit_entries) == ((), {}, (), (), 0)
