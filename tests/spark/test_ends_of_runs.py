"""Runs that end early or oddly: what the commands say then, and that nobody is sent in circles."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from errata.errors import CostCapReached, Nondeterministic, Refused, RunExpired, StateRefused, ValidationRejected
from errata.worker import canary
from spark.test_workers import ONE_DAY, OWN, RUNNING_TOTAL, Make, finish, wrapped
from support.world import TABLE, TRANSFORM


def test_a_run_that_its_canary_ended_asks_for_another_plan(make_world: Make) -> None:
    """Validate cannot help, run has nothing to do; the diff shows what the canary computed and nothing else."""
    wrong = TRANSFORM.replace('F.sum("amount")', '(F.sum("amount") + 1)')
    world = make_world(days=3, chunk_bytes=ONE_DAY, transform=wrong)
    run = world.to("approved", canary=1)
    with pytest.raises(ValidationRejected):
        world.client.run(run, as_="ana")
    again = f"errata plan fin.sales … --supersede {run}"
    assert world.client.status(run).next.startswith(again)
    with pytest.raises(StateRefused) as refused:
        world.client.validate(run, as_="ana")
    assert (refused.value.hint or "").startswith(again)
    assert [part.partition for part in world.client.diff(run).diff.partitions] == ["2026-01-03"]
    with pytest.raises(StateRefused, match="2026-01-01 was not computed"):
        world.client.diff(run, partitions="2026-01-01")


@pytest.mark.slow
def test_a_pause_while_the_canary_is_judged_is_a_pause(make_world: Make, monkeypatch: Any) -> None:
    """The worker waits and judges after resume; what was made of the canary is no candidate of the run."""
    world = make_world(days=2, chunk_bytes=ONE_DAY)
    run = world.to("approved", canary=1)
    assemble, pauses = canary.assemble_candidate, [True]

    def paused(*args: Any) -> Any:
        if pauses:
            pauses.clear()
            world.client.pause(run, as_="ana")
            threading.Timer(1.5, lambda: world.client.resume(run, as_="ana")).start()
        return assemble(*args)

    monkeypatch.setattr(canary, "assemble_candidate", paused)
    assert world.client.run(run, as_="ana").state == "staged"
    with pytest.raises(StateRefused, match="no candidate yet"):
        world.client.diff(run)
    finish(world, run)


def test_a_sequential_product_stands_on_a_day_without_rows(make_world: Make) -> None:
    """A chunk that computed nothing is staged like any other, and the next day reads it as empty."""
    empty = '\n    raw = raw.where(F.col("day") != "2026-01-02")'
    transform = RUNNING_TOTAL.replace("raw, previous):", f"raw, previous):{empty}")
    world = make_world(days=3, product=OWN, transform=transform)
    run = world.to("approved", "2026-01-02..2026-01-03")
    assert world.client.run(run, as_="ana").state == "staged"
    snapshot = world.client._workspace.ledger.progress.chunks(run)[1].snapshot_id
    staged = [row for row in world.rows(int(snapshot or 0)) if row[0] == "2026-01-03"]
    assert staged == world.expected(["2026-01-03"])


def test_a_refuted_proof_is_not_repeated_until_it_passes(make_world: Make) -> None:
    """Retry brings the same refusal, without computing anything."""
    body = "    raw = raw.withColumn('amount', (raw.amount + F.rand()).cast('decimal(12,2)'))"
    world = make_world(days=1, transform=wrapped(body))
    run = world.to("approved", prove_determinism=1)
    for _ in range(2):
        with pytest.raises(Nondeterministic, match="different rows for 2026-01-01"):
            world.client.run(run, as_="ana")
        assert world.client.status(run).next.startswith("errata plan fin.sales")
        world.client.retry(run, as_="ana")
    assert sum("computed twice" in line for line in world.said) == 1


def test_a_run_at_its_cap_asks_for_another_plan(make_world: Make) -> None:
    """Resume would only meet the cap again."""
    world = make_world(days=2, chunk_bytes=ONE_DAY, project="price: {core_hour_usd: 0.01}\n")
    world.configure("max_partitions: 400", "max_partitions: 400, max_usd: 60")
    run = world.to("approved")
    world.client.run(run, max_chunks=1, as_="ana")
    world.configure("core_hour_usd: 0.01", "core_hour_usd: 9999999")
    with pytest.raises(CostCapReached):
        world.client.run(run, as_="ana")
    assert '--override cost="…"' in world.client.status(run).next


def test_a_request_that_was_given_up_is_planned_anew_as_often_as_one_likes(make_world: Make) -> None:
    """Each new run names the one before; none of them is a run that was cancelled."""
    world = make_world(days=1)
    runs = []
    for _ in range(3):
        runs.append(world.plan().id)
        world.client.cancel(runs[-1], as_="ana")
    assert len(set(runs)) == 3
    assert world.plan().id not in runs


def test_a_run_whose_pinned_snapshot_is_gone_has_expired_and_reads_nothing_instead(make_world: Make) -> None:
    """Between two chunks its pin was dropped and the snapshot expired: no fallback to what is there now."""
    world = make_world(days=2, chunk_bytes=ONE_DAY)
    run = world.to("approved")
    assert world.client.run(run, max_chunks=1, as_="ana").chunks.done == 1
    world.live("2026-02-01")
    (pin,) = [ref for ref in world.refs() if ref.endswith("_base")]
    world.sql(f"ALTER TABLE {TABLE} DROP TAG `{pin}`")
    world.sql(
        "CALL lake.system.expire_snapshots(table => 'fin.sales', older_than => TIMESTAMP '2099-01-01 00:00:00', "
        "retain_last => 1)"
    )
    head = world.snapshot()
    with pytest.raises(RunExpired, match=f"{TABLE} @ .* was pinned and is gone") as expired:
        world.client.run(run, as_="ana")
    assert f"--supersede {run}" in (expired.value.hint or "")
    assert world.client.status(run).state == "expired"
    for act in (world.client.run, world.client.validate, world.client.publish):
        with pytest.raises(Refused):
            act(run, as_="bo" if act == world.client.publish else "ana")
    assert world.snapshot() == head
    assert len(world.client._workspace.ledger.progress.attempts(run)) == 1
